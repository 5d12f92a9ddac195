-- name: insert_runs
-- Queue runs, each once for what started it; an origin that is known already inserts nothing (T0).
WITH asked AS (
    SELECT * FROM unnest(
        CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:goals AS text[]),
        CAST(:requesters AS text[]), CAST(:origin_keys AS text[]), CAST(:digests AS bytea[]),
        CAST(:reply_tos AS text[]), CAST(:policy_versions AS text[]), CAST(:deadlines AS timestamptz[]),
        CAST(:drivens AS boolean[]), CAST(:max_parkeds AS integer[])
    ) AS a (tenant_id, id, goal, requester, origin_key, request_digest, reply_to, policy_version,
            deadline_at, driven, max_parked_seconds)
), inserted AS (
    INSERT INTO runs (tenant_id, id, seq, status, goal, requester, origin_key, request_digest,
                      reply_to, policy_version, driven, due_at, created_at, deadline_at,
                      max_parked_seconds)
    SELECT tenant_id, id, 1, 'queued', goal, requester, origin_key, request_digest,
           CAST(reply_to AS jsonb), policy_version, driven, CASE WHEN driven THEN CAST(:now AS timestamptz) END,
           :now,
           deadline_at, max_parked_seconds
    FROM asked
    ORDER BY tenant_id, origin_key
    ON CONFLICT (tenant_id, origin_key) DO NOTHING
    RETURNING tenant_id, id, number
), written AS (
    INSERT INTO journal (tenant_id, subject, position, machine, entity_id, seq, source, target,
                         event, actor, detail, recorded_at, previous_hash, hash)
    SELECT e.* FROM journal_entries(CAST(:entries AS jsonb)) AS e
    JOIN inserted i ON i.tenant_id = e.tenant_id AND i.id = e.entity_id
)
SELECT tenant_id, id, number FROM inserted;

-- name: runs_by_origin
-- Find the runs that these origins started.
SELECT r.tenant_id, r.id, r.number, r.origin_key, r.request_digest
FROM runs r
JOIN unnest(CAST(:tenants AS text[]), CAST(:origin_keys AS text[])) AS w (tenant_id, origin_key)
    USING (tenant_id, origin_key);

-- name: due_runs
-- Lock runs whose time has come, of tenants whose turns this transaction has: one of each in turn, then
-- the next of each, each tenant's oldest first, skipping those that somebody else holds just now. A run
-- that is taken over keeps its place at work; every other one needs a free place.
WITH asked AS (
    SELECT a.tenant_id, a.turn,
           p.max_active_runs - (SELECT count(*) FROM runs w
                                WHERE w.tenant_id = a.tenant_id AND w.lease_owner IS NOT NULL) AS places
    FROM unnest(CAST(:tenants AS text[])) WITH ORDINALITY AS a (tenant_id, turn)
    JOIN tenants t ON t.id = a.tenant_id
    JOIN policies p ON p.tenant_id = t.id AND p.version = t.policy_version
), candidates AS (
    SELECT a.tenant_id, a.turn, c.held,
           row_number() OVER (PARTITION BY a.tenant_id ORDER BY c.due_at, c.number) AS place
    FROM asked a CROSS JOIN LATERAL (
        (SELECT r.due_at, r.number, true AS held FROM runs r
         WHERE r.tenant_id = a.tenant_id AND r.lease_owner IS NOT NULL
           AND r.due_at <= (SELECT signoff_clock())
         ORDER BY r.due_at, r.number LIMIT :most)
        UNION ALL
        (SELECT r.due_at, r.number, false FROM runs r
         WHERE r.tenant_id = a.tenant_id AND r.due_at <= (SELECT signoff_clock())
           AND r.lease_owner IS NULL AND r.status IN ('queued', 'running', 'waiting', 'paused')
         ORDER BY r.due_at, r.number LIMIT LEAST(:most, GREATEST(a.places, 0)))
    ) c
), shares AS (
    SELECT tenant_id, held, count(*) AS share
    FROM (SELECT tenant_id, held FROM candidates ORDER BY place, turn LIMIT :most) dealt
    GROUP BY tenant_id, held
), taken_over AS (
    SELECT f.* FROM shares s CROSS JOIN LATERAL (
        SELECT r.tenant_id, r.id, r.number, r.seq, r.status, r.goal, r.requester, r.policy_version, r.reason,
               r.lease_owner, r.lease_epoch, r.created_at, r.deadline_at, r.driven, r.parked_until
        FROM runs r
        WHERE r.tenant_id = s.tenant_id AND r.lease_owner IS NOT NULL
          AND r.due_at <= (SELECT signoff_clock())
        ORDER BY r.due_at, r.number LIMIT s.share
        FOR UPDATE SKIP LOCKED
    ) f WHERE s.held
), given_a_place AS (
    SELECT f.* FROM shares s CROSS JOIN LATERAL (
        SELECT r.tenant_id, r.id, r.number, r.seq, r.status, r.goal, r.requester, r.policy_version, r.reason,
               r.lease_owner, r.lease_epoch, r.created_at, r.deadline_at, r.driven, r.parked_until
        FROM runs r
        WHERE r.tenant_id = s.tenant_id AND r.due_at <= (SELECT signoff_clock())
          AND r.lease_owner IS NULL AND r.status IN ('queued', 'running', 'waiting', 'paused')
        ORDER BY r.due_at, r.number LIMIT s.share
        FOR UPDATE SKIP LOCKED
    ) f WHERE NOT s.held
)
SELECT * FROM taken_over UNION ALL SELECT * FROM given_a_place;

-- name: lock_runs
-- Lock runs by id, in order, waiting for whoever holds them.
SELECT r.tenant_id, r.id, r.number, r.seq, r.status, r.goal, r.requester, r.policy_version, r.reason,
       r.lease_owner, r.lease_epoch, r.created_at, r.deadline_at, r.driven, r.parked_until
FROM runs r
JOIN unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[])) AS w (tenant_id, id) USING (tenant_id, id)
ORDER BY r.tenant_id, r.id
FOR UPDATE OF r;

-- name: lease_runs
-- Give runs to a worker: a new epoch, an end of the lease, and the move to running where they were not.
WITH taken AS (
    SELECT * FROM unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:sources AS text[]),
                         CAST(:seqs AS integer[])) AS t (tenant_id, id, source, seq)
), leased AS (
    UPDATE runs r
    SET status = 'running', seq = t.seq, lease_owner = :owner, lease_epoch = r.lease_epoch + 1,
        lease_until = :until, due_at = :until, parked_until = NULL,
        takeovers = r.takeovers + CASE WHEN r.lease_owner IS NULL THEN 0 ELSE 1 END
    FROM taken t
    WHERE r.tenant_id = t.tenant_id AND r.id = t.id AND r.status = t.source
    RETURNING r.tenant_id, r.id, r.lease_epoch, r.takeovers
), written AS (
    INSERT INTO journal (tenant_id, subject, position, machine, entity_id, seq, source, target,
                         event, actor, detail, recorded_at, previous_hash, hash)
    SELECT e.* FROM journal_entries(CAST(:entries AS jsonb)) AS e
    JOIN leased l ON l.tenant_id = e.tenant_id AND l.id = e.entity_id
)
SELECT tenant_id, id, lease_epoch, takeovers FROM leased;

-- name: move_runs
-- Move runs where they still are in their source; a move always ends the lease. How long a run is
-- parked counts from when it left its worker.
WITH moves AS (
    SELECT * FROM unnest(
        CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:seqs AS integer[]),
        CAST(:sources AS text[]), CAST(:targets AS text[]), CAST(:reasons AS text[]),
        CAST(:summaries AS text[]), CAST(:due_ats AS timestamptz[]), CAST(:ended_ats AS timestamptz[])
    ) AS m (tenant_id, id, seq, source, target, reason, summary, due_at, ended_at)
), moved AS (
    UPDATE runs r
    SET status = m.target, seq = m.seq + 1, reason = COALESCE(m.reason, r.reason),
        summary = COALESCE(m.summary, r.summary), due_at = m.due_at, ended_at = m.ended_at,
        lease_owner = NULL, lease_until = NULL,
        parked_until = CASE WHEN m.target IN ('waiting', 'paused') THEN COALESCE(
            r.parked_until, signoff_clock() + r.max_parked_seconds * interval '1 second') END
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

-- name: renew_run_lease
-- Prolong a lease that is still ours.
UPDATE runs SET lease_until = :until, due_at = :until
WHERE tenant_id = :tenant AND id = :id AND lease_owner = :owner AND lease_epoch = :epoch
  AND status = 'running'
RETURNING id;

-- name: hand_back_run
-- Give up a lease that is still ours; the run is due at the given time.
UPDATE runs SET lease_owner = NULL, lease_until = NULL, due_at = :due_at
WHERE tenant_id = :tenant AND id = :id AND lease_owner = :owner AND lease_epoch = :epoch
  AND status = 'running'
RETURNING id;

-- name: make_runs_due
-- Let workers look at waiting or paused runs now; nobody drives those without a driver.
UPDATE runs r SET due_at = :now
FROM unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[])) AS w (tenant_id, id)
WHERE r.tenant_id = w.tenant_id AND r.id = w.id AND r.status IN ('waiting', 'paused') AND r.driven
RETURNING r.id;

-- name: runs_past_their_deadline
-- Find runs whose wall time is over; tenants take turns.
SELECT tenant_id, id FROM (
    SELECT tenant_id, id, deadline_at,
           row_number() OVER (PARTITION BY tenant_id ORDER BY deadline_at) AS place
    FROM runs
    WHERE deadline_at <= (SELECT signoff_clock()) AND ended_at IS NULL AND status <> 'cancelling'
) over
ORDER BY place, deadline_at LIMIT :most;

-- name: runs_parked_too_long
-- Find runs that have waited for too long; one that is due waits for a worker alone; tenants take turns.
SELECT tenant_id, id FROM (
    SELECT tenant_id, id, parked_until,
           row_number() OVER (PARTITION BY tenant_id ORDER BY parked_until) AS place
    FROM runs
    WHERE parked_until <= (SELECT signoff_clock())
      AND (due_at IS NULL OR due_at > (SELECT signoff_clock()))
) over
ORDER BY place, parked_until LIMIT :most;

-- name: run_by_number
-- Find one tenant's run by the number that people use.
SELECT id FROM runs WHERE tenant_id = :tenant AND number = :number;

-- name: show_runs
-- Read one tenant's newest runs as people ask for them.
SELECT id, number, status, goal, requester, reason, summary, created_at, ended_at, driven
FROM runs WHERE tenant_id = :tenant ORDER BY number DESC LIMIT :most;

-- name: show_run
-- Read one run as people ask for it.
SELECT id, number, status, goal, requester, reason, summary, created_at, ended_at, reply_to,
       driven, due_at
FROM runs WHERE tenant_id = :tenant AND id = :id;

-- name: insert_step
-- Record one turn of a run, which shows that it gets on; the same number again is refused by the key.
WITH recorded AS (
    INSERT INTO steps (tenant_id, run_id, number, kind, answers_step, answers_ordinal, content,
                       recorded_at)
    VALUES (:tenant, :run, :number, :kind, :answers_step, :answers_ordinal, CAST(:content AS jsonb),
            :now)
)
UPDATE runs SET takeovers = 0 WHERE tenant_id = :tenant AND id = :run AND takeovers > 0;

-- name: read_steps
-- Read a run's recorded turns in order.
SELECT number, kind, answers_step, answers_ordinal, content, recorded_at
FROM steps WHERE tenant_id = :tenant AND run_id = :run ORDER BY number;
