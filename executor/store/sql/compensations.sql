-- name: closings_to_compensate
-- Find closings whose email was not sent and of whose ticket nothing has been decided yet; tenants take
-- turns.
SELECT tenant_id, id FROM (
    SELECT tenant_id, id, compensate_at,
           row_number() OVER (PARTITION BY tenant_id ORDER BY compensate_at) AS place
    FROM operations WHERE compensate_at <= (SELECT signoff_clock())
) due
ORDER BY place, compensate_at LIMIT :most;

-- name: plan_compensations
-- Say when closings are looked at again for a reopening; NULL: one was asked for.
UPDATE operations o SET compensate_at = w.at
FROM unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:ats AS timestamptz[]))
    AS w (tenant_id, id, at)
WHERE o.tenant_id = w.tenant_id AND o.id = w.id AND o.status = 'partial'
RETURNING o.id;

-- name: reopenings_of
-- Find the reopenings among these operations, and those of the closings among them.
WITH named AS (
    SELECT * FROM unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[])) AS w (tenant_id, id)
)
SELECT o.tenant_id, o.id, o.run_id, o.compensates
FROM operations o JOIN named USING (tenant_id, id) WHERE o.compensates IS NOT NULL
UNION
SELECT o.tenant_id, o.id, o.run_id, o.compensates
FROM operations o JOIN named n ON n.tenant_id = o.tenant_id AND n.id = o.compensates
WHERE o.compensates IS NOT NULL
ORDER BY 1, 2;

-- name: show_reopening
-- Read the operation that would undo a closing, as the closing's card shows it; takes no lock.
SELECT o.number, o.status, a.decide_by
FROM operations o
JOIN approvals a ON a.tenant_id = o.tenant_id AND a.operation_id = o.id
    AND a.repeats_attempt IS NULL
WHERE o.tenant_id = :tenant AND o.compensates = :id;
