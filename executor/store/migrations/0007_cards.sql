-- What the outside asked and is told: cards, the answers to clicks, incoming events, seen requests.

-- One card a subject (an operation, a run that has something to say, or a question that was closed). The card is a view of the
-- record: whoever changes the record raises wanted_revision, and a loop draws until shown equals it.
CREATE TABLE cards (
    tenant_id        text NOT NULL,
    subject_id       uuid NOT NULL,
    subject_kind     text NOT NULL,
    wanted_revision  integer NOT NULL,
    shown_revision   integer NOT NULL DEFAULT 0,
    render_no        integer NOT NULL DEFAULT 0,
    content_revision integer NOT NULL DEFAULT 0,
    view_digest      bytea,
    channel          text,
    ts               text,
    posting_nonce    uuid,
    problem          text,
    failures         integer NOT NULL DEFAULT 0,
    wanted_at        timestamptz NOT NULL,
    due_at           timestamptz,
    lease_until      timestamptz,
    -- Until when it is not drawn again: what tells of progress changes often, and may lag a little.
    rests_until      timestamptz,
    -- When a shown card is looked at again, for its message may have been deleted.
    look_at          timestamptz,
    -- Since when nobody can see it; whether that has alarmed, and whether people were told.
    unseen_since     timestamptz,
    alarmed_at       timestamptz,
    tell_at          timestamptz,
    told_at          timestamptz,
    PRIMARY KEY (tenant_id, subject_id),
    CONSTRAINT a_card_shows_something_that_can_be_told
        CHECK (subject_kind IN ('operation', 'run', 'question', 'nudge', 'request')),
    CONSTRAINT a_card_never_shows_what_nobody_wanted CHECK (shown_revision <= wanted_revision),
    CONSTRAINT a_shown_card_has_a_place
        CHECK ((channel IS NULL) = (ts IS NULL) AND (shown_revision = 0 OR ts IS NOT NULL)),
    CONSTRAINT a_card_is_unseen_as_long_as_it_has_no_place
        CHECK ((ts IS NULL) = (unseen_since IS NOT NULL)),
    CONSTRAINT only_what_is_unseen_is_told
        CHECK (unseen_since IS NOT NULL
            OR (alarmed_at IS NULL AND tell_at IS NULL AND told_at IS NULL)),
    CONSTRAINT only_a_shown_card_is_looked_at CHECK (look_at IS NULL OR ts IS NOT NULL)
);
CREATE INDEX cards_that_are_due ON cards (tenant_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX cards_that_nobody_can_see ON cards (tenant_id, unseen_since) WHERE ts IS NULL;
CREATE INDEX cards_to_look_at ON cards (tenant_id, look_at) WHERE look_at IS NOT NULL;
CREATE UNIQUE INDEX one_card_a_message ON cards (tenant_id, channel, ts) WHERE ts IS NOT NULL;

-- How fast each family of calls may be made, in one channel or (channel '') in the whole workspace.
-- All processes take their turns from the same row, and what one is told holds all of them back.
CREATE TABLE paces (
    tenant_id text NOT NULL,
    family    text NOT NULL,
    channel   text NOT NULL,
    free_at   timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, family, channel),
    CONSTRAINT a_pace_is_of_a_known_family CHECK (family IN ('post', 'update', 'search'))
);

-- Where nothing can be shown just now: a channel, or (place '') the whole workspace. It is closed
-- until somebody has looked, then open; the first message that arrives there ends it.
CREATE TABLE delivery_troubles (
    tenant_id text NOT NULL,
    place     text NOT NULL,
    problem   text NOT NULL,
    lasting   boolean NOT NULL,
    since     timestamptz NOT NULL,
    noted_at  timestamptz NOT NULL,
    look_at   timestamptz,
    PRIMARY KEY (tenant_id, place),
    CONSTRAINT a_trouble_has_a_beginning CHECK (since <= noted_at)
);

-- Every drawing that was sent out, by the digest of its blocks: what a reviewer saw can be shown again.
CREATE TABLE card_views (
    tenant_id   text NOT NULL,
    view_digest bytea NOT NULL,
    blocks      jsonb NOT NULL,
    made_at     timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, view_digest)
);

-- Recorded before the message leaves, so that a post whose answer was lost can be found or adopted.
CREATE TABLE card_postings (
    tenant_id        text NOT NULL,
    nonce            uuid NOT NULL,
    subject_id       uuid NOT NULL,
    channel          text NOT NULL,
    thread_ts        text,
    content_revision integer NOT NULL,
    view_digest      bytea NOT NULL,
    outcome          text NOT NULL,
    ts               text,
    attempted_at     timestamptz NOT NULL,
    -- When it is looked for once more, for it may turn up beside the card that took its place.
    look_at          timestamptz,
    PRIMARY KEY (tenant_id, nonce),
    FOREIGN KEY (tenant_id, subject_id) REFERENCES cards (tenant_id, subject_id),
    CONSTRAINT a_posting_is_in_flight_or_over
        CHECK (outcome IN ('sending', 'posted', 'refused', 'absent')),
    CONSTRAINT a_posted_card_has_a_ts CHECK ((outcome = 'posted') = (ts IS NOT NULL)),
    CONSTRAINT only_what_is_absent_may_turn_up CHECK (look_at IS NULL OR outcome = 'absent')
);
CREATE INDEX postings_that_may_turn_up ON card_postings (tenant_id, look_at)
    WHERE look_at IS NOT NULL;
CREATE INDEX postings_by_subject ON card_postings (tenant_id, subject_id);

-- Private answers to people, sent at best effort; the bot makes a sentence of each answer.
CREATE TABLE notices (
    tenant_id  text NOT NULL,
    id         uuid NOT NULL,
    channel    text NOT NULL,
    user_id    text NOT NULL,
    answer     jsonb NOT NULL,
    tries      integer NOT NULL DEFAULT 0,
    due_at     timestamptz NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX notices_that_are_due ON notices (tenant_id, due_at);

-- Events (mentions) are stored before they are acknowledged and handled later, once.
CREATE TABLE inbox (
    tenant_id   text NOT NULL,
    event_id    text NOT NULL,
    payload     jsonb NOT NULL,
    received_at timestamptz NOT NULL,
    handled_at  timestamptz,
    tries       integer NOT NULL DEFAULT 0,
    due_at      timestamptz,
    PRIMARY KEY (tenant_id, event_id),
    CONSTRAINT a_handled_event_is_not_due CHECK (handled_at IS NULL OR due_at IS NULL)
);
CREATE INDEX inbox_that_is_due ON inbox (due_at) WHERE due_at IS NOT NULL;

-- Hashes of signed requests whose decision was committed; kept for longer than a signature is valid.
CREATE TABLE seen_requests (
    tenant_id    text NOT NULL,
    request_hash bytea NOT NULL,
    seen_at      timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, request_hash)
);
CREATE INDEX seen_requests_by_age ON seen_requests (seen_at);
