-- name: put_identity
-- Store what Slack says about a person; nobody waits any more, unless it is from before a change.
INSERT INTO identity_observations AS i (tenant_id, principal, facts, observed_at)
VALUES (:tenant, :principal, CAST(:facts AS jsonb), :observed_at)
ON CONFLICT (tenant_id, principal) DO UPDATE
SET facts = excluded.facts, observed_at = excluded.observed_at,
    wanted_at = CASE WHEN i.changed_at > excluded.observed_at THEN i.wanted_at END
WHERE i.observed_at IS NULL OR i.observed_at <= excluded.observed_at;

-- name: want_identities
-- Ask for a newer look at these people; who already waits keeps the earlier time.
INSERT INTO identity_observations AS i (tenant_id, principal, wanted_at)
SELECT w.tenant_id, w.principal, :wanted_at
FROM unnest(CAST(:tenants AS text[]), CAST(:principals AS text[])) AS w (tenant_id, principal)
ORDER BY 1, 2
ON CONFLICT (tenant_id, principal) DO UPDATE
SET wanted_at = COALESCE(i.wanted_at, excluded.wanted_at);

-- name: wanted_identities
-- List whom somebody waits for in one tenant, oldest wish first.
SELECT principal FROM identity_observations
WHERE tenant_id = :tenant AND wanted_at IS NOT NULL ORDER BY wanted_at LIMIT :most;

-- name: read_identities
-- Read the newest observations of these people that no change has overtaken.
SELECT tenant_id, principal, facts, observed_at, wanted_at
FROM identity_observations
JOIN unnest(CAST(:tenants AS text[]), CAST(:principals AS text[])) AS w (tenant_id, principal)
    USING (tenant_id, principal)
WHERE facts IS NOT NULL AND (changed_at IS NULL OR changed_at <= observed_at);

-- name: outdate_identities
-- Slack told of a change: what was seen before is none, and who could still be believed is wanted.
UPDATE identity_observations i
SET changed_at = :changed_at,
    wanted_at = CASE WHEN i.observed_at > :believed_since
        THEN COALESCE(i.wanted_at, :changed_at) ELSE i.wanted_at END
FROM (
    SELECT principal FROM identity_observations
    WHERE tenant_id = :tenant AND principal = ANY(CAST(:principals AS text[]))
    ORDER BY principal FOR UPDATE
) AS known
WHERE i.tenant_id = :tenant AND i.principal = known.principal;

-- name: put_group
-- Store who is in a group; nobody waits any more, unless it is from before a change.
INSERT INTO group_observations AS g (tenant_id, group_id, members, problem, observed_at)
VALUES (:tenant, :group_id, CAST(:members AS text[]), :problem, :observed_at)
ON CONFLICT (tenant_id, group_id) DO UPDATE
SET members = excluded.members, problem = excluded.problem, observed_at = excluded.observed_at,
    wanted_at = CASE WHEN g.changed_at > excluded.observed_at THEN g.wanted_at END
WHERE g.observed_at IS NULL OR g.observed_at <= excluded.observed_at;

-- name: note_silence_about_group
-- Keep why a look was not answered and when the next one may be made; what was seen before stays.
UPDATE group_observations
SET problem = :problem,
    look_after = GREATEST(look_after, signoff_clock() + make_interval(secs => :wait_seconds))
WHERE tenant_id = :tenant AND group_id = :group_id;

-- name: claim_group_look
-- Take the one look at a group that may be made now, and return the time before it.
INSERT INTO group_observations AS g (tenant_id, group_id, look_after)
VALUES (:tenant, :group_id, signoff_clock() + make_interval(secs => :every_seconds))
ON CONFLICT (tenant_id, group_id) DO UPDATE SET look_after = excluded.look_after
WHERE g.look_after IS NULL OR g.look_after <= signoff_clock()
RETURNING signoff_clock() AS asked_at;

-- name: want_groups
-- Ask for a newer look at these groups; who already waits keeps the earlier time.
INSERT INTO group_observations AS g (tenant_id, group_id, wanted_at)
SELECT w.tenant_id, w.group_id, :wanted_at
FROM unnest(CAST(:tenants AS text[]), CAST(:group_ids AS text[])) AS w (tenant_id, group_id)
ORDER BY 1, 2
ON CONFLICT (tenant_id, group_id) DO UPDATE
SET wanted_at = COALESCE(g.wanted_at, excluded.wanted_at);

-- name: wanted_groups
-- List the groups that somebody waits for in one tenant, oldest wish first.
SELECT group_id FROM group_observations
WHERE tenant_id = :tenant AND wanted_at IS NOT NULL ORDER BY wanted_at LIMIT :most;

-- name: read_groups
-- Read the newest observations of these groups that no change has overtaken.
SELECT tenant_id, group_id, members, problem, observed_at, wanted_at
FROM group_observations
JOIN unnest(CAST(:tenants AS text[]), CAST(:group_ids AS text[])) AS w (tenant_id, group_id)
    USING (tenant_id, group_id)
WHERE members IS NOT NULL AND (changed_at IS NULL OR changed_at <= observed_at);

-- name: outdate_groups
-- Slack told of a change: what was seen before is none, and what could still be believed is wanted.
UPDATE group_observations g
SET changed_at = :changed_at,
    wanted_at = CASE WHEN g.observed_at > :believed_since
        THEN COALESCE(g.wanted_at, :changed_at) ELSE g.wanted_at END
FROM (
    SELECT group_id FROM group_observations
    WHERE tenant_id = :tenant AND group_id = ANY(CAST(:group_ids AS text[]))
    ORDER BY group_id FOR UPDATE
) AS known
WHERE g.tenant_id = :tenant AND g.group_id = known.group_id;

-- name: group_problems
-- Count those of these groups of which Slack tells nothing, by its reason.
SELECT problem, count(*) AS groups FROM group_observations
WHERE tenant_id = :tenant AND group_id = ANY(CAST(:group_ids AS text[])) AND problem IS NOT NULL
GROUP BY problem ORDER BY problem;
