-- What the outside asked and is told: cards, the answers to clicks, incoming events, seen requests.

-- One card a subject (an operation, or a run that has something to say). The card is a view of the
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
    PRIMARY KEY (tenant_id, subject_id),
    CONSTRAINT a_card_shows_an_operation_or_a_run CHECK (subject_kind IN ('operation', 'run')),
    CONSTRAINT a_card_never_shows_what_nobody_wanted CHECK (shown_revision <= wanted_revision),
    CONSTRAINT a_shown_card_has_a_place
        CHECK ((channel IS NULL) = (ts IS NULL) AND (shown_revision = 0 OR ts IS NOT NULL))
);
CREATE INDEX cards_that_are_due ON cards (due_at) WHERE due_at IS NOT NULL;
CREATE UNIQUE INDEX one_card_a_message ON cards (tenant_id, channel, ts) WHERE ts IS NOT NULL;

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
    content_revision integer NOT NULL,
    view_digest      bytea NOT NULL,
    outcome          text NOT NULL,
    ts               text,
    attempted_at     timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, nonce),
    FOREIGN KEY (tenant_id, subject_id) REFERENCES cards (tenant_id, subject_id),
    CONSTRAINT a_posting_is_in_flight_or_over
        CHECK (outcome IN ('sending', 'posted', 'refused', 'absent')),
    CONSTRAINT a_posted_card_has_a_ts CHECK ((outcome = 'posted') = (ts IS NOT NULL))
);
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
CREATE INDEX notices_that_are_due ON notices (due_at);

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
