-- name: desk_import_ticket
-- Insert one ticket with all versions it is born with; no rows when the id is taken.
WITH born AS (
    INSERT INTO desk_tickets (
        tenant_id, id, version, status, subject, customer_name, customer_email, language,
        created_at, updated_at)
    VALUES (
        :tenant, :ticket, cardinality(CAST(:kinds AS text[])), :status, :subject, :customer_name,
        :customer_email, :language, :created_at, :updated_at)
    ON CONFLICT (tenant_id, id) DO NOTHING
    RETURNING tenant_id, id
)
INSERT INTO desk_events (tenant_id, ticket_id, version, kind, author, body, happened_at)
SELECT born.tenant_id, born.id, change.version, change.kind, change.author, change.body,
       change.happened_at
FROM born
CROSS JOIN unnest(
    CAST(:kinds AS text[]), CAST(:authors AS text[]), CAST(:bodies AS text[]),
    CAST(:times AS timestamptz[]))
    WITH ORDINALITY AS change (kind, author, body, happened_at, version)
RETURNING version;

-- name: desk_read_ticket
-- Read one ticket and its changes as of one moment, oldest change first; one row a change.
SELECT ticket.id, ticket.version, ticket.status, ticket.subject, ticket.customer_name,
       ticket.customer_email, ticket.language, ticket.times_opened, ticket.updated_at,
       change.version AS change_version, change.kind, change.author, change.body,
       change.happened_at
FROM desk_tickets AS ticket
JOIN desk_events AS change
    ON change.tenant_id = ticket.tenant_id AND change.ticket_id = ticket.id
WHERE ticket.tenant_id = :tenant AND ticket.id = :ticket
ORDER BY change.version;

-- name: desk_lock_tickets
-- Lock the named tickets of one tenant, by id; those that do not exist are missing in the answer.
SELECT id, version, status, subject, customer_name, customer_email, language, times_opened,
       updated_at
FROM desk_tickets
WHERE tenant_id = :tenant AND id = ANY (CAST(:tickets AS text[]))
ORDER BY id
FOR UPDATE;

-- name: desk_search_tickets
-- Find tickets in which every pattern occurs (fields or conversation), of those named if some are;
-- open ones first, then newest.
SELECT id, version, status, subject, customer_name, customer_email, language, times_opened,
       updated_at
FROM desk_tickets AS ticket
WHERE tenant_id = :tenant
  AND (CAST(:only AS text[]) IS NULL OR id = ANY (CAST(:only AS text[])))
  AND NOT EXISTS (
    SELECT FROM unnest(CAST(:patterns AS text[])) AS wanted (pattern)
    WHERE concat_ws(
            E'\n', ticket.id, ticket.subject, ticket.customer_name, ticket.customer_email)
            NOT ILIKE wanted.pattern
      AND NOT EXISTS (
        SELECT FROM desk_events AS change
        WHERE change.tenant_id = ticket.tenant_id AND change.ticket_id = ticket.id
          AND change.body ILIKE wanted.pattern))
ORDER BY (status = 'closed'), updated_at DESC, id
LIMIT :most;

-- name: desk_append_change
-- Write one message or note as the next version; one from the customer opens a closed ticket again.
WITH found AS (
    SELECT tenant_id, id, status FROM desk_tickets
    WHERE tenant_id = :tenant AND id = :ticket
    FOR UPDATE
), changed AS (
    UPDATE desk_tickets AS ticket
    SET version = ticket.version + 1,
        updated_at = CAST(:now AS timestamptz),
        status = CASE WHEN CAST(:reopens AS boolean) THEN 'open' ELSE ticket.status END,
        times_opened = ticket.times_opened
            + CASE WHEN CAST(:reopens AS boolean) AND found.status = 'closed' THEN 1 ELSE 0 END
    FROM found
    WHERE ticket.tenant_id = found.tenant_id AND ticket.id = found.id
    RETURNING ticket.tenant_id, ticket.id, ticket.version,
              CAST(:reopens AS boolean) AND found.status = 'closed' AS reopened
), said AS (
    INSERT INTO desk_events (tenant_id, ticket_id, version, kind, author, body, happened_at)
    SELECT tenant_id, id, version, :kind, :author, :body, CAST(:now AS timestamptz) FROM changed
)
SELECT version, reopened FROM changed;

-- name: desk_edit_ticket
-- Write new fields as the next version of a ticket that the caller has locked.
WITH changed AS (
    UPDATE desk_tickets
    SET version = version + 1,
        updated_at = CAST(:now AS timestamptz),
        subject = :subject,
        customer_name = :customer_name,
        customer_email = :customer_email,
        language = :language
    WHERE tenant_id = :tenant AND id = :ticket
    RETURNING tenant_id, id, version
)
INSERT INTO desk_events (tenant_id, ticket_id, version, kind, author, body, happened_at)
SELECT tenant_id, id, version, 'edited', :author, :body, CAST(:now AS timestamptz) FROM changed
RETURNING version;

-- name: desk_reopen_ticket
-- Open a closed ticket again at the version that the caller saw under its lock.
WITH changed AS (
    UPDATE desk_tickets
    SET version = version + 1, updated_at = CAST(:now AS timestamptz), status = 'open', times_opened = times_opened + 1
    WHERE tenant_id = :tenant AND id = :ticket AND version = :version AND status = 'closed'
    RETURNING tenant_id, id, version
)
INSERT INTO desk_events (
    tenant_id, ticket_id, version, kind, author, body, operation_id, happened_at)
SELECT tenant_id, id, version, 'reopened', :author, :body, CAST(:operation AS uuid), CAST(:now AS timestamptz)
FROM changed
RETURNING version;

-- name: desk_close_tickets
-- Close each open ticket that still is at its expected version; the caller holds their locks by id.
WITH wanted AS (
    SELECT * FROM unnest(
        CAST(:tenants AS text[]), CAST(:tickets AS text[]), CAST(:versions AS bigint[]),
        CAST(:authors AS text[]), CAST(:bodies AS text[]), CAST(:operations AS uuid[]))
        WITH ORDINALITY
        AS item (tenant_id, ticket_id, version, author, body, operation_id, ordinal)
), closed AS (
    UPDATE desk_tickets AS ticket
    SET version = ticket.version + 1, status = 'closed', updated_at = CAST(:now AS timestamptz)
    FROM wanted
    WHERE ticket.tenant_id = wanted.tenant_id AND ticket.id = wanted.ticket_id
      AND ticket.version = wanted.version AND ticket.status = 'open'
    RETURNING ticket.tenant_id, ticket.id, ticket.version, wanted.author, wanted.body,
              wanted.operation_id, wanted.ordinal
), said AS (
    INSERT INTO desk_events (
        tenant_id, ticket_id, version, kind, author, body, operation_id, happened_at)
    SELECT tenant_id, id, version, 'closed', author, body, operation_id, CAST(:now AS timestamptz) FROM closed
)
SELECT ordinal, version FROM closed;
