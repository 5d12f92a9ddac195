-- What somebody proves beyond the Slack session, and the links under which one decides outside Slack.

-- One secret a person, sealed with a key that the database does not have. ``used_step`` is the newest
-- code that was accepted: each code counts once.
CREATE TABLE second_factors (
    tenant_id   text NOT NULL REFERENCES tenants (id),
    principal   text NOT NULL,
    sealed      text NOT NULL,
    enrolled_by text NOT NULL,
    enrolled_at timestamptz NOT NULL,
    used_step   bigint NOT NULL DEFAULT 0,
    failures    integer NOT NULL DEFAULT 0,
    blocked_until timestamptz,
    PRIMARY KEY (tenant_id, principal),
    CONSTRAINT failures_are_counted_from_zero CHECK (failures >= 0)
);

-- One link a click: what was shown, to whom it was given, and until when. Only the hash of its token is
-- kept. Looking at it uses nothing up; a decision is made once under its hash, as under a signed request's.
CREATE TABLE decision_links (
    tenant_id        text NOT NULL,
    token_hash       bytea NOT NULL,
    operation_id     uuid NOT NULL,
    approval_id      uuid NOT NULL,
    principal        text NOT NULL,
    digest           bytea NOT NULL,
    content_revision integer NOT NULL,
    nonce            uuid NOT NULL,
    channel          text NOT NULL,
    message_ts       text NOT NULL,
    issued_at        timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, token_hash),
    FOREIGN KEY (tenant_id, operation_id) REFERENCES operations (tenant_id, id),
    FOREIGN KEY (tenant_id, approval_id) REFERENCES approvals (tenant_id, id),
    CONSTRAINT a_token_is_known_by_its_sha256 CHECK (length(token_hash) = 32),
    CONSTRAINT a_link_ends_after_it_was_issued CHECK (expires_at > issued_at)
);
CREATE INDEX decision_links_by_age ON decision_links (expires_at);
