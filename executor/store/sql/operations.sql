-- name: insert_operations
-- Mint operations at T1; the index over live intent keys refuses a second one.
WITH minted AS (
    SELECT * FROM unnest(
        CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:runs AS uuid[]), CAST(:kinds AS text[]),
        CAST(:intent_keys AS text[]), CAST(:intents AS text[]), CAST(:digests AS bytea[]),
        CAST(:content_digests AS bytea[]), CAST(:content_revisions AS integer[]),
        CAST(:requesters AS text[]), CAST(:policy_versions AS text[]),
        CAST(:places AS text[]), CAST(:things AS text[]), CAST(:desks AS text[]),
        CAST(:ticket_ids AS text[]), CAST(:ticket_versions AS bigint[]), CAST(:ticket_stamps AS text[]),
        CAST(:compensates AS uuid[]), CAST(:risks AS text[]), CAST(:editors AS text[]),
        CAST(:replaced AS uuid[])
    ) AS m (tenant_id, id, run_id, kind, intent_key, intent, digest, content_digest, content_revision,
            requester, policy_version, place, thing, desk, ticket_id, ticket_version, ticket_stamp,
            compensates, risks, editor, replaces)
), inserted AS (
    INSERT INTO operations (tenant_id, id, seq, status, run_id, kind, intent_key, intent, digest,
        content_digest, content_revision, requester, policy_version, place, thing, desk, ticket_id,
        ticket_version, ticket_stamp, compensates, risks, editor, replaces, created_at)
    SELECT tenant_id, id, 1, 'awaiting', run_id, kind, intent_key, intent, digest, content_digest,
           content_revision, requester, policy_version, place, thing, desk, ticket_id, ticket_version,
           CAST(ticket_stamp AS jsonb), compensates, CAST(risks AS jsonb), editor, replaces,
           :now
    FROM minted
    RETURNING tenant_id, id, number
), written AS (
    INSERT INTO journal (tenant_id, subject, position, machine, entity_id, seq, source, target,
                         event, actor, detail, recorded_at, previous_hash, hash)
    SELECT e.* FROM journal_entries(CAST(:entries AS jsonb)) AS e
    JOIN inserted i ON i.tenant_id = e.tenant_id AND i.id = e.entity_id
)
SELECT tenant_id, id, number FROM inserted;

-- name: lock_operations
-- Lock operations by id, in order, waiting for whoever holds them.
SELECT o.tenant_id, o.id, o.number, o.seq, o.status, o.run_id, o.intent_key, o.intent, o.digest,
       o.content_digest, o.content_revision, o.requester, o.policy_version, o.desk, o.ticket_id,
       o.ticket_version, o.closed_version, o.reason, o.detail, o.lease_owner, o.lease_epoch,
       o.opened_at, o.ticket_stamp, o.closed_stamp, o.desk_silent_since, o.kind, o.compensates,
       o.compensate_at, o.ended_at, o.risks, o.editor, o.place, o.thing
FROM operations o
JOIN unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[])) AS w (tenant_id, id) USING (tenant_id, id)
ORDER BY o.tenant_id, o.id
FOR UPDATE OF o;

-- name: peek_operations
-- Read what operations name and never change, to lock it before them.
SELECT o.tenant_id, o.run_id, o.kind, o.desk, o.ticket_id, o.intent_key, o.compensates
FROM operations o
JOIN unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[])) AS w (tenant_id, id) USING (tenant_id, id)
ORDER BY o.tenant_id, o.id;

-- name: due_operations
-- Lock operations of these tenants whose time has come: one of each in turn, then the next of each, each
-- tenant's oldest first, skipping those that somebody else holds just now.
WITH candidates AS (
    SELECT a.tenant_id, a.turn,
           row_number() OVER (PARTITION BY a.tenant_id ORDER BY c.due_at, c.number) AS place
    FROM unnest(CAST(:tenants AS text[])) WITH ORDINALITY AS a (tenant_id, turn)
    CROSS JOIN LATERAL (
        SELECT o.due_at, o.number FROM operations o
        WHERE o.tenant_id = a.tenant_id AND o.due_at <= (SELECT signoff_clock())
          AND o.status IN ('approved', 'executing')
        ORDER BY o.due_at, o.number LIMIT :most
    ) c
), shares AS (
    SELECT tenant_id, count(*) AS share
    FROM (SELECT tenant_id FROM candidates ORDER BY place, turn LIMIT :most) dealt
    GROUP BY tenant_id
)
SELECT f.* FROM shares s CROSS JOIN LATERAL (
    SELECT o.tenant_id, o.id, o.number, o.seq, o.status, o.run_id, o.intent_key, o.intent, o.digest,
           o.content_digest, o.content_revision, o.requester, o.policy_version, o.desk, o.ticket_id,
           o.ticket_version, o.closed_version, o.reason, o.detail, o.lease_owner, o.lease_epoch,
           o.opened_at, o.ticket_stamp, o.closed_stamp, o.desk_silent_since, o.kind, o.compensates,
           o.compensate_at, o.ended_at, o.risks, o.editor, o.place, o.thing
    FROM operations o
    WHERE o.tenant_id = s.tenant_id AND o.due_at <= (SELECT signoff_clock())
      AND o.status IN ('approved', 'executing')
    ORDER BY o.due_at, o.number LIMIT s.share
    FOR UPDATE SKIP LOCKED
) f;

-- name: operations_of_keys
-- Find what is live under these intent keys, what succeeded, and what a late receipt may still prove
-- to have succeeded. Two halves, because each partial index answers for its own statuses only.
WITH wanted AS (
    SELECT DISTINCT * FROM unnest(CAST(:tenants AS text[]), CAST(:intent_keys AS text[]))
        AS w (tenant_id, intent_key)
)
SELECT o.tenant_id, o.id, o.intent_key, o.status
FROM operations o JOIN wanted USING (tenant_id, intent_key)
WHERE o.status IN ('awaiting', 'approved', 'executing', 'unknown', 'partial')
UNION ALL
SELECT o.tenant_id, o.id, o.intent_key, o.status
FROM operations o JOIN wanted USING (tenant_id, intent_key)
WHERE o.status IN ('succeeded', 'failed')
ORDER BY 1, 2;

-- name: operations_of_runs
-- Find the operations that belong to these runs.
SELECT o.tenant_id, o.id, o.run_id, o.number, o.status
FROM operations o
JOIN unnest(CAST(:tenants AS text[]), CAST(:runs AS uuid[])) AS w (tenant_id, run_id)
    USING (tenant_id, run_id)
ORDER BY o.tenant_id, o.id;

-- name: lease_operations
-- Give operations to a worker: a new epoch and an end of the lease.
UPDATE operations o
SET lease_owner = :owner, lease_epoch = o.lease_epoch + 1, lease_until = :until, due_at = :until
FROM unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[])) AS t (tenant_id, id)
WHERE o.tenant_id = t.tenant_id AND o.id = t.id AND o.status IN ('approved', 'executing')
RETURNING o.tenant_id, o.id, o.lease_epoch;

-- name: move_operations
-- Move operations where they still are in their source, with what that says about lease and time.
WITH moves AS (
    SELECT * FROM unnest(
        CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:seqs AS integer[]),
        CAST(:sources AS text[]), CAST(:targets AS text[]), CAST(:reasons AS text[]),
        CAST(:details AS text[]), CAST(:due_ats AS timestamptz[]), CAST(:keeps AS boolean[]),
        CAST(:opened_ats AS timestamptz[]), CAST(:ended_ats AS timestamptz[]),
        CAST(:closed_versions AS bigint[])
    ) AS m (tenant_id, id, seq, source, target, reason, detail, due_at, keeps_lease, opened_at,
            ended_at, closed_version)
), moved AS (
    UPDATE operations o
    SET status = m.target, seq = m.seq + 1, reason = COALESCE(m.reason, o.reason),
        detail = CASE WHEN m.detail IS NULL THEN o.detail ELSE CAST(m.detail AS jsonb) END,
        due_at = CASE WHEN m.keeps_lease THEN o.due_at ELSE m.due_at END,
        lease_owner = CASE WHEN m.keeps_lease THEN o.lease_owner END,
        lease_until = CASE WHEN m.keeps_lease THEN o.lease_until END,
        opened_at = COALESCE(o.opened_at, m.opened_at), ended_at = m.ended_at,
        closed_version = COALESCE(m.closed_version, o.closed_version),
        wake_pending = o.wake_pending OR m.ended_at IS NOT NULL,
        compensate_at = CASE WHEN m.target = 'partial' AND o.kind = 'close_ticket' THEN m.ended_at END
    FROM moves m
    WHERE o.tenant_id = m.tenant_id AND o.id = m.id AND o.seq = m.seq AND o.status = m.source
    RETURNING o.tenant_id, o.id
), written AS (
    INSERT INTO journal (tenant_id, subject, position, machine, entity_id, seq, source, target,
                         event, actor, detail, recorded_at, previous_hash, hash)
    SELECT e.* FROM journal_entries(CAST(:entries AS jsonb)) AS e
    JOIN moved ON moved.tenant_id = e.tenant_id AND moved.id = e.entity_id
)
SELECT id FROM moved;

-- name: record_closed_stamps
-- Keep the versions of outside tickets that our own closes have produced.
UPDATE operations o SET closed_stamp = CAST(w.stamp AS jsonb)
FROM unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:stamps AS text[]))
    AS w (tenant_id, id, stamp)
WHERE o.tenant_id = w.tenant_id AND o.id = w.id
RETURNING o.id;

-- name: record_desk_silence
-- Say since when an outside desk keeps operations from going on, or that it does not any more.
UPDATE operations o SET desk_silent_since = w.since, desk_problem = w.problem
FROM unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:sinces AS timestamptz[]),
            CAST(:problems AS text[])) AS w (tenant_id, id, since, problem)
WHERE o.tenant_id = w.tenant_id AND o.id = w.id;

-- name: renew_operation_lease
-- Prolong a lease that is still ours.
UPDATE operations SET lease_until = :until, due_at = :until
WHERE tenant_id = :tenant AND id = :id AND lease_owner = :owner AND lease_epoch = :epoch
RETURNING id;

-- name: hand_back_operation
-- Give up a lease that is still ours; the operation is due at the given time.
UPDATE operations SET lease_owner = NULL, lease_until = NULL, due_at = :due_at
WHERE tenant_id = :tenant AND id = :id AND lease_owner = :owner AND lease_epoch = :epoch
RETURNING id;

-- name: operations_to_wake_for
-- Find operations that ended and whose runs were not told yet: one of each tenant, then the next of each.
WITH RECURSIVE waiting AS (
    (SELECT tenant_id FROM operations WHERE wake_pending ORDER BY tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT o.tenant_id FROM operations o WHERE o.wake_pending AND o.tenant_id > w.tenant_id
            ORDER BY o.tenant_id LIMIT 1)
    FROM waiting w WHERE w.tenant_id IS NOT NULL
)
SELECT f.tenant_id, f.id FROM waiting w CROSS JOIN LATERAL (
    SELECT tenant_id, id, row_number() OVER (ORDER BY id) AS place FROM (
        SELECT o.tenant_id, o.id FROM operations o
        WHERE o.tenant_id = w.tenant_id AND o.wake_pending ORDER BY o.id LIMIT :most
    ) n
) f
-- Where there are more tenants than that, none of them is always the last.
ORDER BY f.place, random() LIMIT :most;

-- name: clear_wake_pending
-- The runs that waited for these operations have been told.
UPDATE operations o SET wake_pending = false
FROM unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[])) AS w (tenant_id, id)
WHERE o.tenant_id = w.tenant_id AND o.id = w.id;
