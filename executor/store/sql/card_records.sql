-- name: show_operation
-- Read one operation with its run and its newest approval, as its card shows it; takes no lock.
SELECT o.number, o.status, o.run_id, o.requester, o.digest, o.content_revision, o.policy_version,
       o.intent, o.desk, o.ticket_id, o.ticket_version, o.reason, o.detail, o.created_at, o.opened_at,
       o.ended_at, r.number AS run_number, r.goal,
       a.id AS approval_id, a.status AS approval_status, a.quorum, a.decide_within_seconds,
       a.decide_by, a.use_by
FROM operations o
JOIN runs r ON r.tenant_id = o.tenant_id AND r.id = o.run_id
JOIN approvals a ON a.tenant_id = o.tenant_id AND a.operation_id = o.id
WHERE o.tenant_id = :tenant AND o.id = :id
ORDER BY a.opened_at DESC LIMIT 1;

-- name: show_effects
-- Read the parts of one operation as its card shows them.
SELECT id, kind, status, provider, capability FROM effects
WHERE tenant_id = :tenant AND operation_id = :id ORDER BY position;

-- name: show_attempts
-- Read the tries of one operation as its card shows them.
SELECT effect_id, number, status, evidence, opened_at, conclude_at, reported_at FROM attempts
WHERE tenant_id = :tenant AND operation_id = :id ORDER BY effect_id, number;

-- name: operation_by_number
-- Find one tenant's operation by the number that people use.
SELECT id FROM operations WHERE tenant_id = :tenant AND number = :number;
