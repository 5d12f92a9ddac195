-- What people were reminded of: one message each, in the thread of the operation's card.

ALTER TABLE approvals ADD COLUMN nudge_at timestamptz;
ALTER TABLE approvals ADD COLUMN nudges_made integer NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD CONSTRAINT nudges_are_counted_from_zero CHECK (nudges_made >= 0);
CREATE INDEX approvals_to_nudge_about ON approvals (nudge_at)
    WHERE status = 'open' AND nudge_at IS NOT NULL;

CREATE TABLE nudges (
    tenant_id    text NOT NULL,
    id           uuid NOT NULL,
    operation_id uuid NOT NULL,
    approval_id  uuid NOT NULL,
    kind         text NOT NULL,
    -- Whom it names: user ids, and group:… for user groups.
    whom         jsonb NOT NULL,
    made_at      timestamptz NOT NULL,
    -- Since when its message says that nothing waits any more.
    over_at      timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, operation_id) REFERENCES operations (tenant_id, id),
    FOREIGN KEY (tenant_id, approval_id) REFERENCES approvals (tenant_id, id),
    CONSTRAINT a_nudge_has_a_known_kind CHECK (kind IN ('reminder', 'escalation'))
);
CREATE INDEX nudges_that_still_ask ON nudges (made_at) WHERE over_at IS NULL;
CREATE INDEX nudges_by_operation ON nudges (tenant_id, operation_id);
