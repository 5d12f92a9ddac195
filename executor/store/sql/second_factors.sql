-- name: put_second_factor
-- Give somebody a second factor, in place of the one before.
INSERT INTO second_factors (tenant_id, principal, sealed, enrolled_by, enrolled_at)
VALUES (:tenant, :principal, :sealed, :enrolled_by, :now)
ON CONFLICT (tenant_id, principal) DO UPDATE
SET sealed = excluded.sealed, enrolled_by = excluded.enrolled_by, enrolled_at = excluded.enrolled_at,
    used_step = 0, failures = 0, blocked_until = NULL;

-- name: drop_second_factor
-- Take somebody's second factor away.
DELETE FROM second_factors WHERE tenant_id = :tenant AND principal = :principal RETURNING principal;

-- name: lock_second_factor
-- Lock somebody's second factor: each code is judged once, whoever brings it.
SELECT sealed, used_step, failures, blocked_until FROM second_factors
WHERE tenant_id = :tenant AND principal = :principal FOR UPDATE;

-- name: judge_second_factor
-- Keep what a code came to.
UPDATE second_factors
SET used_step = :used_step, failures = :failures, blocked_until = :blocked_until
WHERE tenant_id = :tenant AND principal = :principal;

-- name: list_second_factors
-- List whoever has a second factor, without it.
SELECT principal, enrolled_by, enrolled_at, blocked_until FROM second_factors
WHERE tenant_id = :tenant ORDER BY principal;

-- name: insert_decision_link
-- Keep a link by the hash of its token.
INSERT INTO decision_links (tenant_id, token_hash, operation_id, approval_id, principal, digest,
                            content_revision, nonce, channel, message_ts, issued_at, expires_at)
VALUES (:tenant, :token_hash, :operation, :approval, :principal, :digest, :content_revision, :nonce,
        :channel, :message_ts, :now, :expires_at);

-- name: read_decision_link
-- Read a link; looking uses nothing up.
SELECT operation_id, approval_id, principal, digest, content_revision, nonce, channel, message_ts,
       expires_at
FROM decision_links WHERE tenant_id = :tenant AND token_hash = :token_hash;

-- name: forget_decision_links
-- Drop links that ended long ago.
DELETE FROM decision_links
WHERE expires_at < (SELECT signoff_clock()) - make_interval(secs => :older_than_seconds);
