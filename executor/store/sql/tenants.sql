-- name: put_tenant
-- Make a tenant known, or bring its name and time zone up to the policy.
INSERT INTO tenants (id, name, timezone) VALUES (:tenant, :name, :timezone)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, timezone = excluded.timezone;

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

-- name: put_identity
-- Store what Slack says about a person now; nobody waits for a look any more.
INSERT INTO identity_observations (tenant_id, principal, facts, observed_at)
VALUES (:tenant, :principal, CAST(:facts AS jsonb), :observed_at)
ON CONFLICT (tenant_id, principal) DO UPDATE
SET facts = excluded.facts, observed_at = excluded.observed_at, wanted_at = NULL
WHERE identity_observations.observed_at IS NULL
   OR identity_observations.observed_at <= excluded.observed_at;

-- name: want_identities
-- Ask for a newer look at these people; who already waits keeps the earlier time.
INSERT INTO identity_observations AS i (tenant_id, principal, wanted_at)
SELECT w.tenant_id, w.principal, :wanted_at
FROM unnest(CAST(:tenants AS text[]), CAST(:principals AS text[])) AS w (tenant_id, principal)
ORDER BY 1, 2
ON CONFLICT (tenant_id, principal) DO UPDATE
SET wanted_at = COALESCE(i.wanted_at, excluded.wanted_at);

-- name: wanted_identities
-- List whom somebody waits for, oldest wish first.
SELECT tenant_id, principal FROM identity_observations
WHERE wanted_at IS NOT NULL ORDER BY wanted_at LIMIT :most;

-- name: read_identities
-- Read the newest observations of these people, and since when somebody waits for a newer one.
SELECT tenant_id, principal, facts, observed_at, wanted_at
FROM identity_observations
JOIN unnest(CAST(:tenants AS text[]), CAST(:principals AS text[])) AS w (tenant_id, principal)
    USING (tenant_id, principal)
WHERE facts IS NOT NULL;

-- name: known_tenants
-- List the tenants of this installation.
SELECT id FROM tenants ORDER BY id;
