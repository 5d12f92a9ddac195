-- name: something_is_due
-- Say whether any card of a tenant may have its turn; takes no lock.
SELECT subject_id FROM cards WHERE tenant_id = :tenant AND due_at <= (SELECT signoff_clock())
ORDER BY due_at LIMIT 1;

-- name: look_at_shown_cards
-- Draw shown cards again that have not been looked at for long: their messages may be deleted.
WITH old AS (
    SELECT tenant_id, subject_id FROM cards
    WHERE tenant_id = :tenant AND look_at <= (SELECT signoff_clock())
    ORDER BY look_at LIMIT :most
    FOR UPDATE SKIP LOCKED
)
UPDATE cards c SET due_at = COALESCE(c.due_at, signoff_clock()), look_at = NULL
FROM old o WHERE c.tenant_id = o.tenant_id AND c.subject_id = o.subject_id;

-- name: waiting_cards
-- Read the cards without a message that are due, drawn just now or looked for, the first of each
-- place; with where they ask to be shown. For so many tries a run's own word goes to where the run was
-- asked for (that of a run without a driver under its operation's card), an answer or a reminder under
-- the card that it is about, a warning of a limit in its run's thread, and what an agent is told under
-- its request; takes no lock.
SELECT w.* FROM (
    SELECT c.subject_id, c.subject_kind, c.unseen_since, o.number, p.channel, p.thread_ts,
           c.due_at <= :now AS is_due, COALESCE(c.lease_until > :now, false) AS is_in_hand,
           c.posting_nonce IS NOT NULL AS is_sought, c.told_at IS NOT NULL AS is_told,
           row_number() OVER (PARTITION BY c.subject_kind, p.channel
                              ORDER BY o.number, c.unseen_since, c.subject_id) AS place_in_line
    FROM cards c
    LEFT JOIN operations o ON o.tenant_id = c.tenant_id AND o.id = c.subject_id
    LEFT JOIN approvals a ON a.tenant_id = o.tenant_id AND a.operation_id = o.id
        AND a.repeats_attempt IS NULL
    LEFT JOIN runs r ON r.tenant_id = c.tenant_id AND r.id = c.subject_id AND c.failures < :tries
    LEFT JOIN questions q ON q.tenant_id = c.tenant_id AND q.id = c.subject_id
        AND c.failures < :tries
    LEFT JOIN nudges n ON n.tenant_id = c.tenant_id AND n.id = c.subject_id
        AND c.failures < :tries
    LEFT JOIN agent_requests g ON g.tenant_id = c.tenant_id AND g.id = c.subject_id
        AND c.failures < :tries
    LEFT JOIN agent_requests h ON h.tenant_id = r.tenant_id AND h.run_id = r.id
        AND h.outcome = 'accepted'
    LEFT JOIN budget_warnings b ON b.tenant_id = c.tenant_id AND b.id = c.subject_id
        AND c.failures < :tries
    LEFT JOIN runs warned ON warned.tenant_id = b.tenant_id AND warned.id = b.run_id
    LEFT JOIN cards about ON about.tenant_id = c.tenant_id
        AND about.subject_id = COALESCE(q.operation_id, n.operation_id, b.run_id)
    LEFT JOIN LATERAL (
        SELECT k.channel, k.ts FROM operations i
        JOIN cards k ON k.tenant_id = i.tenant_id AND k.subject_id = i.id AND k.ts IS NOT NULL
        WHERE i.tenant_id = r.tenant_id AND i.run_id = r.id AND NOT r.driven
        ORDER BY i.number DESC LIMIT 1
    ) last ON true
    CROSS JOIN LATERAL (
        SELECT COALESCE(a.terms ->> 'channel', about.channel, g.channel, h.channel, last.channel,
                        r.reply_to ->> 'channel') AS channel,
               COALESCE(CASE WHEN warned.reply_to ->> 'channel' = about.channel
                             THEN warned.reply_to ->> 'thread_ts' END, about.ts, g.thread_ts, h.thread_ts, last.ts,
                        r.reply_to ->> 'thread_ts') AS thread_ts
    ) p
    WHERE c.tenant_id = :tenant AND c.ts IS NULL
      -- A warning waits for the message of its run, whose thread it goes to, as long as that may come.
      AND (b.run_id IS NULL OR about.subject_id IS NULL OR about.ts IS NOT NULL
           OR about.failures >= :tries)
      AND (c.due_at <= :now OR c.lease_until > :now OR c.posting_nonce IS NOT NULL)
) AS w
WHERE w.place_in_line <= :each;

-- name: cards_to_update
-- Read the shown cards that are behind their record, those that were decided first, what runs say of
-- themselves last; takes no lock.
SELECT c.subject_id, (o.status IS NOT NULL AND o.status <> 'awaiting') AS is_decided
FROM cards c
LEFT JOIN operations o ON o.tenant_id = c.tenant_id AND o.id = c.subject_id
WHERE c.tenant_id = :tenant AND c.due_at <= :now AND c.ts IS NOT NULL
ORDER BY is_decided DESC, c.subject_kind = 'run', c.due_at LIMIT :most;

-- name: claim_cards
-- Take cards whose turn it is, skipping those that somebody else draws or changes.
WITH due AS (
    SELECT c.tenant_id, c.subject_id FROM cards c
    JOIN unnest(CAST(:subjects AS uuid[])) AS w (subject_id) USING (subject_id)
    WHERE c.tenant_id = :tenant AND c.due_at <= (SELECT signoff_clock())
    FOR UPDATE OF c SKIP LOCKED
)
UPDATE cards c
SET lease_until = signoff_clock() + make_interval(secs => :lease_seconds),
    due_at = signoff_clock() + make_interval(secs => :lease_seconds), render_no = c.render_no + 1
FROM due d WHERE c.tenant_id = d.tenant_id AND c.subject_id = d.subject_id
RETURNING c.tenant_id, c.subject_id, c.subject_kind, c.wanted_revision, c.shown_revision, c.render_no,
          c.content_revision, c.channel, c.ts, c.posting_nonce, c.failures, c.wanted_at,
          c.lease_until, c.view_digest;
