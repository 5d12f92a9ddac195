-- Why runs are paused: at which limit, what their next call needs, and what was asked for them. A row
-- stands for as long as its run is paused, and then until somebody looks.
CREATE TABLE pauses (
    tenant_id        text NOT NULL,
    run_id           uuid NOT NULL,
    scope            text NOT NULL,
    day              date,
    needed_microusd  bigint NOT NULL,
    -- The instant at which a day's limit is renewed.
    renews_at        timestamptz,
    -- The operation that asks for more; NULL: none does, or it has ended.
    raise_id         uuid,
    -- How the last one that asked for more has ended, where nothing was raised.
    not_raised       text,
    paused_at        timestamptz NOT NULL,
    look_at          timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, run_id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id),
    FOREIGN KEY (tenant_id, raise_id) REFERENCES operations (tenant_id, id),
    CONSTRAINT a_pause_is_at_a_limit_of_its_run_or_of_a_day CHECK (
        CASE scope WHEN 'run' THEN num_nonnulls(day, renews_at) = 0
                   WHEN 'day' THEN num_nonnulls(day, renews_at) = 2
                   ELSE false END)
);
CREATE INDEX pauses_to_look_at ON pauses (look_at);
CREATE INDEX pauses_by_raise ON pauses (tenant_id, raise_id) WHERE raise_id IS NOT NULL;
CREATE INDEX raises_that_nobody_has_opened ON operations (tenant_id, id)
    WHERE kind = 'raise_budget' AND status IN ('awaiting', 'approved');
