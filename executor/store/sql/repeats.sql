-- name: lock_wish
-- Let equal wishes wait for each other until COMMIT; taken before every other lock.
SELECT pg_advisory_xact_lock(
    hashtextextended(concat_ws(chr(31), 'wish', CAST(:tenant AS text), CAST(:requester AS text), CAST(:goal AS text)), 0)
);

-- name: recent_run
-- Find the newest run of an equal wish that still goes on; looks at the newest runs only.
SELECT n.id, n.number
FROM (
    SELECT id, number, requester, goal, created_at, ended_at FROM runs
    WHERE tenant_id = :tenant ORDER BY number DESC LIMIT :most
) n
WHERE n.requester = :requester AND n.goal = :goal AND n.ended_at IS NULL
  AND n.created_at > signoff_clock() - make_interval(secs => :seconds)
ORDER BY n.number DESC LIMIT 1;
