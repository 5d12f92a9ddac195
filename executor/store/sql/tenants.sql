-- name: put_tenant
-- Make a tenant known, or bring its name and time zone up to the policy; locks its row.
INSERT INTO tenants (id, name, timezone) VALUES (:tenant, :name, :timezone)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, timezone = excluded.timezone
RETURNING policy_version;

-- name: put_policy
-- Store a policy under its version; the same version again changes nothing.
INSERT INTO policies (tenant_id, version, document)
VALUES (:tenant, :version, CAST(:document AS jsonb))
ON CONFLICT (tenant_id, version) DO NOTHING;

-- name: activate_policy
-- Make a stored policy the one that binds; waits for every opening that reads the old one.
UPDATE tenants SET policy_version = :version
WHERE id = :tenant AND policy_version IS DISTINCT FROM :version;

-- name: share_policies
-- Hold the active policies against a change until COMMIT; the first lock of every transaction.
SELECT t.id, t.timezone, t.policy_version, p.document
FROM tenants t JOIN policies p ON p.tenant_id = t.id AND p.version = t.policy_version
WHERE t.id = ANY(CAST(:tenants AS text[]))
ORDER BY t.id
FOR SHARE OF t;

-- name: known_tenants
-- List the tenants of this installation.
SELECT id FROM tenants ORDER BY id;
