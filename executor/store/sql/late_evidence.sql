-- name: put_late_evidence
-- Store what a provider said before it is acknowledged; the same event again changes nothing.
INSERT INTO late_evidence (tenant_id, provider, event_id, reference, mail_id, kind, evidence,
                           happened_at, received_at, due_at)
VALUES (:tenant, :provider, :event_id, :reference, :mail_id, :kind, CAST(:evidence AS jsonb),
        :happened_at, signoff_clock(), signoff_clock())
ON CONFLICT (tenant_id, provider, event_id) DO NOTHING
RETURNING event_id;

-- name: due_late_evidence
-- Find what was said about effects that were not known, where it is time to look again; tenants take
-- turns.
SELECT tenant_id, provider, event_id, reference, mail_id, kind, evidence, happened_at
FROM (
    SELECT *, row_number() OVER (PARTITION BY tenant_id ORDER BY due_at) AS place
    FROM late_evidence WHERE due_at <= (SELECT signoff_clock())
) due
ORDER BY place, due_at LIMIT :most;

-- name: lock_late_evidence
-- Lock events in order, where nobody has matched them meanwhile.
SELECT l.tenant_id, l.provider, l.event_id
FROM late_evidence l
JOIN unnest(CAST(:tenants AS text[]), CAST(:providers AS text[]), CAST(:event_ids AS text[]))
    AS w (tenant_id, provider, event_id) USING (tenant_id, provider, event_id)
WHERE l.due_at IS NOT NULL
ORDER BY l.tenant_id, l.provider, l.event_id
FOR UPDATE OF l;

-- name: effects_by_id
-- Find the effects that references name, as they stand; takes no lock.
SELECT e.tenant_id, e.id, e.operation_id, e.provider, e.status
FROM effects e
JOIN unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[])) AS w (tenant_id, id)
    USING (tenant_id, id);

-- name: match_late_evidence
-- Remember that an effect took in what was said about it.
UPDATE late_evidence l SET matched_at = signoff_clock(), due_at = NULL
FROM unnest(CAST(:tenants AS text[]), CAST(:providers AS text[]), CAST(:event_ids AS text[]))
    AS w (tenant_id, provider, event_id)
WHERE l.tenant_id = w.tenant_id AND l.provider = w.provider AND l.event_id = w.event_id;

-- name: put_off_late_evidence
-- Look again after as long as it has waited, between a minute and a day.
UPDATE late_evidence l
SET due_at = signoff_clock() + LEAST(
    GREATEST(signoff_clock() - l.received_at, interval '1 minute'), interval '1 day')
FROM unnest(CAST(:tenants AS text[]), CAST(:providers AS text[]), CAST(:event_ids AS text[]))
    AS w (tenant_id, provider, event_id)
WHERE l.tenant_id = w.tenant_id AND l.provider = w.provider AND l.event_id = w.event_id;

-- name: forget_late_evidence
-- Forget what nobody could match for so long that its mail is none of ours.
DELETE FROM late_evidence
WHERE due_at IS NOT NULL
  AND received_at < (SELECT signoff_clock()) - make_interval(secs => :seconds);

-- name: delivery_notes
-- Read the latest that a provider said about the mails of one operation, latest first.
SELECT l.provider, l.kind, l.mail_id, l.evidence, l.happened_at, l.received_at
FROM effects e
JOIN late_evidence l ON l.tenant_id = e.tenant_id AND l.reference = e.id
WHERE e.tenant_id = :tenant AND e.operation_id = :operation AND l.matched_at IS NOT NULL
ORDER BY l.happened_at DESC, l.event_id LIMIT :most;
