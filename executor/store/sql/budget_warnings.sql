-- name: warn_of_run
-- Remember that people are told of a run's limit, and record what they are told, once; its account is
-- locked.
WITH first AS (
    UPDATE run_budgets SET warned_at = :now
    WHERE tenant_id = :tenant AND run_id = :run AND warned_at IS NULL
    RETURNING tenant_id, run_id, limit_microusd
)
INSERT INTO budget_warnings (tenant_id, id, run_id, used_microusd, limit_microusd, made_at)
SELECT tenant_id, :id, run_id, :used, limit_microusd, :now FROM first
RETURNING id;

-- name: warn_of_day
-- The same of a day's limit, which is the active policy's with what people have added.
WITH first AS (
    UPDATE tenant_days SET warned_at = :now
    WHERE tenant_id = :tenant AND day = :day AND warned_at IS NULL
    RETURNING tenant_id, day
)
INSERT INTO budget_warnings (tenant_id, id, day, used_microusd, limit_microusd, made_at)
SELECT tenant_id, :id, day, :used, :limit, :now FROM first
RETURNING id;

-- name: show_budget_warning
-- Read one warning as its message tells it; takes no lock.
SELECT w.day, w.used_microusd, w.limit_microusd, r.number AS run
FROM budget_warnings w
LEFT JOIN runs r ON r.tenant_id = w.tenant_id AND r.id = w.run_id
WHERE w.tenant_id = :tenant AND w.id = :id;
