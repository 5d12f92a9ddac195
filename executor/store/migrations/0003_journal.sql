-- The append-only history of every machine, and the edges that it may take.
--
-- A state row's (machine, id, seq, status) references the journal row that brought it there, a
-- journal row's source references its predecessor's target, and every (machine, source, target)
-- references an edge. None of these keys is deferrable: a change and its journal row must come from
-- one statement. So an illegal edge, a forged source, a skipped number and an unjournaled change
-- cannot be stored, whatever the application does.

CREATE TABLE edges (
    machine text NOT NULL,
    source  text NOT NULL,
    target  text NOT NULL,
    PRIMARY KEY (machine, source, target)
);

-- Rows are chained per subject: a run with all that belongs to it. A row without a machine is a note:
-- something that was said or seen and moved nothing (a late click, a vote below the quorum).
CREATE TABLE journal (
    tenant_id     text NOT NULL,
    subject       uuid NOT NULL,
    position      bigint NOT NULL,
    machine       text,
    entity_id     uuid NOT NULL,
    seq           integer,
    source        text,
    target        text,
    previous_seq  integer GENERATED ALWAYS AS (CASE WHEN seq > 1 THEN seq - 1 END) STORED,
    event         text NOT NULL,
    actor         text NOT NULL,
    detail        jsonb NOT NULL,
    recorded_at   timestamptz NOT NULL,
    previous_hash bytea NOT NULL,
    hash          bytea NOT NULL,
    PRIMARY KEY (tenant_id, subject, position),
    CONSTRAINT a_journal_row_is_a_move_or_a_note CHECK (
        (machine IS NULL AND seq IS NULL AND source IS NULL AND target IS NULL)
        OR (machine IS NOT NULL AND seq IS NOT NULL AND source IS NOT NULL AND target IS NOT NULL)),
    CONSTRAINT the_first_move_is_a_birth CHECK ((seq = 1) = (source = 'born')),
    CONSTRAINT numbers_begin_at_one CHECK (seq >= 1 AND position >= 1),
    CONSTRAINT hashes_are_sha256 CHECK (length(hash) = 32 AND length(previous_hash) = 32),
    CONSTRAINT one_journal_row_a_move UNIQUE (tenant_id, machine, entity_id, seq, target),
    CONSTRAINT only_edges_are_taken
        FOREIGN KEY (machine, source, target) REFERENCES edges (machine, source, target),
    CONSTRAINT a_move_starts_where_the_last_one_ended
        FOREIGN KEY (tenant_id, machine, entity_id, previous_seq, source)
        REFERENCES journal (tenant_id, machine, entity_id, seq, target)
);

-- The two ends of one sequence number may not differ only in their target.
CREATE UNIQUE INDEX one_target_a_sequence_number
    ON journal (tenant_id, entity_id, machine, seq) WHERE machine IS NOT NULL;

CREATE TABLE journal_heads (
    tenant_id text NOT NULL,
    subject   uuid NOT NULL,
    position  bigint NOT NULL,
    hash      bytea NOT NULL,
    PRIMARY KEY (tenant_id, subject)
);

CREATE FUNCTION refuse_to_rewrite_history() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the journal is append-only' USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER the_journal_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON journal
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_to_rewrite_history();

-- The one place that knows the shape of a journal entry as the store hands it over.
CREATE FUNCTION journal_entries(entries jsonb) RETURNS TABLE (
    tenant_id text, subject uuid, "position" bigint, machine text, entity_id uuid, seq integer,
    source text, target text, event text, actor text, detail jsonb, recorded_at timestamptz,
    previous_hash bytea, hash bytea
) LANGUAGE sql STABLE AS $$
    SELECT e.tenant_id, e.subject, e."position", e.machine, e.entity_id, e.seq, e.source, e.target,
           e.event, e.actor, e.detail, e.recorded_at,
           decode(e.previous_hash, 'hex'), decode(e.hash, 'hex')
    FROM jsonb_to_recordset(entries) AS e (
        tenant_id text, subject uuid, "position" bigint, machine text, entity_id uuid, seq integer,
        source text, target text, event text, actor text, detail jsonb, recorded_at timestamptz,
        previous_hash text, hash text)
$$;
