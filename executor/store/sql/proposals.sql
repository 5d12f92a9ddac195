-- name: insert_proposals
-- Record which tool call proposed which operation; the same call again is refused by the key.
INSERT INTO proposals (tenant_id, run_id, step, ordinal, operation_id, requester, linked, proposed_at)
SELECT tenant_id, run_id, step, ordinal, operation_id, requester, linked, :now
FROM unnest(CAST(:tenants AS text[]), CAST(:runs AS uuid[]), CAST(:steps AS integer[]),
            CAST(:ordinals AS integer[]), CAST(:operations AS uuid[]), CAST(:requesters AS text[]),
            CAST(:linkeds AS boolean[]))
    AS p (tenant_id, run_id, step, ordinal, operation_id, requester, linked);

-- name: proposals_of_run
-- Read what a run's tool calls proposed and how far each operation is; of the call of a tool, also
-- what its newest attempt rests on, which holds what the tool returned.
SELECT p.step, p.ordinal, p.operation_id, p.linked, o.number, o.status, o.reason, o.detail, o.intent,
       o.editor, o.kind,
       CASE WHEN o.kind = 'call_tool' THEN
           (SELECT a.evidence FROM attempts a
            WHERE a.tenant_id = o.tenant_id AND a.operation_id = o.id
            ORDER BY a.status = 'applied' DESC, a.number DESC LIMIT 1)
       END AS evidence
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

-- name: proposals_of_operation
-- Read which tool calls proposed one operation, and whether each has been answered already.
SELECT p.run_id, p.step, p.ordinal, p.requester, p.linked, s.number IS NOT NULL AS answered
FROM proposals p
LEFT JOIN steps s ON s.tenant_id = p.tenant_id AND s.run_id = p.run_id
    AND s.answers_step = p.step AND s.answers_ordinal = p.ordinal
WHERE p.tenant_id = :tenant AND p.operation_id = :operation
ORDER BY p.run_id, p.step, p.ordinal;

-- name: repoint_proposals
-- Let tool calls wait for another operation than before.
UPDATE proposals p SET operation_id = :operation
FROM unnest(CAST(:runs AS uuid[]), CAST(:steps AS integer[]), CAST(:ordinals AS integer[]))
    AS w (run_id, step, ordinal)
WHERE p.tenant_id = :tenant AND p.run_id = w.run_id AND p.step = w.step AND p.ordinal = w.ordinal
RETURNING p.run_id;

-- name: insert_askers
-- Name people who asked for an operation without a tool call; they stand before a run's first step.
INSERT INTO proposals (tenant_id, run_id, step, ordinal, operation_id, requester, linked, proposed_at)
SELECT :tenant, :run, 0,
       (SELECT count(*) FROM proposals p
        WHERE p.tenant_id = :tenant AND p.run_id = :run AND p.step = 0) + w.position,
       :operation, w.requester, false, :now
FROM unnest(CAST(:requesters AS text[])) WITH ORDINALITY AS w (requester, position);
