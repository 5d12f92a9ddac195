-- What mail providers said later, by their webhooks: each event once, in the order in which it came.
-- What names an effect that is not known is due again, until the provider's own memory is over.

CREATE TABLE late_evidence (
    tenant_id   text NOT NULL REFERENCES tenants (id),
    provider    text NOT NULL,
    event_id    text NOT NULL,
    reference   uuid NOT NULL,
    mail_id     text NOT NULL,
    kind        text NOT NULL,
    evidence    jsonb NOT NULL,
    happened_at timestamptz NOT NULL,
    received_at timestamptz NOT NULL,
    matched_at  timestamptz,
    due_at      timestamptz,
    PRIMARY KEY (tenant_id, provider, event_id),
    CONSTRAINT late_evidence_has_a_known_kind CHECK (kind IN (
        'accepted', 'delivered', 'delayed', 'bounced', 'complained', 'failed', 'suppressed')),
    CONSTRAINT late_evidence_is_due_until_it_is_matched
        CHECK ((matched_at IS NULL) = (due_at IS NOT NULL))
);
CREATE INDEX late_evidence_that_is_due ON late_evidence (due_at) WHERE due_at IS NOT NULL;
-- No foreign key: the reference may name what this database does not hold.
CREATE INDEX late_evidence_by_reference ON late_evidence (tenant_id, reference);
