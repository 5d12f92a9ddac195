-- name: insert_questions
-- Record what people ask; the same request again is refused by its hash.
INSERT INTO questions (tenant_id, id, run_id, operation_id, asked_by, question, request_hash, asked_at)
SELECT tenant_id, id, run_id, operation_id, asked_by, question, request_hash, :now
FROM unnest(CAST(:tenants AS text[]), CAST(:ids AS uuid[]), CAST(:runs AS uuid[]),
            CAST(:operations AS uuid[]), CAST(:askers AS text[]), CAST(:questions AS text[]),
            CAST(:hashes AS bytea[]))
    AS q (tenant_id, id, run_id, operation_id, asked_by, question, request_hash);

-- name: questions_of_operations
-- Read all questions about these operations, oldest first; takes no lock.
SELECT q.tenant_id, q.id, q.operation_id, q.asked_by, q.question, q.asked_at, q.step, q.answer,
       q.unanswered, q.closed_at
FROM questions q
JOIN unnest(CAST(:tenants AS text[]), CAST(:operations AS uuid[])) AS w (tenant_id, operation_id)
    USING (tenant_id, operation_id)
ORDER BY q.place;

-- name: show_question
-- Read one question with the number of its operation, as it is told in a thread; takes no lock.
SELECT q.id, q.operation_id, q.asked_by, q.question, q.asked_at, q.answer, q.unanswered, q.closed_at,
       o.number
FROM questions q
JOIN operations o ON o.tenant_id = q.tenant_id AND o.id = q.operation_id
WHERE q.tenant_id = :tenant AND q.id = :id;

-- name: questions_of_run
-- Read the questions of one run that are steps of it or still open, oldest first; takes no lock.
SELECT q.id, q.operation_id, q.asked_by, q.question, q.step, q.closed_at IS NULL AS is_open, o.number,
       o.status
FROM questions q
JOIN operations o ON o.tenant_id = q.tenant_id AND o.id = q.operation_id
WHERE q.tenant_id = :tenant AND q.run_id = :run AND (q.step IS NOT NULL OR q.closed_at IS NULL)
ORDER BY q.place;

-- name: something_is_asked
-- Say whether a run has an open question; its lock is held, and nobody asks without it.
SELECT EXISTS (
    SELECT FROM questions WHERE tenant_id = :tenant AND run_id = :run AND closed_at IS NULL
) AS is_asked;

-- name: take_up_questions
-- Remember as which steps the run has taken questions up.
UPDATE questions q SET step = w.step
FROM unnest(CAST(:ids AS uuid[]), CAST(:steps AS integer[])) AS w (id, step)
WHERE q.tenant_id = :tenant AND q.id = w.id AND q.step IS NULL AND q.closed_at IS NULL
RETURNING q.id;

-- name: close_questions
-- Close open questions with an answer, or with why there is none.
UPDATE questions SET answer = :answer, unanswered = :unanswered, closed_at = :now
WHERE tenant_id = :tenant AND id = ANY(CAST(:ids AS uuid[])) AND closed_at IS NULL
RETURNING id, operation_id;

-- name: question_of_request
-- Find what a signed request asked, after a COMMIT whose answer was lost.
SELECT id FROM questions WHERE tenant_id = :tenant AND request_hash = :request_hash;
