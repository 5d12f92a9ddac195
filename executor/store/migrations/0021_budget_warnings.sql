-- Who was told that a limit is near: one message each, once for each run and each day.
ALTER TABLE run_budgets ADD COLUMN warned_at timestamptz;
ALTER TABLE tenant_days ADD COLUMN warned_at timestamptz;

CREATE TABLE budget_warnings (
    tenant_id      text NOT NULL,
    id             uuid NOT NULL,
    run_id         uuid,
    day            date,
    used_microusd  bigint NOT NULL,
    limit_microusd bigint NOT NULL,
    made_at        timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id),
    FOREIGN KEY (tenant_id, day) REFERENCES tenant_days (tenant_id, day),
    CONSTRAINT a_warning_is_about_a_run_or_a_day CHECK (num_nonnulls(run_id, day) = 1)
);
ALTER TABLE cards DROP CONSTRAINT a_card_shows_something_that_can_be_told;
ALTER TABLE cards ADD CONSTRAINT a_card_shows_something_that_can_be_told
    CHECK (subject_kind IN ('operation', 'run', 'question', 'nudge', 'request', 'warning'));
