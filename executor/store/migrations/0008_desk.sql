-- The built-in ticket desk, and our own count of how often a ticket came back after we closed it.

CREATE TABLE desk_tickets (
    tenant_id      text NOT NULL REFERENCES tenants (id),
    id             text NOT NULL,
    version        bigint NOT NULL,
    status         text NOT NULL,
    subject        text NOT NULL,
    customer_name  text NOT NULL,
    customer_email text NOT NULL,
    language       text NOT NULL,
    times_opened   integer NOT NULL DEFAULT 1,
    created_at     timestamptz NOT NULL,
    updated_at     timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT a_ticket_is_open_or_closed CHECK (status IN ('open', 'closed')),
    CONSTRAINT versions_begin_at_one CHECK (version >= 1)
);

-- One row a version: whatever changes a ticket says here what changed, and bumps its version by one.
CREATE TABLE desk_events (
    tenant_id    text NOT NULL,
    ticket_id    text NOT NULL,
    version      bigint NOT NULL,
    kind         text NOT NULL,
    author       text NOT NULL,
    body         text NOT NULL,
    operation_id uuid,
    happened_at  timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, ticket_id, version),
    CONSTRAINT a_change_has_a_known_kind CHECK (kind IN (
        'customer_message', 'agent_message', 'note', 'closed', 'reopened', 'edited'))
);
ALTER TABLE desk_tickets ADD CONSTRAINT every_version_says_what_changed
    FOREIGN KEY (tenant_id, id, version) REFERENCES desk_events (tenant_id, ticket_id, version)
    DEFERRABLE INITIALLY DEFERRED;
-- A ticket is closed once by one operation.
CREATE UNIQUE INDEX an_operation_closes_once ON desk_events (tenant_id, operation_id)
    WHERE operation_id IS NOT NULL AND kind = 'closed';
CREATE UNIQUE INDEX an_operation_reopens_once ON desk_events (tenant_id, operation_id)
    WHERE operation_id IS NOT NULL AND kind = 'reopened';

CREATE TABLE ticket_episodes (
    tenant_id      text NOT NULL REFERENCES tenants (id),
    desk           text NOT NULL,
    ticket_id      text NOT NULL,
    episode        integer NOT NULL,
    closed_version bigint,
    closed_stamp   jsonb,
    PRIMARY KEY (tenant_id, desk, ticket_id),
    CONSTRAINT episodes_begin_at_one CHECK (episode >= 1)
);

-- Tickets of outside desks as they were seen last: what cards show, and never what is compared.
CREATE TABLE outside_tickets (
    tenant_id text NOT NULL REFERENCES tenants (id),
    desk      text NOT NULL,
    ticket_id text NOT NULL,
    seen      jsonb NOT NULL,
    seen_at   timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, desk, ticket_id)
);
