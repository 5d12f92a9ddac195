-- name: insert_model_calls
-- Record calls of a model before they are made, numbered in their runs, which are locked.
INSERT INTO model_calls (tenant_id, reservation_id, run_id, number, model, request_digest,
                         max_output_tokens, asked_at)
SELECT a.tenant_id, a.reservation_id, a.run_id,
       row_number() OVER (PARTITION BY a.tenant_id, a.run_id ORDER BY a.place) + COALESCE((
           SELECT max(c.number) FROM model_calls c
           WHERE c.tenant_id = a.tenant_id AND c.run_id = a.run_id), 0),
       a.model, a.request_digest, a.max_output_tokens, :now
FROM unnest(CAST(:tenants AS text[]), CAST(:reservations AS uuid[]), CAST(:runs AS uuid[]),
            CAST(:models AS text[]), CAST(:digests AS bytea[]), CAST(:outputs AS integer[]))
    WITH ORDINALITY AS a (tenant_id, reservation_id, run_id, model, request_digest,
                          max_output_tokens, place);

-- name: end_model_calls
-- Record how calls ended, under the locks of their reservations; what a lost call comes to is news.
UPDATE model_calls c
SET status = e.status, input_tokens = e.input_tokens, output_tokens = e.output_tokens,
    cache_read_tokens = e.cache_read_tokens, cache_write_tokens = e.cache_write_tokens,
    response_id = e.response_id, problem = e.problem, ended_at = :now
FROM unnest(CAST(:tenants AS text[]), CAST(:reservations AS uuid[]), CAST(:statuses AS text[]),
            CAST(:inputs AS bigint[]), CAST(:outputs AS bigint[]), CAST(:cache_reads AS bigint[]),
            CAST(:cache_writes AS bigint[]), CAST(:responses AS text[]), CAST(:problems AS text[]))
    AS e (tenant_id, reservation_id, status, input_tokens, output_tokens, cache_read_tokens,
          cache_write_tokens, response_id, problem)
WHERE c.tenant_id = e.tenant_id AND c.reservation_id = e.reservation_id
  AND (c.status = 'asked' OR c.status = 'lost' AND e.status <> 'lost');

-- name: failed_calls_in_a_row
-- Count the calls of a run that failed since the last that did not.
SELECT count(*) FROM model_calls c
WHERE c.tenant_id = :tenant AND c.run_id = :run AND c.status = 'failed' AND c.number > COALESCE((
    SELECT max(o.number) FROM model_calls o
    WHERE o.tenant_id = :tenant AND o.run_id = :run AND o.status = 'replied'), 0);

-- name: read_model_calls
-- Read the calls of one run in order, with what is charged for each.
SELECT c.number, c.model, c.request_digest, c.max_output_tokens, c.status, c.input_tokens,
       c.output_tokens, c.cache_read_tokens, c.cache_write_tokens, c.response_id, c.problem,
       c.asked_at, c.ended_at, v.id AS reservation_id, v.status AS charge, v.amount_microusd,
       v.actual_microusd
FROM model_calls c
JOIN reservations v ON v.tenant_id = c.tenant_id AND v.id = c.reservation_id
WHERE c.tenant_id = :tenant AND c.run_id = :run
ORDER BY c.number;

-- name: call_is_wanted
-- Say whether a worker still holds a run, and whether its time is over.
SELECT status = 'running' AND lease_epoch = :epoch AS ours,
       deadline_at <= (SELECT signoff_clock()) AS time_is_over
FROM runs WHERE tenant_id = :tenant AND id = :run;
