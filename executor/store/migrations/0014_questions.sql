-- What people asked the agent about operations that waited for a decision, and what it answered.

CREATE TABLE questions (
    tenant_id    text NOT NULL,
    id           uuid NOT NULL,
    place        bigint GENERATED ALWAYS AS IDENTITY,
    run_id       uuid NOT NULL,
    operation_id uuid NOT NULL,
    asked_by     text NOT NULL,
    question     text NOT NULL,
    request_hash bytea NOT NULL,
    asked_at     timestamptz NOT NULL,
    -- The step as which the run took it up; NULL: it has not yet.
    step         integer,
    -- How it was closed: by the agent's words, or why there are none.
    answer       text,
    unanswered   text,
    closed_at    timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, operation_id) REFERENCES operations (tenant_id, id),
    FOREIGN KEY (tenant_id, run_id, step) REFERENCES steps (tenant_id, run_id, number),
    CONSTRAINT a_request_asks_once UNIQUE (tenant_id, request_hash),
    CONSTRAINT a_step_is_one_question UNIQUE (tenant_id, run_id, step),
    CONSTRAINT a_closed_question_has_an_answer_or_says_why_not
        CHECK (num_nonnulls(answer, unanswered) = CASE WHEN closed_at IS NULL THEN 0 ELSE 1 END),
    CONSTRAINT only_what_was_taken_up_is_answered CHECK (answer IS NULL OR step IS NOT NULL)
);
CREATE INDEX questions_by_operation ON questions (tenant_id, operation_id);
CREATE INDEX open_questions_by_run ON questions (tenant_id, run_id) WHERE closed_at IS NULL;
