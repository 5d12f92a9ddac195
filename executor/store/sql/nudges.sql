-- name: approvals_to_nudge_about
-- Find open approvals that people are to be reminded of; takes no lock; tenants take turns.
SELECT tenant_id, operation_id FROM (
    SELECT tenant_id, operation_id, nudge_at,
           row_number() OVER (PARTITION BY tenant_id ORDER BY nudge_at) AS place
    FROM approvals WHERE status = 'open' AND nudge_at <= (SELECT signoff_clock())
) due
ORDER BY place, nudge_at LIMIT :most;

-- name: nudges_made
-- Read how many nudges of these approvals were made or passed over; their operations are locked.
SELECT tenant_id, id, nudges_made FROM approvals
JOIN unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[])) AS w (tenant_id, id) USING (tenant_id, id);

-- name: count_nudges
-- Keep how many nudges of an approval are over, and when the next one is due.
UPDATE approvals a SET nudges_made = w.made, nudge_at = w.next_at
FROM unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:made AS integer[]),
            CAST(:next_ats AS timestamptz[])) AS w (tenant_id, id, made, next_at)
WHERE a.tenant_id = w.tenant_id AND a.id = w.id;

-- name: insert_nudges
-- Record whom people were reminded of what; each becomes a message.
INSERT INTO nudges (tenant_id, id, operation_id, approval_id, kind, whom, made_at)
SELECT tenant_id, id, operation_id, approval_id, kind, CAST(whom AS jsonb), :now
FROM unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:operations AS uuid[]),
            CAST(:approvals AS uuid[]), CAST(:kinds AS text[]), CAST(:whoms AS text[]))
    AS n (tenant_id, id, operation_id, approval_id, kind, whom);

-- name: show_nudge
-- Read one nudge as its message tells it; takes no lock.
SELECT n.id, n.operation_id, n.kind, n.whom, n.made_at, o.number, o.status, a.decide_by
FROM nudges n
JOIN operations o ON o.tenant_id = n.tenant_id AND o.id = n.operation_id
JOIN approvals a ON a.tenant_id = n.tenant_id AND a.id = n.approval_id
WHERE n.tenant_id = :tenant AND n.id = :id;

-- name: nudges_of_operation
-- Read all nudges about one operation, oldest first.
SELECT kind, whom, made_at FROM nudges
WHERE tenant_id = :tenant AND operation_id = :operation ORDER BY made_at, id;

-- name: end_nudges
-- Let reminders of what does not wait any more say so, and return them.
UPDATE nudges SET over_at = signoff_clock()
WHERE (tenant_id, id) IN (
    SELECT n.tenant_id, n.id FROM nudges n
    JOIN operations o ON o.tenant_id = n.tenant_id AND o.id = n.operation_id
    WHERE n.over_at IS NULL AND o.status <> 'awaiting'
    ORDER BY n.made_at LIMIT :most
    FOR UPDATE OF n SKIP LOCKED)
RETURNING tenant_id, id;
