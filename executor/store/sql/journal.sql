-- name: lock_journal_heads
-- Lock the chains that this transaction will lengthen, in order; the last lock of every transaction.
SELECT h.tenant_id, h.subject, h.position, h.hash
FROM journal_heads h
JOIN unnest(CAST(:tenants AS text[]), CAST(:subjects AS uuid[])) AS wanted (tenant_id, subject)
    USING (tenant_id, subject)
ORDER BY h.tenant_id, h.subject
FOR UPDATE OF h;

-- name: insert_notes
-- Record what was said or seen and moved nothing.
INSERT INTO journal (tenant_id, subject, position, machine, entity_id, seq, source, target,
                     event, actor, detail, recorded_at, previous_hash, hash)
SELECT * FROM journal_entries(CAST(:entries AS jsonb))
RETURNING position;

-- name: advance_journal_heads
-- Move the heads to the ends of their chains; a head that is not where we found it is a lost race.
INSERT INTO journal_heads AS h (tenant_id, subject, position, hash)
SELECT * FROM unnest(CAST(:tenants AS text[]), CAST(:subjects AS uuid[]),
                     CAST(:positions AS bigint[]), CAST(:hashes AS bytea[]))
ON CONFLICT (tenant_id, subject) DO UPDATE SET position = excluded.position, hash = excluded.hash
WHERE h.position < excluded.position
RETURNING subject;

-- name: read_journal
-- Read one subject's chain in its order.
SELECT tenant_id, subject, position, machine, entity_id, seq, source, target, event, actor, detail,
       recorded_at, previous_hash, hash
FROM journal WHERE tenant_id = :tenant AND subject = :subject ORDER BY position;

-- name: read_journal_head
-- Read where one subject's chain ends.
SELECT position, hash FROM journal_heads WHERE tenant_id = :tenant AND subject = :subject;
