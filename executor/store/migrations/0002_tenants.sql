-- Tenants, the policies they have run under, and what Slack last said about their people.

CREATE TABLE tenants (
    id             text PRIMARY KEY,
    name           text NOT NULL,
    timezone       text NOT NULL,
    policy_version text,
    created_at     timestamptz NOT NULL DEFAULT signoff_clock(),
    CONSTRAINT a_tenant_has_a_short_id CHECK (length(id) BETWEEN 1 AND 64)
);

CREATE TABLE policies (
    tenant_id text NOT NULL REFERENCES tenants (id),
    version   text NOT NULL,
    document  jsonb NOT NULL,
    loaded_at timestamptz NOT NULL DEFAULT signoff_clock(),
    PRIMARY KEY (tenant_id, version)
);

ALTER TABLE tenants ADD CONSTRAINT the_active_policy_is_stored
    FOREIGN KEY (id, policy_version) REFERENCES policies (tenant_id, version);

-- One row a person: what was observed, when, and since when somebody waits for a newer look.
CREATE TABLE identity_observations (
    tenant_id   text NOT NULL REFERENCES tenants (id),
    principal   text NOT NULL,
    facts       jsonb,
    observed_at timestamptz,
    wanted_at   timestamptz,
    PRIMARY KEY (tenant_id, principal),
    CONSTRAINT facts_carry_the_time_of_their_observation CHECK ((facts IS NULL) = (observed_at IS NULL))
);
CREATE INDEX identities_that_somebody_waits_for
    ON identity_observations (wanted_at) WHERE wanted_at IS NOT NULL;
