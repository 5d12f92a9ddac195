-- name: open_run_budgets
-- Give new runs what they may spend in all.
INSERT INTO run_budgets (tenant_id, run_id, limit_microusd)
SELECT * FROM unnest(CAST(:tenants AS text[]), CAST(:runs AS uuid[]), CAST(:limits AS bigint[]));

-- name: lock_run_budgets
-- Lock what runs may spend, have spent and hold.
SELECT b.tenant_id, b.run_id, b.limit_microusd, b.spent_microusd, b.held_microusd, b.unknown_microusd
FROM run_budgets b
JOIN unnest(CAST(:tenants AS text[]), CAST(:runs AS uuid[])) AS w (tenant_id, run_id)
    USING (tenant_id, run_id)
ORDER BY b.tenant_id, b.run_id
FOR UPDATE OF b;

-- name: open_tenant_days
-- Begin days that have no row yet.
INSERT INTO tenant_days (tenant_id, day)
SELECT * FROM unnest(CAST(:tenants AS text[]), CAST(:days AS date[]))
ON CONFLICT (tenant_id, day) DO NOTHING;

-- name: lock_tenant_days
-- Lock what tenants have spent and hold on these days, and what was added to the policy's limit.
SELECT d.tenant_id, d.day, d.raised_microusd, d.spent_microusd, d.held_microusd, d.unknown_microusd
FROM tenant_days d
JOIN unnest(CAST(:tenants AS text[]), CAST(:days AS date[])) AS w (tenant_id, day)
    USING (tenant_id, day)
ORDER BY d.tenant_id, d.day
FOR UPDATE OF d;

-- name: insert_reservations
-- Hold money before calls.
WITH asked AS (
    SELECT * FROM unnest(
        CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:runs AS uuid[]), CAST(:days AS date[]),
        CAST(:purposes AS text[]), CAST(:amounts AS bigint[]), CAST(:deadlines AS timestamptz[]),
        CAST(:attempts AS uuid[])
    ) AS a (tenant_id, id, run_id, day, purpose, amount_microusd, deadline_at, attempt_id)
), inserted AS (
    INSERT INTO reservations (tenant_id, id, seq, status, run_id, day, purpose, amount_microusd,
                              reserved_at, deadline_at, attempt_id)
    SELECT tenant_id, id, 1, 'held', run_id, day, purpose, amount_microusd, :now, deadline_at,
           attempt_id
    FROM asked
    RETURNING tenant_id, id
)
INSERT INTO journal (tenant_id, subject, position, machine, entity_id, seq, source, target,
                     event, actor, detail, recorded_at, previous_hash, hash)
SELECT e.* FROM journal_entries(CAST(:entries AS jsonb)) AS e
JOIN inserted i ON i.tenant_id = e.tenant_id AND i.id = e.entity_id;

-- name: lock_reservations
-- Lock reservations by id, in order.
SELECT r.tenant_id, r.id, r.seq, r.status, r.run_id, r.day, r.amount_microusd
FROM reservations r
JOIN unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[])) AS w (tenant_id, id) USING (tenant_id, id)
ORDER BY r.tenant_id, r.id
FOR UPDATE OF r;

-- name: move_reservations
-- Settle, void or lose sight of reservations where they still are in their source.
WITH moves AS (
    SELECT * FROM unnest(
        CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:seqs AS integer[]),
        CAST(:sources AS text[]), CAST(:targets AS text[]), CAST(:actuals AS bigint[])
    ) AS m (tenant_id, id, seq, source, target, actual_microusd)
), moved AS (
    UPDATE reservations r
    SET status = m.target, seq = m.seq + 1, actual_microusd = m.actual_microusd
    FROM moves m
    WHERE r.tenant_id = m.tenant_id AND r.id = m.id AND r.seq = m.seq AND r.status = m.source
    RETURNING r.tenant_id, r.id
), written AS (
    INSERT INTO journal (tenant_id, subject, position, machine, entity_id, seq, source, target,
                         event, actor, detail, recorded_at, previous_hash, hash)
    SELECT e.* FROM journal_entries(CAST(:entries AS jsonb)) AS e
    JOIN moved ON moved.tenant_id = e.tenant_id AND moved.id = e.entity_id
)
SELECT id FROM moved;

-- name: add_to_run_budgets
-- Change what locked runs have spent and hold.
UPDATE run_budgets b
SET spent_microusd = b.spent_microusd + w.spent, held_microusd = b.held_microusd + w.held,
    unknown_microusd = b.unknown_microusd + w.unknown
FROM unnest(CAST(:tenants AS text[]), CAST(:runs AS uuid[]), CAST(:spent AS bigint[]),
            CAST(:held AS bigint[]), CAST(:unknown AS bigint[]))
    AS w (tenant_id, run_id, spent, held, unknown)
WHERE b.tenant_id = w.tenant_id AND b.run_id = w.run_id;

-- name: add_to_tenant_days
-- Change what locked days have spent and hold.
UPDATE tenant_days d
SET spent_microusd = d.spent_microusd + w.spent, held_microusd = d.held_microusd + w.held,
    unknown_microusd = d.unknown_microusd + w.unknown
FROM unnest(CAST(:tenants AS text[]), CAST(:days AS date[]), CAST(:spent AS bigint[]),
            CAST(:held AS bigint[]), CAST(:unknown AS bigint[]))
    AS w (tenant_id, day, spent, held, unknown)
WHERE d.tenant_id = w.tenant_id AND d.day = w.day;

-- name: reservations_past_their_deadline
-- Find held reservations whose call must be over.
SELECT tenant_id, id FROM reservations
WHERE status = 'held' AND deadline_at <= (SELECT signoff_clock()) ORDER BY deadline_at LIMIT :most;

-- name: reservations_of_concluded_attempts
-- Find what is held for attempts of which it is known, not only said, what they came to.
SELECT v.tenant_id, v.id, v.amount_microusd, a.status
FROM reservations v
JOIN attempts a ON a.tenant_id = v.tenant_id AND a.id = v.attempt_id
WHERE v.attempt_id IS NOT NULL AND v.status IN ('held', 'unknown')
  AND (a.status = 'applied' OR a.status = 'not_applied' AND NOT a.evidence ? CAST(:word AS text))
LIMIT :most;

-- name: raise_run_limit
-- Let a run spend more, if its limit still is what was looked at.
UPDATE run_budgets SET limit_microusd = :to_limit
WHERE tenant_id = :tenant AND run_id = :run AND limit_microusd = :from_limit
RETURNING run_id;

-- name: raise_day_limit
-- Let a tenant spend more on one day; the day may have no row yet.
INSERT INTO tenant_days AS d (tenant_id, day, raised_microusd) VALUES (:tenant, :day, :by)
ON CONFLICT (tenant_id, day) DO UPDATE
SET raised_microusd = d.raised_microusd + excluded.raised_microusd;

-- name: account_of_run
-- Read what a run may spend, has spent and holds.
SELECT limit_microusd, spent_microusd, held_microusd, unknown_microusd
FROM run_budgets WHERE tenant_id = :tenant AND run_id = :run;

-- name: account_of_day
-- Read what a tenant has spent and holds on a day, and what was added to the policy's limit.
SELECT raised_microusd, spent_microusd, held_microusd, unknown_microusd
FROM tenant_days WHERE tenant_id = :tenant AND day = :day;

-- name: unknown_charges
-- Read one tenant's calls of which nobody knows what they cost, oldest first.
SELECT v.id, v.run_id, r.number AS run, v.day, v.purpose, v.amount_microusd, v.reserved_at,
       v.deadline_at, c.model, c.request_digest, c.response_id
FROM reservations v
JOIN runs r ON r.tenant_id = v.tenant_id AND r.id = v.run_id
LEFT JOIN model_calls c ON c.tenant_id = v.tenant_id AND c.reservation_id = v.id
WHERE v.tenant_id = :tenant AND v.status = 'unknown'
  AND (CAST(:run AS uuid) IS NULL OR v.run_id = :run)
  AND (CAST(:day AS date) IS NULL OR v.day = :day)
ORDER BY v.reserved_at, v.id
LIMIT :most;
