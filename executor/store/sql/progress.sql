-- name: want_progress
-- Ask for what driven runs say of themselves to be drawn again; a run of an agent says only how it has
-- ended.
INSERT INTO cards AS c (tenant_id, subject_id, subject_kind, wanted_revision, wanted_at, due_at,
                        unseen_since)
SELECT r.tenant_id, r.id, 'run', 1, t.now, t.now, t.now
FROM unnest(CAST(:tenants AS text[]), CAST(:runs AS uuid[])) AS w (tenant_id, id)
JOIN runs r USING (tenant_id, id)
CROSS JOIN (SELECT signoff_clock() AS now) t
WHERE r.driven AND NOT EXISTS (
    SELECT FROM agent_requests g
    WHERE g.tenant_id = r.tenant_id AND g.run_id = r.id AND g.outcome = 'accepted')
ORDER BY r.tenant_id, r.id
ON CONFLICT (tenant_id, subject_id) DO UPDATE
SET wanted_revision = c.wanted_revision + 1, wanted_at = excluded.wanted_at,
    due_at = COALESCE(c.due_at, GREATEST(excluded.due_at, c.rests_until));

-- name: runs_that_tell_of
-- Find the driven runs whose own word tells of an operation; takes no lock.
SELECT DISTINCT p.run_id FROM proposals p
JOIN runs r ON r.tenant_id = p.tenant_id AND r.id = p.run_id AND r.driven
JOIN cards c ON c.tenant_id = p.tenant_id AND c.subject_id = p.run_id
WHERE p.tenant_id = :tenant AND p.operation_id = :operation;

-- name: calls_of_run
-- Read which tools a run has called and what each call has come to, with nothing of what was written
-- or read; takes no lock.
SELECT s.number AS step, c.place, c.asked ->> 'name' AS tool, s.recorded_at,
       c.asked #>> '{arguments,ticket_id}' AS ticket, t.number IS NOT NULL AS is_answered,
       t.content #>> '{result,error}' AS error,
       jsonb_array_length(CASE jsonb_typeof(t.content #> '{result,tickets}')
                          WHEN 'array' THEN t.content #> '{result,tickets}' END) AS found,
       t.content #>> '{result,more}' = 'true' AS has_more,
       t.content #>> '{result,operation}' AS answered_by, t.content #>> '{result,status}' AS answer,
       o.number, o.status, o.reason
FROM steps s
CROSS JOIN LATERAL jsonb_array_elements(s.content -> 'tool_calls')
    WITH ORDINALITY AS c (asked, place)
LEFT JOIN steps t ON t.tenant_id = s.tenant_id AND t.run_id = s.run_id
    AND t.answers_step = s.number AND t.answers_ordinal = c.place - 1
LEFT JOIN proposals p ON p.tenant_id = s.tenant_id AND p.run_id = s.run_id
    AND p.step = s.number AND p.ordinal = c.place - 1
LEFT JOIN operations o ON o.tenant_id = p.tenant_id AND o.id = p.operation_id
WHERE s.tenant_id = :tenant AND s.run_id = :run AND s.kind = 'model'
ORDER BY s.number, c.place;

-- name: operations_asked_for
-- Read the operations that a run has asked for, its own and those of others, with how far their
-- effects are; takes no lock.
SELECT o.number, o.status, o.ticket_id, o.run_id, r.number AS run_number,
       ARRAY(SELECT ARRAY[e.kind, e.status] FROM effects e
             WHERE e.tenant_id = o.tenant_id AND e.operation_id = o.id
             ORDER BY e.position) AS effects
FROM (
    SELECT id FROM operations WHERE tenant_id = :tenant AND run_id = :run
    UNION
    SELECT operation_id FROM proposals WHERE tenant_id = :tenant AND run_id = :run
) AS a
JOIN operations o ON o.tenant_id = :tenant AND o.id = a.id
JOIN runs r ON r.tenant_id = o.tenant_id AND r.id = o.run_id
ORDER BY o.number;

-- name: questions_put_to_run
-- Read what people have asked a run about, and whether it was answered; takes no lock.
SELECT o.number, q.asked_by, q.asked_at, q.closed_at IS NOT NULL AS is_closed,
       q.answer IS NOT NULL AS is_answered
FROM questions q
JOIN operations o ON o.tenant_id = q.tenant_id AND o.id = q.operation_id
WHERE q.tenant_id = :tenant AND q.run_id = :run
ORDER BY q.place;

-- name: money_of_run
-- Read what a run has spent and may spend, and when its calls of a model came to nothing; takes no lock.
SELECT b.spent_microusd, b.limit_microusd,
       ARRAY(SELECT r.reserved_at FROM reservations r
             WHERE r.tenant_id = b.tenant_id AND r.run_id = b.run_id AND r.attempt_id IS NULL
               AND r.status IN ('voided', 'unknown')
             ORDER BY r.reserved_at) AS failed_at
FROM run_budgets b WHERE b.tenant_id = :tenant AND b.run_id = :run;
