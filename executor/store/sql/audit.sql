-- name: audit_heads
-- List where the chains of a tenant end, or of one of its runs, in one moment; the tenant's first.
SELECT h.subject, h.position, h.hash, r.number
FROM journal_heads h LEFT JOIN runs r ON r.tenant_id = h.tenant_id AND r.id = h.subject
WHERE h.tenant_id = :tenant
  AND (CAST(:run AS bigint) IS NULL OR r.number = CAST(:run AS bigint))
ORDER BY r.number NULLS FIRST, h.subject;

-- name: audit_entries
-- Read a part of one chain in its order: after one entry, and to another one at most.
SELECT tenant_id, subject, position, machine, entity_id, seq, source, target, event, actor, detail,
       recorded_at, previous_hash, hash
FROM journal
WHERE tenant_id = :tenant AND subject = :subject AND position > :after AND position <= :until
ORDER BY position LIMIT :most;
