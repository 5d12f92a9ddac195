-- name: insert_approvals
-- Open requests for consent, each to one digest.
WITH opened AS (
    SELECT * FROM unnest(
        CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:operations AS uuid[]),
        CAST(:repeats AS uuid[]),
        CAST(:digests AS bytea[]), CAST(:content_revisions AS integer[]), CAST(:terms AS text[])
    ) AS o (tenant_id, id, operation_id, repeats_attempt, digest, content_revision, terms)
), inserted AS (
    INSERT INTO approvals (tenant_id, id, seq, status, operation_id, repeats_attempt, digest,
                           content_revision, terms, opened_at)
    SELECT tenant_id, id, 1, 'open', operation_id, repeats_attempt, digest, content_revision,
           CAST(terms AS jsonb), :now
    FROM opened
    RETURNING tenant_id, id
)
INSERT INTO journal (tenant_id, subject, position, machine, entity_id, seq, source, target,
                     event, actor, detail, recorded_at, previous_hash, hash)
SELECT e.* FROM journal_entries(CAST(:entries AS jsonb)) AS e
JOIN inserted i ON i.tenant_id = e.tenant_id AND i.id = e.entity_id;

-- name: lock_approvals
-- Lock, in order, the newest approval of each operation under which it may act, or might have, with
-- its votes. One of a repeat counts once it is granted: half a yes changes nothing.
SELECT a.tenant_id, a.id, a.seq, a.status, a.operation_id, a.digest, a.content_revision, a.terms,
       a.presented_at, a.decide_by, a.use_by, a.repeats_attempt,
       (SELECT COALESCE(jsonb_agg(jsonb_build_array(d.principal, d.vote, d.second_factor) ORDER BY d.decided_at,
                                  d.principal), '[]')
        FROM decisions d
        WHERE d.tenant_id = a.tenant_id AND d.approval_id = a.id) AS votes
FROM approvals a
JOIN unnest(CAST(:tenants AS text[]), CAST(:operations AS uuid[])) AS w (tenant_id, operation_id)
    USING (tenant_id, operation_id)
WHERE a.id = (SELECT n.id FROM approvals n
              WHERE n.tenant_id = a.tenant_id AND n.operation_id = a.operation_id
                AND (n.repeats_attempt IS NULL OR n.status IN ('granted', 'consumed'))
              ORDER BY n.opened_at DESC, n.id DESC LIMIT 1)
ORDER BY a.tenant_id, a.id
FOR UPDATE OF a;

-- name: repeats_under_way
-- Read the approvals of repeats that can still come to something, with their votes. Their
-- operations are locked, and nobody changes an approval without that lock.
SELECT a.tenant_id, a.id, a.seq, a.status, a.operation_id, a.digest, a.content_revision, a.terms,
       a.presented_at, a.decide_by, a.use_by, a.repeats_attempt,
       (SELECT COALESCE(jsonb_agg(jsonb_build_array(d.principal, d.vote, d.second_factor) ORDER BY d.decided_at,
                                  d.principal), '[]')
        FROM decisions d
        WHERE d.tenant_id = a.tenant_id AND d.approval_id = a.id) AS votes
FROM approvals a
JOIN unnest(CAST(:tenants AS text[]), CAST(:operations AS uuid[])) AS w (tenant_id, operation_id)
    USING (tenant_id, operation_id)
WHERE a.repeats_attempt IS NOT NULL AND a.status IN ('open', 'granted');

-- name: newest_repeat
-- Read the newest approval of a repeat of one operation, as its card shows it; takes no lock.
SELECT id, status, terms, decide_by, use_by, repeats_attempt
FROM approvals
WHERE tenant_id = :tenant AND operation_id = :operation AND repeats_attempt IS NOT NULL
ORDER BY opened_at DESC, id DESC LIMIT 1;

-- name: move_approvals
-- Move approvals where they still are in their source.
WITH moves AS (
    SELECT * FROM unnest(
        CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:seqs AS integer[]),
        CAST(:sources AS text[]), CAST(:targets AS text[]), CAST(:use_bys AS timestamptz[]),
        CAST(:ended_ats AS timestamptz[])
    ) AS m (tenant_id, id, seq, source, target, use_by, ended_at)
), moved AS (
    UPDATE approvals a
    SET status = m.target, seq = m.seq + 1, use_by = COALESCE(m.use_by, a.use_by),
        ended_at = m.ended_at
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

-- name: present_approvals
-- Start the time to decide of approvals that are shown now for the first time (T2).
UPDATE approvals a
SET presented_at = w.presented_at, decide_by = w.decide_by, nudge_at = w.nudge_at
FROM unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:presented_ats AS timestamptz[]),
            CAST(:decide_bys AS timestamptz[]), CAST(:nudge_ats AS timestamptz[]))
    AS w (tenant_id, id, presented_at, decide_by, nudge_at)
WHERE a.tenant_id = w.tenant_id AND a.id = w.id AND a.presented_at IS NULL AND a.status = 'open'
RETURNING a.id;

-- name: put_decisions
-- Record votes, one a person; only a rejection may replace what the person said before.
INSERT INTO decisions AS d (tenant_id, approval_id, principal, vote, note, digest, content_revision,
                            view_digest, shown_at, request_hash, on_behalf_of, second_factor, decided_at)
SELECT tenant_id, approval_id, principal, vote, note, digest, content_revision, view_digest,
       CAST(shown_at AS jsonb), request_hash, on_behalf_of, second_factor, :now
FROM unnest(
    CAST(:tenants AS text[]), CAST(:approvals AS uuid[]), CAST(:principals AS text[]),
    CAST(:votes AS text[]), CAST(:notes AS text[]), CAST(:digests AS bytea[]),
    CAST(:content_revisions AS integer[]), CAST(:view_digests AS bytea[]), CAST(:shown_ats AS text[]),
    CAST(:request_hashes AS bytea[]), CAST(:behalves AS text[]), CAST(:second_factors AS boolean[])
) AS v (tenant_id, approval_id, principal, vote, note, digest, content_revision, view_digest, shown_at,
        request_hash, on_behalf_of, second_factor)
ON CONFLICT (tenant_id, approval_id, principal) DO UPDATE
SET vote = excluded.vote, note = excluded.note, digest = excluded.digest,
    content_revision = excluded.content_revision, view_digest = excluded.view_digest,
    shown_at = excluded.shown_at, request_hash = excluded.request_hash,
    on_behalf_of = excluded.on_behalf_of, second_factor = excluded.second_factor,
    decided_at = excluded.decided_at
WHERE d.vote = 'approve' AND excluded.vote = 'reject'
RETURNING approval_id, principal;

-- name: decision_of
-- Read back whether a vote was recorded, after a COMMIT whose answer was lost.
SELECT vote, request_hash FROM decisions
WHERE tenant_id = :tenant AND approval_id = :approval AND principal = :principal;

-- name: votes_of
-- Read all votes on an approval in the order in which they were cast.
SELECT principal, vote, note, decided_at, on_behalf_of, second_factor FROM decisions
WHERE tenant_id = :tenant AND approval_id = :approval ORDER BY decided_at, principal;

-- name: approvals_past_their_time
-- Find approvals whose time to decide, or time to use, is over, and those of repeats that have
-- outlived the doubt that they are about; tenants take turns.
(SELECT tenant_id, operation_id FROM (
     SELECT tenant_id, operation_id, decide_by,
            row_number() OVER (PARTITION BY tenant_id ORDER BY decide_by) AS place
     FROM approvals WHERE status = 'open' AND decide_by <= (SELECT signoff_clock())
 ) undecided
 ORDER BY place, decide_by LIMIT :most)
UNION ALL
(SELECT tenant_id, operation_id FROM (
     SELECT tenant_id, operation_id, use_by,
            row_number() OVER (PARTITION BY tenant_id ORDER BY use_by) AS place
     FROM approvals WHERE status = 'granted' AND use_by <= (SELECT signoff_clock())
 ) unused
 ORDER BY place, use_by LIMIT :most)
UNION
(SELECT a.tenant_id, a.operation_id FROM approvals a
 JOIN operations o ON o.tenant_id = a.tenant_id AND o.id = a.operation_id
 WHERE a.repeats_attempt IS NOT NULL AND a.status IN ('open', 'granted')
   AND o.status NOT IN ('unknown', 'executing')
 LIMIT :most);

-- name: remember_requests
-- Keep the hashes of signed requests; those that were seen before are not returned.
INSERT INTO seen_requests (tenant_id, request_hash, seen_at)
SELECT tenant_id, request_hash, signoff_clock()
FROM unnest(CAST(:tenants AS text[]), CAST(:hashes AS bytea[])) AS w (tenant_id, request_hash)
ORDER BY 1, 2
ON CONFLICT (tenant_id, request_hash) DO NOTHING
RETURNING tenant_id, request_hash;

-- name: forget_requests
-- Drop hashes whose signatures are too old to be accepted again.
DELETE FROM seen_requests WHERE seen_at < (SELECT signoff_clock()) - make_interval(secs => :older_than_seconds);
