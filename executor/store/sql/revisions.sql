-- name: successor_of
-- Find the operation that took the place of another; takes no lock.
SELECT id, number, status, content_revision, editor FROM operations
WHERE tenant_id = :tenant AND replaces = :id;

-- name: predecessor_of
-- Read the operation whose place another took; takes no lock.
SELECT b.number, b.intent, b.content_revision, b.status
FROM operations a JOIN operations b ON b.tenant_id = a.tenant_id AND b.id = a.replaces
WHERE a.tenant_id = :tenant AND a.id = :id;

-- name: rejected_of_keys
-- Read what people have rejected under these intent keys, the newest first; nothing changes it any more.
SELECT o.intent_key, o.content_digest, o.number, o.reason, o.detail
FROM operations o
JOIN unnest(CAST(:intent_keys AS text[])) AS w (intent_key) USING (intent_key)
WHERE o.tenant_id = :tenant AND o.status = 'rejected'
ORDER BY o.number DESC;
