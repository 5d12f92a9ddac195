-- name: insert_effects
-- Plan the ordered parts of operations, with the bytes that will leave.
WITH planned AS (
    SELECT * FROM unnest(
        CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:operations AS uuid[]),
        CAST(:positions AS smallint[]), CAST(:kinds AS text[]), CAST(:capabilities AS text[]),
        CAST(:providers AS text[]), CAST(:keys AS text[]), CAST(:payloads AS bytea[]),
        CAST(:digests AS bytea[]), CAST(:envelopes AS text[]), CAST(:promises AS text[])
    ) AS p (tenant_id, id, operation_id, position, kind, capability, provider, idempotency_key,
            payload, payload_digest, envelope, promise)
), inserted AS (
    INSERT INTO effects (tenant_id, id, seq, status, operation_id, position, kind, capability,
                         provider, promise, idempotency_key, payload, payload_digest, envelope)
    SELECT tenant_id, id, 1, 'planned', operation_id, position, kind, capability, provider,
           promise, idempotency_key, payload, payload_digest, CAST(envelope AS jsonb)
    FROM planned
    RETURNING tenant_id, id
)
INSERT INTO journal (tenant_id, subject, position, machine, entity_id, seq, source, target,
                     event, actor, detail, recorded_at, previous_hash, hash)
SELECT e.* FROM journal_entries(CAST(:entries AS jsonb)) AS e
JOIN inserted i ON i.tenant_id = e.tenant_id AND i.id = e.entity_id;

-- name: effects_of_operations
-- Read the ordered parts of operations whose rows are locked.
SELECT e.tenant_id, e.id, e.seq, e.status, e.operation_id, e.position, e.kind, e.capability,
       e.provider, e.idempotency_key, e.payload, e.payload_digest, e.envelope, e.first_attempt_at
FROM effects e
JOIN unnest(CAST(:tenants AS text[]), CAST(:operations AS uuid[])) AS w (tenant_id, operation_id)
    USING (tenant_id, operation_id)
ORDER BY e.tenant_id, e.operation_id, e.position
FOR UPDATE OF e;

-- name: move_effects
-- Move effects where they still are in their source.
WITH moves AS (
    SELECT * FROM unnest(
        CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:seqs AS integer[]),
        CAST(:sources AS text[]), CAST(:targets AS text[]), CAST(:firsts AS timestamptz[])
    ) AS m (tenant_id, id, seq, source, target, first_attempt_at)
), moved AS (
    UPDATE effects e
    SET status = m.target, seq = m.seq + 1,
        first_attempt_at = COALESCE(e.first_attempt_at, m.first_attempt_at)
    FROM moves m
    WHERE e.tenant_id = m.tenant_id AND e.id = m.id AND e.seq = m.seq AND e.status = m.source
    RETURNING e.tenant_id, e.id
), written AS (
    INSERT INTO journal (tenant_id, subject, position, machine, entity_id, seq, source, target,
                         event, actor, detail, recorded_at, previous_hash, hash)
    SELECT j.* FROM journal_entries(CAST(:entries AS jsonb)) AS j
    JOIN moved ON moved.tenant_id = j.tenant_id AND moved.id = j.entity_id
)
SELECT id FROM moved;

-- name: insert_attempts
-- Record tries before their first byte leaves; the index over open ones refuses a second of an effect.
WITH opened AS (
    SELECT * FROM unnest(
        CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:operations AS uuid[]),
        CAST(:effects AS uuid[]), CAST(:numbers AS integer[]), CAST(:epochs AS bigint[]),
        CAST(:capabilities AS text[]), CAST(:providers AS text[]),
        CAST(:keys AS text[]), CAST(:digests AS bytea[]),
        CAST(:deadlines AS timestamptz[]), CAST(:concludes AS timestamptz[]),
        CAST(:windows AS double precision[]), CAST(:lags AS double precision[])
    ) AS o (tenant_id, id, operation_id, effect_id, number, epoch, capability, provider,
            idempotency_key, payload_digest, deadline_at, conclude_at, key_window_seconds,
            lookup_lag_seconds)
), inserted AS (
    INSERT INTO attempts (tenant_id, id, seq, status, operation_id, effect_id, number, epoch,
                          capability, provider, idempotency_key, payload_digest, opened_at,
                          deadline_at, conclude_at, key_window_seconds, lookup_lag_seconds)
    SELECT tenant_id, id, 1, 'dispatched', operation_id, effect_id, number, epoch, capability,
           provider, idempotency_key, payload_digest, :now, deadline_at, conclude_at,
           key_window_seconds, lookup_lag_seconds
    FROM opened
    RETURNING tenant_id, id
)
INSERT INTO journal (tenant_id, subject, position, machine, entity_id, seq, source, target,
                     event, actor, detail, recorded_at, previous_hash, hash)
SELECT e.* FROM journal_entries(CAST(:entries AS jsonb)) AS e
JOIN inserted i ON i.tenant_id = e.tenant_id AND i.id = e.entity_id;

-- name: attempts_of_operations
-- Read all tries of operations whose rows are locked.
SELECT a.tenant_id, a.id, a.seq, a.status, a.operation_id, a.effect_id, a.number, a.epoch,
       a.capability, a.provider, a.opened_at, a.deadline_at, a.conclude_at, a.reported_at, a.evidence,
       a.key_window_seconds, a.lookup_lag_seconds, a.lookups, a.recover_at
FROM attempts a
JOIN unnest(CAST(:tenants AS text[]), CAST(:operations AS uuid[])) AS w (tenant_id, operation_id)
    USING (tenant_id, operation_id)
ORDER BY a.tenant_id, a.effect_id, a.number
FOR UPDATE OF a;

-- name: move_attempts
-- Record what came of tries, where they still are in their source.
WITH moves AS (
    SELECT * FROM unnest(
        CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:seqs AS integer[]),
        CAST(:sources AS text[]), CAST(:targets AS text[]), CAST(:evidences AS text[])
    ) AS m (tenant_id, id, seq, source, target, evidence)
), moved AS (
    UPDATE attempts a
    SET status = m.target, seq = m.seq + 1, reported_at = :now,
        evidence = CAST(m.evidence AS jsonb), recover_at = NULL
    FROM moves m
    WHERE a.tenant_id = m.tenant_id AND a.id = m.id AND a.seq = m.seq AND a.status = m.source
    RETURNING a.tenant_id, a.id
), written AS (
    INSERT INTO journal (tenant_id, subject, position, machine, entity_id, seq, source, target,
                         event, actor, detail, recorded_at, previous_hash, hash)
    SELECT e.* FROM journal_entries(CAST(:entries AS jsonb)) AS e
    JOIN moved ON moved.tenant_id = e.tenant_id AND moved.id = e.entity_id
)
SELECT id FROM moved;

-- name: attempts_to_conclude
-- Find tries whose last possible moment is over, whoever holds the lease; tenants take turns.
SELECT tenant_id, id, operation_id, effect_id, number, status, capability, provider, opened_at,
       deadline_at, conclude_at, seq, epoch, reported_at, evidence, key_window_seconds,
       lookup_lag_seconds, lookups, recover_at
FROM (
    SELECT *, row_number() OVER (PARTITION BY tenant_id ORDER BY conclude_at) AS place
    FROM attempts
    WHERE status = 'dispatched' AND conclude_at <= (SELECT signoff_clock())
) due
ORDER BY place, conclude_at LIMIT :most;

-- name: attempts_to_recover
-- Find unknown tries at such effects for which a machine is to do something now; tenants take turns.
SELECT tenant_id, id, operation_id, effect_id, number, status, capability, provider, opened_at,
       deadline_at, conclude_at, seq, epoch, reported_at, evidence, key_window_seconds,
       lookup_lag_seconds, lookups, recover_at
FROM (
    SELECT a.*, row_number() OVER (PARTITION BY a.tenant_id ORDER BY a.recover_at) AS place
    FROM attempts a
    WHERE a.recover_at <= (SELECT signoff_clock())
      AND (SELECT e.kind FROM effects e WHERE e.tenant_id = a.tenant_id AND e.id = a.effect_id)
          = ANY (CAST(:kinds AS text[]))
) due
ORDER BY place, recover_at LIMIT :most;

-- name: plan_recoveries
-- Record what comes next for tries that are unknown, and when; their operations are locked.
UPDATE attempts a
SET recover_at = p.recover_at, lookups = p.lookups, evidence = CAST(p.evidence AS jsonb)
FROM unnest(
    CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:times AS timestamptz[]),
    CAST(:lookups AS integer[]), CAST(:evidences AS text[])
) AS p (tenant_id, id, recover_at, lookups, evidence)
WHERE a.tenant_id = p.tenant_id AND a.id = p.id AND a.status = 'unknown'
RETURNING a.id;

-- name: attempt_right_before_the_call
-- Read a try once more, right before its first byte leaves.
SELECT a.status, a.epoch, a.deadline_at, o.lease_owner, o.lease_epoch, signoff_clock() AS now
FROM attempts a
JOIN operations o ON o.tenant_id = a.tenant_id AND o.id = a.operation_id
WHERE a.tenant_id = :tenant AND a.id = :id;

-- name: known_recipients
-- Name those of these addresses that a mail of ours was sent to before.
SELECT w.address FROM unnest(CAST(:addresses AS text[])) AS w (address)
WHERE EXISTS (SELECT 1 FROM effects e
              WHERE e.tenant_id = :tenant AND e.kind = 'email.send' AND e.status = 'applied'
                AND e.envelope -> 'to' ? w.address);
