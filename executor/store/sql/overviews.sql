-- name: operations_to_decide
-- Read what is shown and waits for votes, the most urgent first, with who has asked and voted; takes
-- no lock.
SELECT o.id, o.number, o.kind, o.place, o.thing, o.requester, o.editor, o.risks, o.created_at,
       a.terms, a.decide_by,
       ARRAY(SELECT DISTINCT p.requester FROM proposals p
             WHERE p.tenant_id = o.tenant_id AND p.operation_id = o.id) AS asked_by,
       (SELECT COALESCE(jsonb_agg(jsonb_build_array(d.principal, d.vote, d.second_factor)
                                  ORDER BY d.decided_at, d.principal), '[]')
        FROM decisions d
        WHERE d.tenant_id = a.tenant_id AND d.approval_id = a.id) AS votes
FROM approvals a
JOIN operations o ON o.tenant_id = a.tenant_id AND o.id = a.operation_id
WHERE a.tenant_id = :tenant AND a.status = 'open' AND a.repeats_attempt IS NULL
  AND a.decide_by > (SELECT signoff_clock()) AND o.status = 'awaiting'
ORDER BY a.decide_by, o.number LIMIT :most;

-- name: runs_of_requester
-- Read the runs of one person that have not ended, the newest first, and how many there are.
SELECT id, number, status, goal, created_at, count(*) OVER () AS all_of_them
FROM runs
WHERE tenant_id = :tenant AND requester = :requester AND ended_at IS NULL
ORDER BY number DESC LIMIT :most;

-- name: operations_about
-- Read what some operations are about, and who asked for each; takes no lock.
SELECT o.id, o.number, o.kind, o.place, o.thing, o.requester, o.risks
FROM operations o
WHERE o.tenant_id = :tenant AND o.id = ANY(CAST(:ids AS uuid[]));
