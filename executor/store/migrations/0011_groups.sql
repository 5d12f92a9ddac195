-- What Slack last said of user groups, and since when an observation is known to be out of date.

-- One row a group. Looks are shared by all processes: none is made before look_after.
CREATE TABLE group_observations (
    tenant_id   text NOT NULL REFERENCES tenants (id),
    group_id    text NOT NULL,
    members     text[],
    problem     text,
    observed_at timestamptz,
    wanted_at   timestamptz,
    changed_at  timestamptz,
    look_after  timestamptz,
    PRIMARY KEY (tenant_id, group_id),
    CONSTRAINT members_carry_the_time_of_their_observation
        CHECK ((members IS NULL) = (observed_at IS NULL))
);
CREATE INDEX groups_that_somebody_waits_for
    ON group_observations (tenant_id, wanted_at) WHERE wanted_at IS NOT NULL;

-- An observation from before Slack told of a change is none: who acts on it is looked at first.
ALTER TABLE identity_observations ADD COLUMN changed_at timestamptz;
DROP INDEX identities_that_somebody_waits_for;
CREATE INDEX identities_that_somebody_waits_for
    ON identity_observations (tenant_id, wanted_at) WHERE wanted_at IS NOT NULL;
