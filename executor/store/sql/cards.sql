-- name: want_cards
-- Ask for cards to be drawn again from their records; a new one begins at its first revision.
INSERT INTO cards AS c (tenant_id, subject_id, subject_kind, wanted_revision, wanted_at, due_at,
                        unseen_since)
SELECT w.tenant_id, w.subject_id, w.subject_kind, 1, :now, :now, :now
FROM unnest(CAST(:tenants AS text[]), CAST(:subjects AS uuid[]), CAST(:kinds AS text[]))
    AS w (tenant_id, subject_id, subject_kind)
ORDER BY w.tenant_id, w.subject_id
ON CONFLICT (tenant_id, subject_id) DO UPDATE
SET wanted_revision = c.wanted_revision + 1, wanted_at = :now,
    due_at = COALESCE(c.due_at, GREATEST(:now, c.rests_until));

-- name: lock_cards
-- Lock cards by their subject, in order.
SELECT c.tenant_id, c.subject_id, c.channel, c.ts, c.view_digest, c.content_revision, c.posting_nonce
FROM cards c
JOIN unnest(CAST(:tenants AS text[]), CAST(:subjects AS uuid[])) AS w (tenant_id, subject_id)
    USING (tenant_id, subject_id)
ORDER BY c.tenant_id, c.subject_id
FOR UPDATE OF c;

-- name: put_card_view
-- Keep what a drawing shows, under its digest.
INSERT INTO card_views (tenant_id, view_digest, blocks, made_at)
VALUES (:tenant, :view_digest, CAST(:blocks AS jsonb), :now)
ON CONFLICT (tenant_id, view_digest) DO NOTHING;

-- name: begin_posting
-- Record that a message is about to leave, under a nonce that it carries.
INSERT INTO card_postings (tenant_id, nonce, subject_id, channel, thread_ts, content_revision,
                           view_digest, outcome, attempted_at)
VALUES (:tenant, :nonce, :subject, :channel, :thread_ts, :content_revision, :view_digest, 'sending',
        :now);

-- name: mark_posting
-- Remember under which nonce the card's only message may stand in Slack.
UPDATE cards SET posting_nonce = :nonce
WHERE tenant_id = :tenant AND subject_id = :subject AND ts IS NULL
RETURNING subject_id;

-- name: end_posting
-- Record what became of a message that left; one that is absent is looked for once more.
UPDATE card_postings SET outcome = :outcome, ts = CAST(:ts AS text),
    look_at = CASE WHEN CAST(:outcome AS text) = 'absent'
        THEN signoff_clock() + interval '1 minute' END
WHERE tenant_id = :tenant AND nonce = :nonce AND outcome = 'sending'
RETURNING subject_id;

-- name: clear_posting
-- The message that may have stood in Slack was refused or is not there.
UPDATE cards SET posting_nonce = NULL
WHERE tenant_id = :tenant AND subject_id = :subject AND posting_nonce = :nonce;

-- name: claim_strays
-- Take messages that were absent and may have turned up: each is looked for twice.
WITH due AS (
    SELECT tenant_id, nonce FROM card_postings
    WHERE tenant_id = :tenant AND look_at <= (SELECT signoff_clock())
    ORDER BY look_at LIMIT :most FOR UPDATE SKIP LOCKED
)
UPDATE card_postings p
SET look_at = CASE WHEN signoff_clock() - p.attempted_at < interval '10 minutes'
    THEN signoff_clock() + interval '10 minutes' END
FROM due d WHERE p.tenant_id = d.tenant_id AND p.nonce = d.nonce
RETURNING p.nonce, p.subject_id, p.channel, p.thread_ts, p.content_revision, p.view_digest,
          p.outcome, p.ts, p.attempted_at;

-- name: postings_by_nonce
-- Find the postings that messages name.
SELECT p.nonce, p.subject_id, p.channel, p.thread_ts, p.content_revision, p.view_digest, p.outcome,
       p.ts, p.attempted_at
FROM card_postings p
JOIN unnest(CAST(:tenants AS text[]), CAST(:nonces AS uuid[])) AS w (tenant_id, nonce)
    USING (tenant_id, nonce);

-- name: place_card
-- Record where the card stands in Slack and what it shows (T2).
UPDATE cards SET channel = :channel, ts = :ts, posting_nonce = NULL, view_digest = :view_digest,
                 content_revision = :content_revision, unseen_since = NULL, alarmed_at = NULL,
                 tell_at = NULL, told_at = NULL
WHERE tenant_id = :tenant AND subject_id = :subject AND ts IS NULL
RETURNING subject_id;

-- name: finish_drawing
-- Record which revision the card shows now; it stays due while a newer one is wanted, as soon as it has
-- rested, and is looked at again where that is asked for.
UPDATE cards SET shown_revision = GREATEST(shown_revision, :revision), view_digest = :view_digest,
    content_revision = :content_revision, failures = 0, problem = NULL, lease_until = NULL,
    due_at = CASE WHEN wanted_revision > :revision
        THEN signoff_clock() + make_interval(secs => COALESCE(CAST(:rest_seconds AS double precision), 0)) END,
    rests_until = signoff_clock() + make_interval(secs => CAST(:rest_seconds AS double precision)),
    look_at = signoff_clock() + make_interval(secs => CAST(:look_again_seconds AS double precision))
WHERE tenant_id = :tenant AND subject_id = :subject AND render_no = :render_no
RETURNING subject_id;

-- name: put_off_card
-- Try this card again later, and say why it could not be drawn now.
UPDATE cards SET failures = failures + :failed, problem = CAST(:problem AS text), lease_until = NULL,
    due_at = signoff_clock() + make_interval(secs => :seconds)
WHERE tenant_id = :tenant AND subject_id = :subject AND render_no = :render_no
RETURNING failures;

-- name: lose_card_place
-- The message is gone (deleted, archived): the card is posted anew, and until then nobody sees it.
UPDATE cards SET channel = NULL, ts = NULL, shown_revision = 0, view_digest = NULL,
    problem = CAST(:problem AS text), lease_until = NULL, due_at = signoff_clock(), look_at = NULL,
    unseen_since = signoff_clock()
WHERE tenant_id = :tenant AND subject_id = :subject AND render_no = :render_no
RETURNING subject_id;

-- name: cards_behind
-- Count cards that have been behind their record for longer than a time, and those never shown.
SELECT count(*) AS behind, count(*) FILTER (WHERE ts IS NULL) AS unseen
FROM cards
WHERE due_at IS NOT NULL AND shown_revision < wanted_revision
  AND wanted_at < (SELECT signoff_clock()) - make_interval(secs => :seconds);

-- name: card_place
-- Read where a subject's card stands.
SELECT channel, ts, shown_revision, wanted_revision, problem FROM cards
WHERE tenant_id = :tenant AND subject_id = :subject;

-- name: insert_notices
-- Queue private answers.
INSERT INTO notices (tenant_id, id, channel, user_id, answer, due_at, created_at)
SELECT w.tenant_id, w.id, w.channel, w.user_id, CAST(w.answer AS jsonb), :now, :now
FROM unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:channels AS text[]),
            CAST(:users AS text[]), CAST(:answers AS text[])) AS w (tenant_id, id, channel, user_id, answer);

-- name: claim_notices
-- Take private answers that are due; whoever took one and died leaves it to the next.
WITH due AS (
    SELECT tenant_id, id FROM notices
    WHERE tenant_id = :tenant AND due_at <= (SELECT signoff_clock())
    ORDER BY due_at LIMIT :most FOR UPDATE SKIP LOCKED
)
UPDATE notices n SET tries = n.tries + 1,
    due_at = signoff_clock() + make_interval(secs => :lease_seconds)
FROM due d WHERE n.tenant_id = d.tenant_id AND n.id = d.id
RETURNING n.tenant_id, n.id, n.channel, n.user_id, n.answer, n.tries;

-- name: put_off_notice
-- A private answer came too soon for the other side: it is told later, and that was no try.
UPDATE notices SET tries = tries - 1, due_at = signoff_clock() + make_interval(secs => :seconds)
WHERE tenant_id = :tenant AND id = :id;

-- name: drop_notice
-- A private answer was sent, or will not be tried again.
DELETE FROM notices WHERE tenant_id = :tenant AND id = :id;

