-- name: admit_to_queue
-- Say how many of the asked runs may join a tenant's queue; holds as many places there until COMMIT.
SELECT admitted, waiting
FROM admit_to_queue(CAST(:tenant AS text), CAST(:asked AS integer), CAST(:most AS integer));

-- name: count_places
-- Count a tenant's runs at work, and say how many there may be; takes no lock.
SELECT p.max_active_runs,
       (SELECT count(*) FROM runs r WHERE r.tenant_id = t.id AND r.lease_owner IS NOT NULL) AS at_work
FROM tenants t JOIN policies p ON p.tenant_id = t.id AND p.version = t.policy_version
WHERE t.id = :tenant;

-- name: count_queue
-- Count a tenant's runs that wait to begin.
SELECT count(*) AS queued FROM runs WHERE tenant_id = :tenant AND status = 'queued' AND driven;

-- name: tenants_with_due_runs
-- Find tenants of which a run can be claimed, whoever was served longest ago first; takes no lock. Goes
-- from tenant to tenant through the index, past however many runs each of them has there (one by one, in
-- order: EXISTS would let the planner read all of them at once). A run that is taken over has a place.
WITH RECURSIVE scheduled AS (
    (SELECT tenant_id FROM runs WHERE due_at IS NOT NULL ORDER BY tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT r.tenant_id FROM runs r WHERE r.due_at IS NOT NULL AND r.tenant_id > s.tenant_id
            ORDER BY r.tenant_id LIMIT 1)
    FROM scheduled s WHERE s.tenant_id IS NOT NULL
)
SELECT s.tenant_id
FROM scheduled s
JOIN turns u ON u.tenant_id = s.tenant_id AND u.work = 'run'
JOIN tenants t ON t.id = s.tenant_id
JOIN policies p ON p.tenant_id = t.id AND p.version = t.policy_version
WHERE s.tenant_id <> ALL (CAST(:tried AS text[]))
  AND ((SELECT true FROM runs r
        WHERE r.tenant_id = s.tenant_id AND r.lease_owner IS NOT NULL
          AND r.due_at <= (SELECT signoff_clock())
        ORDER BY r.due_at LIMIT 1)
       OR (SELECT true FROM runs r
           WHERE r.tenant_id = s.tenant_id AND r.due_at <= (SELECT signoff_clock())
             AND r.lease_owner IS NULL AND r.status IN ('queued', 'running', 'waiting', 'paused')
           ORDER BY r.due_at LIMIT 1)
          AND p.max_active_runs > (SELECT count(*) FROM runs r
                                   WHERE r.tenant_id = s.tenant_id AND r.lease_owner IS NOT NULL))
ORDER BY u.served, s.tenant_id
LIMIT :most;

-- name: tenants_with_due_operations
-- Find tenants of which an operation can be claimed, whoever was served longest ago first; takes no
-- lock. Goes from tenant to tenant through the index.
WITH RECURSIVE scheduled AS (
    (SELECT tenant_id FROM operations WHERE due_at IS NOT NULL ORDER BY tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT o.tenant_id FROM operations o WHERE o.due_at IS NOT NULL AND o.tenant_id > s.tenant_id
            ORDER BY o.tenant_id LIMIT 1)
    FROM scheduled s WHERE s.tenant_id IS NOT NULL
)
SELECT s.tenant_id
FROM scheduled s
JOIN turns u ON u.tenant_id = s.tenant_id AND u.work = 'operation'
WHERE s.tenant_id <> ALL (CAST(:tried AS text[]))
  AND (SELECT true FROM operations o
       WHERE o.tenant_id = s.tenant_id AND o.due_at <= (SELECT signoff_clock())
         AND o.status IN ('approved', 'executing')
       ORDER BY o.due_at LIMIT 1)
ORDER BY u.served, s.tenant_id
LIMIT :most;

-- name: take_turns
-- Take the turns of tenants whom nobody else serves just now: they come last from now on.
UPDATE turns u SET served = nextval('turns_served')
FROM (SELECT tenant_id FROM turns WHERE work = :work AND tenant_id = ANY (CAST(:tenants AS text[]))
      ORDER BY tenant_id FOR UPDATE SKIP LOCKED) mine
WHERE u.tenant_id = mine.tenant_id AND u.work = :work
RETURNING u.tenant_id;

-- name: wait_for_turns
-- Take the turns of tenants when whoever serves them has committed; only for whoever holds no turn.
UPDATE turns u SET served = nextval('turns_served')
FROM (SELECT tenant_id FROM turns WHERE work = :work AND tenant_id = ANY (CAST(:tenants AS text[]))
      ORDER BY tenant_id FOR UPDATE) mine
WHERE u.tenant_id = mine.tenant_id AND u.work = :work
RETURNING u.tenant_id;
