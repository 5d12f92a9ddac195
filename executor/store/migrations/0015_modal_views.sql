-- What was put before one person alone, in a modal, recorded before it opens. A vote that is given
-- there is a vote on exactly this.

CREATE TABLE modal_views (
    tenant_id        text NOT NULL,
    nonce            uuid NOT NULL,
    operation_id     uuid NOT NULL,
    principal        text NOT NULL,
    content_revision integer NOT NULL,
    view_digest      bytea NOT NULL,
    opened_at        timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, nonce),
    FOREIGN KEY (tenant_id, operation_id) REFERENCES operations (tenant_id, id),
    FOREIGN KEY (tenant_id, view_digest) REFERENCES card_views (tenant_id, view_digest)
);
