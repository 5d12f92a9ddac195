-- name: hold_rights
-- Keep every decision and opening of these tenants out until COMMIT; the first lock.
SELECT t.id FROM tenants t WHERE t.id = ANY(CAST(:tenants AS text[])) ORDER BY t.id FOR NO KEY UPDATE;

-- name: insert_grant
-- Give a role to somebody.
WITH inserted AS (
    INSERT INTO grants (tenant_id, id, seq, status, principal, role, resource, starts_at, ends_at,
                        granted_by, on_behalf_of, note, granted_at)
    VALUES (:tenant, :id, 1, 'active', :principal, :role, :resource, :starts_at, :ends_at,
            :granted_by, :on_behalf_of, :note, :now)
    RETURNING tenant_id, id, number
), written AS (
    INSERT INTO journal (tenant_id, subject, position, machine, entity_id, seq, source, target,
                         event, actor, detail, recorded_at, previous_hash, hash)
    SELECT e.* FROM journal_entries(CAST(:entries AS jsonb)) AS e
    JOIN inserted i ON i.tenant_id = e.tenant_id AND i.id = e.entity_id
)
SELECT number FROM inserted;

-- name: revoke_grant
-- Take a grant back where it still is active.
WITH moved AS (
    UPDATE grants SET status = 'revoked', seq = seq + 1, revoked_by = :revoked_by, revoked_at = :now
    WHERE tenant_id = :tenant AND id = :id AND seq = :seq AND status = 'active'
    RETURNING tenant_id, id
), written AS (
    INSERT INTO journal (tenant_id, subject, position, machine, entity_id, seq, source, target,
                         event, actor, detail, recorded_at, previous_hash, hash)
    SELECT e.* FROM journal_entries(CAST(:entries AS jsonb)) AS e
    JOIN moved m ON m.tenant_id = e.tenant_id AND m.id = e.entity_id
)
SELECT id FROM moved;

-- name: lock_grant
-- Lock one grant by its number.
SELECT tenant_id, id, number, seq, status, principal, role, resource, starts_at, ends_at, granted_by,
       on_behalf_of, note, granted_at, revoked_by, revoked_at
FROM grants WHERE tenant_id = :tenant AND number = :number FOR UPDATE;

-- name: grants_of_people
-- Read the active grants of these people, and of those on whose behalf they act.
WITH wanted AS (
    SELECT DISTINCT tenant_id, principal
    FROM unnest(CAST(:tenants AS text[]), CAST(:principals AS text[])) AS w (tenant_id, principal)
), own AS (
    SELECT g.* FROM grants g JOIN wanted USING (tenant_id, principal) WHERE g.status = 'active'
), givers AS (
    SELECT DISTINCT tenant_id, on_behalf_of AS principal FROM own WHERE on_behalf_of IS NOT NULL
)
SELECT tenant_id, id, number, seq, status, principal, role, resource, starts_at, ends_at, granted_by,
       on_behalf_of
FROM own
UNION
SELECT g.tenant_id, g.id, g.number, g.seq, g.status, g.principal, g.role, g.resource, g.starts_at,
       g.ends_at, g.granted_by, g.on_behalf_of
FROM grants g JOIN givers USING (tenant_id, principal) WHERE g.status = 'active'
ORDER BY tenant_id, number;

-- name: list_grants
-- Read the grants of a tenant, or those about one principal, newest first; those that are over only
-- where they are asked for.
SELECT tenant_id, id, number, seq, status, principal, role, resource, starts_at, ends_at, granted_by,
       on_behalf_of, note, granted_at, revoked_by, revoked_at
FROM grants
WHERE tenant_id = :tenant
  AND (:past OR (status = 'active' AND (ends_at IS NULL OR ends_at > (SELECT signoff_clock()))))
  AND (CAST(:about AS text) IS NULL OR :about IN (principal, granted_by, on_behalf_of))
ORDER BY number DESC LIMIT :most;
