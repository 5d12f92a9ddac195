-- name: alarm_unseen
-- Take approvals that nobody can see for so long, once each, where something is wrong: with the card,
-- with its place, or because no card at all has had its turn lately.
WITH unseen AS (
    SELECT c.tenant_id, c.subject_id, o.number, o.run_id, c.unseen_since,
           COALESCE(t.problem, c.problem) AS problem
    FROM cards c
    JOIN operations o ON o.tenant_id = c.tenant_id AND o.id = c.subject_id AND o.status = 'awaiting'
    JOIN approvals a ON a.tenant_id = o.tenant_id AND a.operation_id = o.id
        AND a.repeats_attempt IS NULL
    JOIN tenants n ON n.id = c.tenant_id
    JOIN policies p ON p.tenant_id = n.id AND p.version = n.policy_version
    LEFT JOIN LATERAL (
        SELECT problem FROM delivery_troubles t
        WHERE t.tenant_id = c.tenant_id AND t.look_at IS NOT NULL
          AND t.place IN ('', COALESCE(a.terms ->> 'channel', p.document #>> '{slack,channel}'))
        ORDER BY t.place LIMIT 1
    ) t ON true
    WHERE c.ts IS NULL AND c.alarmed_at IS NULL
      AND c.unseen_since < (SELECT signoff_clock()) - make_interval(secs => :seconds)
      AND (COALESCE(t.problem, c.problem) IS NOT NULL
           OR NOT EXISTS (SELECT FROM paces g
                          WHERE g.tenant_id = c.tenant_id AND g.family = 'post'
                            AND g.free_at > signoff_clock() - make_interval(secs => :seconds)))
    ORDER BY c.tenant_id, c.subject_id LIMIT :most
    FOR UPDATE OF c SKIP LOCKED
)
UPDATE cards c SET alarmed_at = signoff_clock()
FROM unseen u WHERE c.tenant_id = u.tenant_id AND c.subject_id = u.subject_id
RETURNING c.tenant_id, u.number, u.run_id, u.problem, c.alarmed_at - c.unseen_since AS unseen_for;

-- name: alarmed_at
-- Read since when a card is unseen and whether that has alarmed; its row is locked.
SELECT unseen_since, alarmed_at, signoff_clock() AS now FROM cards WHERE tenant_id = :tenant AND subject_id = :subject;

-- name: unseen_to_tell
-- Take approvals that nobody can see and of which people are to hear now: at once where they ask to
-- be shown in one of those places, else after a time and where something is wrong with the card or
-- another place. They are told again, ever later, until that has worked.
WITH unseen AS (
    SELECT c.tenant_id, c.subject_id, o.number, o.requester, c.problem, a.terms ->> 'channel' AS channel
    FROM cards c
    JOIN operations o ON o.tenant_id = c.tenant_id AND o.id = c.subject_id AND o.status = 'awaiting'
    JOIN approvals a ON a.tenant_id = o.tenant_id AND a.operation_id = o.id
        AND a.repeats_attempt IS NULL
    WHERE c.tenant_id = :tenant AND c.ts IS NULL AND c.told_at IS NULL
      AND COALESCE(c.tell_at, '-infinity') <= (SELECT signoff_clock())
      AND (COALESCE(a.terms ->> 'channel', :channel) = ANY(CAST(:lasting AS text[]))
           OR (c.unseen_since < (SELECT signoff_clock()) - make_interval(secs => :seconds)
               AND (c.problem IS NOT NULL
                    OR COALESCE(a.terms ->> 'channel', :channel) = ANY(CAST(:passing AS text[])))))
    ORDER BY o.number LIMIT :most
    FOR UPDATE OF c SKIP LOCKED
)
UPDATE cards c SET tell_at = signoff_clock() + LEAST(
    GREATEST(signoff_clock() - c.unseen_since, make_interval(secs => :first_seconds)), interval '1 hour')
FROM unseen u WHERE c.tenant_id = u.tenant_id AND c.subject_id = u.subject_id
RETURNING u.subject_id, u.number, u.requester, u.problem, u.channel;

-- name: remember_telling
-- People have been told of these cards; locks them by their subject, in order.
WITH told AS (
    SELECT tenant_id, subject_id FROM cards
    WHERE tenant_id = :tenant AND subject_id = ANY(CAST(:subjects AS uuid[])) AND ts IS NULL
    ORDER BY subject_id FOR UPDATE
)
UPDATE cards c SET told_at = signoff_clock(), tell_at = NULL
FROM told t WHERE c.tenant_id = t.tenant_id AND c.subject_id = t.subject_id;

-- name: count_unseen
-- Count the approvals that nobody can see, with the oldest one's age, of each problem.
SELECT count(*) AS approvals, extract(epoch FROM signoff_clock() - min(c.unseen_since)) AS oldest_seconds,
       COALESCE(
           (SELECT t.problem FROM delivery_troubles t
            WHERE t.tenant_id = c.tenant_id AND t.look_at IS NOT NULL
              AND t.place IN ('', COALESCE(a.terms ->> 'channel', :channel))
            ORDER BY t.place = '' DESC LIMIT 1),
           c.problem) AS problem
FROM cards c
JOIN operations o ON o.tenant_id = c.tenant_id AND o.id = c.subject_id AND o.status = 'awaiting'
JOIN approvals a ON a.tenant_id = o.tenant_id AND a.operation_id = o.id AND a.repeats_attempt IS NULL
WHERE c.tenant_id = :tenant AND c.ts IS NULL
GROUP BY 3 ORDER BY 1 DESC;
