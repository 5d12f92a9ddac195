-- Money in micro-dollars: what runs and tenant-days may spend, have spent and hold. Of what is held,
-- some is unknown: the call is over, and nobody has told yet what it cost.

-- The limit is what the run was started with, and what people have added to it since.
CREATE TABLE run_budgets (
    tenant_id        text NOT NULL,
    run_id           uuid NOT NULL,
    limit_microusd   bigint NOT NULL,
    spent_microusd   bigint NOT NULL DEFAULT 0,
    held_microusd    bigint NOT NULL DEFAULT 0,
    unknown_microusd bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, run_id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id),
    CONSTRAINT a_run_never_holds_less_than_nothing CHECK (
        spent_microusd >= 0 AND held_microusd >= 0 AND limit_microusd >= 0),
    CONSTRAINT what_is_unknown_of_a_run_is_held CHECK (
        unknown_microusd BETWEEN 0 AND held_microusd)
);

-- A day is a date in the tenant's own time zone. Its limit is the active policy's, which may change
-- within the day, and what people have added for this day alone.
CREATE TABLE tenant_days (
    tenant_id        text NOT NULL REFERENCES tenants (id),
    day              date NOT NULL,
    raised_microusd  bigint NOT NULL DEFAULT 0,
    spent_microusd   bigint NOT NULL DEFAULT 0,
    held_microusd    bigint NOT NULL DEFAULT 0,
    unknown_microusd bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, day),
    CONSTRAINT a_day_never_holds_less_than_nothing CHECK (
        spent_microusd >= 0 AND held_microusd >= 0 AND raised_microusd >= 0),
    CONSTRAINT what_is_unknown_of_a_day_is_held CHECK (
        unknown_microusd BETWEEN 0 AND held_microusd)
);

CREATE TABLE reservations (
    tenant_id       text NOT NULL,
    id              uuid NOT NULL,
    machine         text GENERATED ALWAYS AS ('reservation') STORED,
    seq             integer NOT NULL,
    status          text NOT NULL,
    run_id          uuid NOT NULL,
    day             date NOT NULL,
    purpose         text NOT NULL,
    amount_microusd bigint NOT NULL,
    actual_microusd bigint,
    reserved_at     timestamptz NOT NULL,
    deadline_at     timestamptz NOT NULL,
    -- The attempt that it pays for, where that is one of an effect.
    attempt_id      uuid,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES run_budgets (tenant_id, run_id),
    FOREIGN KEY (tenant_id, day) REFERENCES tenant_days (tenant_id, day),
    FOREIGN KEY (tenant_id, attempt_id) REFERENCES attempts (tenant_id, id),
    CONSTRAINT an_attempt_is_paid_for_once UNIQUE (tenant_id, attempt_id),
    CONSTRAINT a_reservation_has_a_known_status
        CHECK (status IN ('held', 'settled', 'voided', 'unknown')),
    CONSTRAINT a_reservation_is_settled_to_an_actual_cost
        CHECK ((status = 'settled') = (actual_microusd IS NOT NULL)),
    CONSTRAINT costs_are_not_negative CHECK (amount_microusd >= 0 AND actual_microusd >= 0),
    CONSTRAINT a_reservation_stands_where_its_journal_ends
        FOREIGN KEY (tenant_id, machine, id, seq, status)
        REFERENCES journal (tenant_id, machine, entity_id, seq, target)
);
CREATE INDEX reservations_past_their_deadline ON reservations (deadline_at) WHERE status = 'held';
CREATE INDEX reservations_by_run ON reservations (tenant_id, run_id);
CREATE INDEX reservations_for_attempts ON reservations (tenant_id, attempt_id)
    WHERE attempt_id IS NOT NULL AND status IN ('held', 'unknown');
CREATE INDEX reservations_nobody_told_of ON reservations (tenant_id, reserved_at)
    WHERE status = 'unknown';
-- People name a charge by the end of its id, which is random.
CREATE INDEX reservations_by_short_name ON reservations (tenant_id, right(CAST(id AS text), 8));
