-- How many runs of a tenant may wait for a place, how many may be at work, and whose turn it is where
-- several tenants have work.

ALTER TABLE policies ADD COLUMN max_active_runs integer
    GENERATED ALWAYS AS (CAST(document #>> '{admission,max_active_runs}' AS integer)) STORED;

CREATE INDEX runs_at_work ON runs (tenant_id, due_at, number) WHERE lease_owner IS NOT NULL;
CREATE INDEX runs_in_the_queue ON runs (tenant_id, number) WHERE status = 'queued' AND driven;

-- When a tenant was served last, for each kind of work. Whoever hands places to runs of a tenant holds
-- its row until COMMIT, so that two never count the same free place.
CREATE TABLE turns (
    tenant_id text NOT NULL REFERENCES tenants (id),
    work      text NOT NULL,
    served    bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, work),
    CONSTRAINT a_turn_is_for_known_work CHECK (work IN ('run', 'operation'))
);
CREATE SEQUENCE turns_served;

CREATE FUNCTION give_turns() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO turns (tenant_id, work) VALUES (NEW.id, 'run'), (NEW.id, 'operation');
    RETURN NULL;
END
$$;

CREATE TRIGGER every_tenant_has_its_turns
AFTER INSERT ON tenants
FOR EACH ROW EXECUTE FUNCTION give_turns();

INSERT INTO turns (tenant_id, work) SELECT id, work FROM tenants CROSS JOIN unnest(ARRAY['run', 'operation']) AS work;

-- Say how many of the asked runs may join a tenant's queue, and how many wait there: exactly, until
-- COMMIT, and however many ask at once. A transaction asks once for each tenant.
--
-- Far from the limit nobody waits for anybody: at most max_connections transactions are under way, each
-- of them adds one run that the others do not see yet, and there is room for all of those. Nearer, one
-- transaction at a time counts and adds. The inner block lets go of the shared lock where that was too
-- near, for two that hold it would wait for each other.
CREATE FUNCTION admit_to_queue(
    tenant text, asked integer, most integer, OUT admitted integer, OUT waiting integer
)
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    gate constant bigint := hashtextextended(concat_ws(chr(31), 'admission', tenant), 0);
    unseen constant integer := CAST(current_setting('max_connections') AS integer);
    apart bigint;
BEGIN
    IF asked = 1 AND most >= unseen THEN
        BEGIN
            PERFORM pg_advisory_xact_lock_shared(gate);
            -- No more can wait than there are numbers between the first and the last: mostly that is
            -- enough to know, and however long the queue is, it need not be counted.
            SELECT COALESCE(max(number) - min(number) + 1, 0) INTO apart FROM runs
            WHERE tenant_id = tenant AND status = 'queued' AND driven;
            IF apart + unseen <= most THEN
                admitted := asked;
                RETURN;
            END IF;
            SELECT count(*) INTO waiting FROM (
                SELECT FROM runs WHERE tenant_id = tenant AND status = 'queued' AND driven
                LIMIT most - unseen + 1
            ) w;
            IF waiting + unseen <= most THEN
                admitted := asked;
                RETURN;
            END IF;
            RAISE EXCEPTION USING ERRCODE = 'SO001', MESSAGE = 'too near the limit';
        EXCEPTION WHEN SQLSTATE 'SO001' THEN
            NULL;
        END;
    END IF;
    PERFORM pg_advisory_xact_lock(gate);
    SELECT count(*) INTO waiting FROM runs WHERE tenant_id = tenant AND status = 'queued' AND driven;
    admitted := GREATEST(0, LEAST(asked, most - waiting));
END
$$;
