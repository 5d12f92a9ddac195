-- name: record_pause
-- Say why a run that is locked is paused; what was said of an earlier pause is over.
INSERT INTO pauses (tenant_id, run_id, scope, day, needed_microusd, renews_at, raise_id, not_raised,
                    paused_at, look_at)
VALUES (:tenant, :run, :scope, :day, :needed, :renews_at, :raise_id, :not_raised, :now, :look_at)
ON CONFLICT (tenant_id, run_id) DO UPDATE
SET scope = EXCLUDED.scope, day = EXCLUDED.day, needed_microusd = EXCLUDED.needed_microusd,
    renews_at = EXCLUDED.renews_at, raise_id = EXCLUDED.raise_id, not_raised = EXCLUDED.not_raised,
    paused_at = EXCLUDED.paused_at, look_at = EXCLUDED.look_at;

-- name: pauses_for_raises
-- Find the paused runs for which these operations ask for more; takes no lock.
SELECT p.tenant_id, p.run_id, p.raise_id, p.scope, r.number
FROM pauses p
JOIN unnest(CAST(:tenants AS text[]), CAST(:raises AS uuid[])) AS w (tenant_id, raise_id)
    USING (tenant_id, raise_id)
JOIN runs r ON r.tenant_id = p.tenant_id AND r.id = p.run_id AND r.status = 'paused'
ORDER BY p.tenant_id, r.number;

-- name: end_raises
-- What asked for more for these locked runs has ended, and how where nothing was raised.
UPDATE pauses p SET raise_id = NULL, not_raised = w.not_raised
FROM unnest(CAST(:tenants AS text[]), CAST(:runs AS uuid[]), CAST(:not_raised AS text[]))
    AS w (tenant_id, run_id, not_raised)
WHERE p.tenant_id = w.tenant_id AND p.run_id = w.run_id;

-- name: pauses_with_room
-- Find paused runs of one tenant whose next call fits into both limits now, longest paused first.
SELECT p.run_id
FROM pauses p
JOIN runs r ON r.tenant_id = p.tenant_id AND r.id = p.run_id AND r.status = 'paused'
JOIN run_budgets b ON b.tenant_id = p.tenant_id AND b.run_id = p.run_id
LEFT JOIN tenant_days d ON d.tenant_id = p.tenant_id AND d.day = :today
WHERE p.tenant_id = :tenant
  AND (CAST(:runs AS uuid[]) IS NULL OR p.run_id = ANY(CAST(:runs AS uuid[])))
  AND (r.due_at IS NULL OR r.due_at > (SELECT signoff_clock()))
  AND b.spent_microusd + b.held_microusd + p.needed_microusd <= b.limit_microusd
  AND COALESCE(d.spent_microusd + d.held_microusd, 0) + p.needed_microusd
      <= CAST(:day_limit AS bigint) + COALESCE(d.raised_microusd, 0)
ORDER BY p.paused_at, p.run_id LIMIT :most;

-- name: look_at_pauses
-- Take pauses that nobody has looked at for a while, and say when to look again; those that are over
-- are forgotten.
WITH due AS (
    SELECT tenant_id, run_id FROM pauses
    WHERE look_at <= (SELECT signoff_clock()) ORDER BY look_at LIMIT :most FOR UPDATE SKIP LOCKED
), over AS (
    DELETE FROM pauses p USING due, runs r
    WHERE p.tenant_id = due.tenant_id AND p.run_id = due.run_id
      AND r.tenant_id = p.tenant_id AND r.id = p.run_id AND r.status <> 'paused'
)
UPDATE pauses p SET look_at = :look_at
FROM due, runs r
WHERE p.tenant_id = due.tenant_id AND p.run_id = due.run_id
  AND r.tenant_id = p.tenant_id AND r.id = p.run_id AND r.status = 'paused'
RETURNING p.tenant_id, p.run_id;

-- name: raises_that_nobody_waits_for
-- Find raises that nobody has opened and for which no run is paused any more.
SELECT o.tenant_id, o.id, o.run_id FROM operations o
WHERE o.kind = 'raise_budget' AND o.status IN ('awaiting', 'approved') AND NOT EXISTS (
    SELECT 1 FROM pauses p
    JOIN runs r ON r.tenant_id = p.tenant_id AND r.id = p.run_id AND r.status = 'paused'
    WHERE p.tenant_id = o.tenant_id AND p.raise_id = o.id)
ORDER BY o.tenant_id, o.id LIMIT :most;

-- name: rejected_of_key
-- Find what people have said no to under an intent key; takes no lock.
SELECT id FROM operations
WHERE tenant_id = :tenant AND intent_key = :key AND status = 'rejected'
ORDER BY number DESC LIMIT 1;

-- name: pause_of_run
-- Read why one run is paused, as it is told to people.
SELECT p.scope, p.day, p.needed_microusd, p.renews_at, p.not_raised, p.paused_at,
       o.number AS raise_number, o.status AS raise_status
FROM pauses p
JOIN runs r ON r.tenant_id = p.tenant_id AND r.id = p.run_id AND r.status = 'paused'
LEFT JOIN operations o ON o.tenant_id = p.tenant_id AND o.id = p.raise_id
WHERE p.tenant_id = :tenant AND p.run_id = :run;

-- name: last_words_of_run
-- Read what the model of a run said last.
SELECT content ->> 'text' AS text FROM steps
WHERE tenant_id = :tenant AND run_id = :run AND kind = 'model'
  AND COALESCE(content ->> 'text', '') <> ''
ORDER BY number DESC LIMIT 1;

-- name: unopened_raises
-- Find raises that nobody has opened by how their keys begin; takes no lock.
SELECT o.id, o.run_id FROM operations o
WHERE o.tenant_id = :tenant AND o.kind = 'raise_budget' AND o.status IN ('awaiting', 'approved')
  AND EXISTS (SELECT 1 FROM unnest(CAST(:prefixes AS text[])) AS p (prefix)
              WHERE starts_with(o.intent_key, p.prefix))
ORDER BY o.id;
