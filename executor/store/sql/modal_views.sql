-- name: insert_modal_view
-- Record what a modal shows to one person, before it opens.
INSERT INTO modal_views (tenant_id, nonce, operation_id, principal, content_revision, view_digest,
                         opened_at)
VALUES (:tenant, :nonce, :operation, :principal, :content_revision, :view_digest, :now);

-- name: modal_views_by_nonce
-- Find what the modals showed that submissions name; takes no lock.
SELECT m.nonce, m.operation_id, m.principal, m.content_revision, m.view_digest
FROM modal_views m
JOIN unnest(CAST(:tenants AS text[]), CAST(:nonces AS uuid[])) AS w (tenant_id, nonce)
    USING (tenant_id, nonce);
