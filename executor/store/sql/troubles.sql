-- name: note_trouble
-- Close a place until somebody has looked. Looks come ever later, up to a bound; a trouble that was
-- believed to be over for long begins anew.
INSERT INTO delivery_troubles AS t (tenant_id, place, problem, lasting, since, noted_at, look_at)
SELECT :tenant, :place, :problem, :lasting, n.now, n.now, n.now + make_interval(secs => :first_seconds)
FROM (SELECT signoff_clock() AS now) AS n
ON CONFLICT (tenant_id, place) DO UPDATE
SET problem = excluded.problem, lasting = excluded.lasting, noted_at = excluded.noted_at,
    since = CASE WHEN t.look_at IS NULL AND t.noted_at < excluded.noted_at - interval '10 minutes'
        THEN excluded.since ELSE t.since END,
    look_at = excluded.noted_at + LEAST(
        GREATEST(excluded.noted_at - t.since, make_interval(secs => :first_seconds)),
        make_interval(secs => :longest_seconds))
RETURNING t.since, t.since = t.noted_at AS is_new;

-- name: read_troubles
-- Read the troubles of a tenant; takes no lock.
SELECT place, problem, lasting, since, look_at FROM delivery_troubles WHERE tenant_id = :tenant;

-- name: claim_troubles
-- Take the troubles that are due for a look; whoever took one and died leaves it to the next.
WITH due AS (
    SELECT tenant_id, place FROM delivery_troubles
    WHERE tenant_id = :tenant AND look_at <= (SELECT signoff_clock())
    ORDER BY look_at LIMIT :most FOR UPDATE SKIP LOCKED
)
UPDATE delivery_troubles t SET look_at = signoff_clock() + make_interval(secs => :lease_seconds)
FROM due d WHERE t.tenant_id = d.tenant_id AND t.place = d.place
RETURNING t.place, t.problem, t.lasting, t.since, t.look_at;

-- name: open_place
-- Let the next message try a place: nothing was found wrong with it.
UPDATE delivery_troubles SET look_at = NULL WHERE tenant_id = :tenant AND place = :place;

-- name: hasten_look
-- Look at a closed place now: something may have changed there.
UPDATE delivery_troubles SET look_at = signoff_clock()
WHERE tenant_id = :tenant AND place = :place AND look_at IS NOT NULL;

-- name: end_troubles
-- A message arrived: its place, and the workspace, are well.
DELETE FROM delivery_troubles WHERE tenant_id = :tenant AND place = ANY(CAST(:places AS text[]))
RETURNING place, problem, signoff_clock() - since AS lasted;

-- name: forget_troubles
-- Forget the old troubles of places that are not kept.
DELETE FROM delivery_troubles
WHERE tenant_id = :tenant AND place <> ALL(CAST(:kept AS text[]))
  AND since < (SELECT signoff_clock()) - interval '1 hour';
