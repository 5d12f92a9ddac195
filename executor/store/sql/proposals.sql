-- name: insert_proposals
-- Record which tool call proposed which operation; the same call again is refused by the key.
INSERT INTO proposals (tenant_id, run_id, step, ordinal, operation_id, requester, linked, proposed_at)
SELECT tenant_id, run_id, step, ordinal, operation_id, requester, linked, :now
FROM unnest(CAST(:tenants AS text[]), CAST(:runs AS uuid[]), CAST(:steps AS integer[]),
            CAST(:ordinals AS integer[]), CAST(:operations AS uuid[]), CAST(:requesters AS text[]),
            CAST(:linkeds AS boolean[]))
    AS p (tenant_id, run_id, step, ordinal, operation_id, requester, linked);

-- name: proposals_of_run
-- Read what a run's tool calls proposed and how far each operation is.
SELECT p.step, p.ordinal, p.operation_id, p.linked, o.number, o.status, o.reason, o.detail, o.intent
FROM proposals p
JOIN operations o ON o.tenant_id = p.tenant_id AND o.id = p.operation_id
WHERE p.tenant_id = :tenant AND p.run_id = :run
ORDER BY p.step, p.ordinal;

-- name: runs_that_wait_for
-- Find the runs whose proposals named these operations.
SELECT DISTINCT p.tenant_id, p.run_id
FROM proposals p
JOIN unnest(CAST(:tenants AS text[]), CAST(:operations AS uuid[])) AS w (tenant_id, operation_id)
    USING (tenant_id, operation_id);

-- name: requesters_of
-- Read who asked for these operations, linked requesters included.
SELECT DISTINCT p.tenant_id, p.operation_id, p.requester, p.linked
FROM proposals p
JOIN unnest(CAST(:tenants AS text[]), CAST(:operations AS uuid[])) AS w (tenant_id, operation_id)
    USING (tenant_id, operation_id)
ORDER BY p.tenant_id, p.operation_id, p.requester;
