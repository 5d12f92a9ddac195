-- Money in micro-dollars: what runs and tenant-days may spend, have spent and hold.

CREATE TABLE run_budgets (
    tenant_id      text NOT NULL,
    run_id         uuid NOT NULL,
    limit_microusd bigint NOT NULL,
    spent_microusd bigint NOT NULL DEFAULT 0,
    held_microusd  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, run_id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id),
    CONSTRAINT a_run_never_holds_less_than_nothing
        CHECK (spent_microusd >= 0 AND held_microusd >= 0 AND limit_microusd >= 0)
);

-- A day is a date in the tenant's own time zone.
CREATE TABLE tenant_days (
    tenant_id      text NOT NULL REFERENCES tenants (id),
    day            date NOT NULL,
    limit_microusd bigint NOT NULL,
    spent_microusd bigint NOT NULL DEFAULT 0,
    held_microusd  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, day),
    CONSTRAINT a_day_never_holds_less_than_nothing
        CHECK (spent_microusd >= 0 AND held_microusd >= 0 AND limit_microusd >= 0)
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
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES run_budgets (tenant_id, run_id),
    FOREIGN KEY (tenant_id, day) REFERENCES tenant_days (tenant_id, day),
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
