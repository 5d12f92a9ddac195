-- What other bots in Slack have asked for, one row a message, and what it came to at once.

CREATE TABLE agent_requests (
    tenant_id      text NOT NULL REFERENCES tenants (id),
    id             uuid NOT NULL,
    agent          text NOT NULL,
    -- The message that asked, and the thread in which it is answered.
    channel        text NOT NULL,
    ts             text NOT NULL,
    thread_ts      text NOT NULL,
    -- What it asked for; without a kind it could not be read.
    request_key    text,
    kind           text,
    content_digest bytea,
    -- 'accepted' has a run of its own, 'repeated' names that of an earlier one with the same key,
    -- 'answered' needed none: it is done already, or was rejected word for word.
    outcome        text NOT NULL,
    run_id         uuid,
    answer         jsonb NOT NULL,
    asked_at       timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id),
    CONSTRAINT a_message_of_an_agent_asks_once UNIQUE (tenant_id, channel, ts),
    CONSTRAINT a_request_comes_to_something_known
        CHECK (outcome IN ('accepted', 'repeated', 'answered', 'refused')),
    CONSTRAINT what_was_accepted_has_a_run
        CHECK ((run_id IS NOT NULL) = (outcome IN ('accepted', 'repeated'))),
    CONSTRAINT what_could_be_read_has_content
        CHECK ((kind IS NULL) = (content_digest IS NULL) AND (kind IS NOT NULL OR outcome = 'refused'))
);
CREATE UNIQUE INDEX a_key_of_an_agent_is_taken_once ON agent_requests (tenant_id, agent, request_key)
    WHERE outcome = 'accepted';
CREATE UNIQUE INDEX a_run_has_one_request ON agent_requests (tenant_id, run_id)
    WHERE outcome = 'accepted';
CREATE INDEX agent_requests_by_age ON agent_requests (tenant_id, agent, asked_at);
