-- name: keep_outside_tickets
-- Keep what was seen of outside tickets, unless somebody has seen them later.
INSERT INTO outside_tickets AS o (tenant_id, desk, ticket_id, seen, seen_at)
SELECT w.tenant_id, w.desk, w.ticket_id, CAST(w.seen AS jsonb), w.seen_at
FROM unnest(CAST(:tenants AS text[]), CAST(:desks AS text[]), CAST(:ticket_ids AS text[]),
            CAST(:seen AS text[]), CAST(:times AS timestamptz[]))
    AS w (tenant_id, desk, ticket_id, seen, seen_at)
ORDER BY 1, 2, 3
ON CONFLICT (tenant_id, desk, ticket_id) DO UPDATE
SET seen = excluded.seen, seen_at = excluded.seen_at
WHERE o.seen_at <= excluded.seen_at;

-- name: show_outside_ticket
-- Read what was seen last of one outside ticket; takes no lock.
SELECT seen FROM outside_tickets
WHERE tenant_id = :tenant AND desk = :desk AND ticket_id = :ticket;
