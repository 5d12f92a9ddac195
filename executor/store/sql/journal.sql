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
-- Read one subject's chain in its order, and where it ends; in one statement, so that nothing can be
-- added between the two. Without any entry there is one row, whose position is NULL.
SELECT h.position AS head_position, h.hash AS head_hash, j.tenant_id, j.subject, j.position,
       j.machine, j.entity_id, j.seq, j.source, j.target, j.event, j.actor, j.detail,
       j.recorded_at, j.previous_hash, j.hash
FROM journal_heads h LEFT JOIN journal j ON j.tenant_id = h.tenant_id AND j.subject = h.subject
WHERE h.tenant_id = :tenant AND h.subject = :subject ORDER BY j.position;
