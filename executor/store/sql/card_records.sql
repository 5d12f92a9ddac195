-- name: show_operation
-- Read one operation with its run and its first approval, as its card shows it; takes no lock.
SELECT o.id, o.number, o.status, o.run_id, o.requester, o.digest, o.content_revision, o.policy_version,
       o.intent, o.place, o.thing, o.desk, o.ticket_id, o.ticket_version, o.reason, o.detail, o.created_at, o.opened_at,
       o.ended_at, o.intent_key, o.closed_version, o.desk_problem, o.kind,
       o.risks, o.editor,
       r.number AS run_number, r.goal,
       r.status AS run_status,
       a.id AS approval_id, a.status AS approval_status, a.terms,
       a.decide_by, a.use_by
FROM operations o
JOIN runs r ON r.tenant_id = o.tenant_id AND r.id = o.run_id
JOIN approvals a ON a.tenant_id = o.tenant_id AND a.operation_id = o.id
    AND a.repeats_attempt IS NULL
WHERE o.tenant_id = :tenant AND o.id = :id;

-- name: show_effects
-- Read the parts of one operation as its card shows them.
SELECT id, kind, status, provider, capability, promise FROM effects
WHERE tenant_id = :tenant AND operation_id = :id ORDER BY position;

-- name: show_attempts
-- Read the tries of one operation as its card shows them.
SELECT id, effect_id, number, status, evidence, opened_at, conclude_at, reported_at, recover_at,
       capability, lookups, key_window_seconds
FROM attempts
WHERE tenant_id = :tenant AND operation_id = :id ORDER BY effect_id, number;

-- name: show_words
-- Read what people said about some attempts of one run, in the order in which they said it.
SELECT actor, detail, recorded_at FROM journal
WHERE tenant_id = :tenant AND subject = :run AND machine IS NULL AND event = :event
  AND entity_id = ANY(CAST(:attempts AS uuid[]))
ORDER BY position;

-- name: operations_in_doubt
-- Find operations of which nobody knows whether they were done, of one tenant or of all where that
-- is NULL, the longest first, or the one of that number. An open attempt counts from when it could
-- have been concluded; tries at a part that is known by now, which stay unknown, count for nothing.
SELECT d.*
FROM (
    SELECT o.tenant_id, o.id, o.number,
           min(coalesce(a.reported_at, a.conclude_at)) AS since,
           min(a.recover_at) AS recover_at,
           (array_agg(a.id ORDER BY a.number DESC))[1] AS attempt_id,
           signoff_clock() AS now
    FROM operations o
    JOIN effects e ON e.tenant_id = o.tenant_id AND e.operation_id = o.id
        AND e.status IN ('unknown', 'dispatched')
    JOIN attempts a ON a.tenant_id = e.tenant_id AND a.effect_id = e.id
        AND ((o.status = 'unknown' AND a.status = 'unknown')
             OR (o.status = 'executing' AND a.status = 'dispatched'
                 AND a.conclude_at < signoff_clock()))
    WHERE o.status IN ('unknown', 'executing')
      AND (CAST(:number AS bigint) IS NULL OR o.number = CAST(:number AS bigint))
      AND (CAST(:tenant AS text) IS NULL OR o.tenant_id = CAST(:tenant AS text))
    GROUP BY o.tenant_id, o.id, o.number
) AS d
ORDER BY d.since, d.tenant_id, d.number
LIMIT :most;

-- name: count_operations_in_doubt
-- Count the operations that stand unknown, of all tenants.
SELECT count(*) AS found FROM operations WHERE status = 'unknown';

-- name: operation_by_number
-- Find one tenant's operation by the number that people use.
SELECT id FROM operations WHERE tenant_id = :tenant AND number = :number;
