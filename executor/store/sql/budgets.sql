-- name: open_run_budgets
-- Give new runs what they may spend in all.
INSERT INTO run_budgets (tenant_id, run_id, limit_microusd)
SELECT * FROM unnest(CAST(:tenants AS text[]), CAST(:runs AS uuid[]), CAST(:limits AS bigint[]));

-- name: lock_run_budgets
-- Lock what runs may spend, have spent and hold.
SELECT b.tenant_id, b.run_id, b.limit_microusd, b.spent_microusd, b.held_microusd
FROM run_budgets b
JOIN unnest(CAST(:tenants AS text[]), CAST(:runs AS uuid[])) AS w (tenant_id, run_id)
    USING (tenant_id, run_id)
ORDER BY b.tenant_id, b.run_id
FOR UPDATE OF b;

-- name: open_tenant_days
-- Begin days that have no row yet, at the policy's limit.
INSERT INTO tenant_days (tenant_id, day, limit_microusd)
SELECT * FROM unnest(CAST(:tenants AS text[]), CAST(:days AS date[]), CAST(:limits AS bigint[]))
ON CONFLICT (tenant_id, day) DO NOTHING;

-- name: lock_tenant_days
-- Lock what tenants may spend, have spent and hold on these days.
SELECT d.tenant_id, d.day, d.limit_microusd, d.spent_microusd, d.held_microusd
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
        CAST(:purposes AS text[]), CAST(:amounts AS bigint[]), CAST(:deadlines AS timestamptz[])
    ) AS a (tenant_id, id, run_id, day, purpose, amount_microusd, deadline_at)
), inserted AS (
    INSERT INTO reservations (tenant_id, id, seq, status, run_id, day, purpose, amount_microusd,
                              reserved_at, deadline_at)
    SELECT tenant_id, id, 1, 'held', run_id, day, purpose, amount_microusd, :now, deadline_at
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
SET spent_microusd = b.spent_microusd + w.spent, held_microusd = b.held_microusd + w.held
FROM unnest(CAST(:tenants AS text[]), CAST(:runs AS uuid[]), CAST(:spent AS bigint[]),
            CAST(:held AS bigint[])) AS w (tenant_id, run_id, spent, held)
WHERE b.tenant_id = w.tenant_id AND b.run_id = w.run_id;

-- name: add_to_tenant_days
-- Change what locked days have spent and hold.
UPDATE tenant_days d
SET spent_microusd = d.spent_microusd + w.spent, held_microusd = d.held_microusd + w.held
FROM unnest(CAST(:tenants AS text[]), CAST(:days AS date[]), CAST(:spent AS bigint[]),
            CAST(:held AS bigint[])) AS w (tenant_id, day, spent, held)
WHERE d.tenant_id = w.tenant_id AND d.day = w.day;

-- name: reservations_past_their_deadline
-- Find held reservations whose call must be over.
SELECT tenant_id, id FROM reservations
WHERE status = 'held' AND deadline_at <= (SELECT signoff_clock()) ORDER BY deadline_at LIMIT :most;
