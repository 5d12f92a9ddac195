-- name: put_event
-- Store an event before it is acknowledged; the same event again changes nothing.
INSERT INTO inbox (tenant_id, event_id, payload, received_at, due_at)
VALUES (:tenant, :event_id, CAST(:payload AS jsonb), signoff_clock(), signoff_clock())
ON CONFLICT (tenant_id, event_id) DO NOTHING
RETURNING event_id;

-- name: claim_events
-- Take stored events that nobody has handled.
WITH due AS (
    SELECT tenant_id, event_id FROM inbox WHERE due_at <= (SELECT signoff_clock())
    ORDER BY due_at LIMIT :most FOR UPDATE SKIP LOCKED
)
UPDATE inbox i SET tries = i.tries + 1,
    due_at = signoff_clock() + make_interval(secs => :lease_seconds)
FROM due d WHERE i.tenant_id = d.tenant_id AND i.event_id = d.event_id
RETURNING i.tenant_id, i.event_id, i.payload, i.tries;

-- name: handle_event
-- An event has been handled, in the transaction that did what it asked for.
UPDATE inbox SET handled_at = signoff_clock(), due_at = NULL
WHERE tenant_id = :tenant AND event_id = :event_id AND handled_at IS NULL
RETURNING event_id;
