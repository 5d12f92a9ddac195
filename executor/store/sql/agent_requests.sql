-- name: lock_agent
-- Let the requests of one agent wait for each other until COMMIT; taken before every other lock.
SELECT pg_advisory_xact_lock(
    hashtextextended(concat_ws(chr(31), 'agent', CAST(:tenant AS text), CAST(:agent AS text)), 0)
);

-- name: request_of_message
-- Find what a message has asked for.
SELECT id FROM agent_requests WHERE tenant_id = :tenant AND channel = :channel AND ts = :ts;

-- name: request_of_key
-- Find the request that an agent's own key names, if it came to something.
SELECT g.run_id, g.content_digest, r.number
FROM agent_requests g JOIN runs r ON r.tenant_id = g.tenant_id AND r.id = g.run_id
WHERE g.tenant_id = :tenant AND g.agent = :agent AND g.request_key = :request_key
  AND g.outcome = 'accepted';

-- name: count_requests
-- Count what an agent has under way, and how often it asked lately without anything coming of it.
SELECT (SELECT count(*) FROM runs r
        WHERE r.tenant_id = :tenant AND r.requester = :agent AND r.ended_at IS NULL) AS under_way,
       (SELECT count(*) FROM agent_requests g
        WHERE g.tenant_id = :tenant AND g.agent = :agent AND g.outcome <> 'accepted'
          AND g.asked_at > (SELECT signoff_clock()) - make_interval(secs => :seconds)) AS in_vain;

-- name: insert_request
-- Record what a message of an agent asked for and what it came to; the same message again is refused
-- by its key.
INSERT INTO agent_requests (tenant_id, id, agent, channel, ts, thread_ts, request_key, kind,
                            content_digest, outcome, run_id, answer, asked_at)
VALUES (:tenant, :id, :agent, :channel, :ts, :thread_ts, :request_key, :kind, :content_digest,
        :outcome, :run, CAST(:answer AS jsonb), :now);

-- name: runs_of_agents
-- Say which of these runs were asked for by agents.
SELECT g.tenant_id, g.run_id FROM agent_requests g
JOIN unnest(CAST(:tenants AS text[]), CAST(:runs AS uuid[])) AS w (tenant_id, run_id)
    USING (tenant_id, run_id)
WHERE g.outcome = 'accepted';

-- name: show_request
-- Read one request with what has become of it; by itself, or by the run that it was accepted as.
SELECT g.id, g.agent, g.request_key, g.kind, g.outcome, g.answer, g.asked_at,
       r.number AS run_number, r.status AS run_status, r.reason AS run_reason,
       o.number AS operation_number, o.status AS operation_status, o.reason AS operation_reason,
       o.detail AS operation_detail, o.editor
FROM agent_requests g
LEFT JOIN runs r ON r.tenant_id = g.tenant_id AND r.id = g.run_id
LEFT JOIN LATERAL (
    SELECT i.number, i.status, i.reason, i.detail, i.editor FROM proposals p
    JOIN operations i ON i.tenant_id = p.tenant_id AND i.id = p.operation_id
    WHERE p.tenant_id = g.tenant_id AND p.run_id = g.run_id AND p.step > 0 AND g.kind <> 'run'
    ORDER BY i.number DESC LIMIT 1
) o ON true
WHERE g.tenant_id = :tenant
  AND (g.id = CAST(:id AS uuid)
       OR (g.run_id = CAST(:run AS uuid) AND g.outcome = 'accepted'));

-- name: agents_among
-- Say which of these principals have ever asked for something as agents.
SELECT w.agent FROM unnest(CAST(:principals AS text[])) AS w (agent)
WHERE EXISTS (SELECT FROM agent_requests g WHERE g.tenant_id = :tenant AND g.agent = w.agent);
