-- name: charges_by_name
-- Find one tenant's charges, of whatever status, whose ids end like this; the last eight digits are
-- in an index.
SELECT v.id, v.run_id, r.number AS run, v.day, v.purpose, v.status, v.amount_microusd,
       v.actual_microusd, v.deadline_at
FROM reservations v
JOIN runs r ON r.tenant_id = v.tenant_id AND r.id = v.run_id
WHERE v.tenant_id = :tenant
  AND right(CAST(v.id AS text), 8) = right(CAST(:name AS text), 8)
  AND right(replace(CAST(v.id AS text), '-', ''), length(CAST(:name AS text))) = :name
ORDER BY v.reserved_at, v.id
LIMIT 2;

-- name: end_of_charge
-- Read by whom and when a charge was settled or voided, and what the journal keeps of it.
SELECT j.actor, j.detail, j.recorded_at
FROM journal j
WHERE j.tenant_id = :tenant AND j.machine = 'reservation' AND j.entity_id = :id
  AND j.target IN ('settled', 'voided')
ORDER BY j.seq DESC
LIMIT 1;

-- name: runs_short_of_money
-- Read the runs that are paused, and those with calls of which nobody knows what they cost, newest
-- first; of all people or of one.
WITH concerned AS (
    SELECT p.run_id AS id FROM pauses p WHERE p.tenant_id = :tenant
    UNION
    SELECT v.run_id FROM reservations v WHERE v.tenant_id = :tenant AND v.status = 'unknown'
)
SELECT r.id, r.number, r.status, b.limit_microusd, b.spent_microusd, b.held_microusd,
       b.unknown_microusd, p.scope, p.needed_microusd
FROM concerned c
JOIN runs r ON r.tenant_id = :tenant AND r.id = c.id
JOIN run_budgets b ON b.tenant_id = r.tenant_id AND b.run_id = r.id
LEFT JOIN pauses p ON p.tenant_id = r.tenant_id AND p.run_id = r.id AND r.status = 'paused'
WHERE (r.status = 'paused' OR b.unknown_microusd > 0)
  AND (CAST(:requester AS text) IS NULL OR r.requester = :requester)
ORDER BY r.number DESC
LIMIT :most;
