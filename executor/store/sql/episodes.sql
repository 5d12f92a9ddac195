-- name: lock_episodes
-- Lock our own count of how often each ticket came back, beginning it where there is none.
INSERT INTO ticket_episodes AS e (tenant_id, desk, ticket_id, episode)
SELECT w.tenant_id, w.desk, w.ticket_id, 1
FROM unnest(CAST(:tenants AS text[]), CAST(:desks AS text[]), CAST(:ticket_ids AS text[]))
    AS w (tenant_id, desk, ticket_id)
ORDER BY 1, 2, 3
ON CONFLICT (tenant_id, desk, ticket_id) DO UPDATE SET episode = e.episode
RETURNING e.tenant_id, e.desk, e.ticket_id, e.episode, e.closed_version,
          e.closed_stamp;

-- name: begin_episode
-- Count one more episode: the desk shows the ticket open again after our recorded close.
UPDATE ticket_episodes SET episode = :episode, closed_version = NULL, closed_stamp = NULL
WHERE tenant_id = :tenant AND desk = :desk AND ticket_id = :ticket AND episode = :episode - 1
RETURNING episode;

-- name: record_closes
-- Keep the version that our own close produced; one of an earlier episode says nothing of this one.
UPDATE ticket_episodes e
SET closed_version = w.version, closed_stamp = CAST(w.stamp AS jsonb)
FROM unnest(CAST(:tenants AS text[]), CAST(:desks AS text[]), CAST(:ticket_ids AS text[]),
            CAST(:episodes AS integer[]), CAST(:versions AS bigint[]), CAST(:stamps AS text[]))
    AS w (tenant_id, desk, ticket_id, episode, version, stamp)
WHERE e.tenant_id = w.tenant_id AND e.desk = w.desk AND e.ticket_id = w.ticket_id
  AND e.episode = w.episode;
