-- Calls of a model, one for each request that was made: how it was made, and how it ended. What a call
-- cost stands with its reservation alone, which may be settled long after the call.

CREATE TABLE model_calls (
    tenant_id          text NOT NULL,
    reservation_id     uuid NOT NULL,
    run_id             uuid NOT NULL,
    -- The how manieth call of its run it is, failed ones counted.
    number             integer NOT NULL,
    model              text NOT NULL,
    request_digest     bytea NOT NULL,
    max_output_tokens  integer NOT NULL,
    status             text NOT NULL DEFAULT 'asked',
    input_tokens       bigint,
    output_tokens      bigint,
    cache_read_tokens  bigint,
    cache_write_tokens bigint,
    response_id        text,
    problem            text,
    asked_at           timestamptz NOT NULL,
    ended_at           timestamptz,
    PRIMARY KEY (tenant_id, reservation_id),
    FOREIGN KEY (tenant_id, reservation_id) REFERENCES reservations (tenant_id, id),
    FOREIGN KEY (tenant_id, run_id) REFERENCES runs (tenant_id, id),
    CONSTRAINT a_call_of_a_run_has_a_number_of_its_own UNIQUE (tenant_id, run_id, number),
    -- Abandoned: we went away while it was under way. Lost: whoever made it never told of its end.
    CONSTRAINT a_call_has_a_known_status CHECK (
        status IN ('asked', 'replied', 'failed', 'abandoned', 'lost')),
    CONSTRAINT a_call_has_ended_when_its_status_says_so CHECK (
        (status = 'asked') = (ended_at IS NULL)),
    CONSTRAINT a_failed_call_says_why CHECK (status <> 'failed' OR problem IS NOT NULL),
    CONSTRAINT usage_is_told_as_a_whole CHECK (
        num_nonnulls(input_tokens, output_tokens, cache_read_tokens, cache_write_tokens) IN (0, 4)),
    CONSTRAINT tokens_are_not_negative CHECK (
        input_tokens >= 0 AND output_tokens >= 0 AND cache_read_tokens >= 0
        AND cache_write_tokens >= 0 AND max_output_tokens >= 0),
    CONSTRAINT a_request_is_named_by_its_sha256 CHECK (length(request_digest) = 32)
);
