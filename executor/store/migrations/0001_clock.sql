-- The one clock of the executor. In production clock_offset is empty, and the trigger keeps it so:
-- only a session that has said SET signoff.clock_may_move = 'on' can write there. Tests say it.

CREATE TABLE clock_offset (
    only_row boolean PRIMARY KEY DEFAULT true,
    moved interval NOT NULL,
    CONSTRAINT clock_offset_has_one_row CHECK (only_row)
);

CREATE FUNCTION clock_may_move() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    IF current_setting('signoff.clock_may_move', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'the clock of this database may not be moved'
            USING HINT = 'Only tests move it, after SET signoff.clock_may_move = ''on''.';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER clock_moves_in_tests_only
BEFORE INSERT OR UPDATE ON clock_offset
FOR EACH ROW EXECUTE FUNCTION clock_may_move();

-- VOLATILE, so that a statement of its own reads the clock as it is after the locks. plpgsql, because
-- it keeps the plan of the inner select for the session.
CREATE FUNCTION signoff_clock() RETURNS timestamptz
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    RETURN clock_timestamp() + COALESCE((SELECT moved FROM clock_offset), interval '0');
END
$$;

COMMENT ON FUNCTION signoff_clock() IS
    'The time of the executor: clock_timestamp(), which tests can move. Read it after all locks.';
