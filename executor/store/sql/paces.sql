-- name: lock_paces
-- Lock all paces of a tenant, before its cards: whoever holds them gives out the turns.
SELECT family, channel, free_at FROM paces WHERE tenant_id = :tenant
ORDER BY family, channel FOR UPDATE;

-- name: begin_paces
-- Have the paces of the whole workspace, which everybody locks first.
INSERT INTO paces (tenant_id, family, channel, free_at)
SELECT :tenant, w.family, '', signoff_clock() FROM unnest(CAST(:families AS text[])) AS w (family)
ORDER BY w.family
ON CONFLICT (tenant_id, family, channel) DO NOTHING;

-- name: keep_paces
-- Record what was given out; a hold that came meanwhile stands.
INSERT INTO paces AS p (tenant_id, family, channel, free_at)
SELECT :tenant, w.family, w.channel, w.free_at
FROM unnest(CAST(:families AS text[]), CAST(:channels AS text[]), CAST(:free_ats AS timestamptz[]))
    AS w (family, channel, free_at)
ORDER BY w.family, w.channel
ON CONFLICT (tenant_id, family, channel) DO UPDATE SET free_at = GREATEST(p.free_at, excluded.free_at);

-- name: hold_pace
-- Hold a family of calls back for a time that the other side named.
INSERT INTO paces AS p (tenant_id, family, channel, free_at)
VALUES (:tenant, :family, :channel, signoff_clock() + make_interval(secs => :seconds))
ON CONFLICT (tenant_id, family, channel) DO UPDATE SET free_at = GREATEST(p.free_at, excluded.free_at);
