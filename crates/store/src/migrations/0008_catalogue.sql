-- The place of a market among the featured ones, the least first; null where it is not featured.
ALTER TABLE markets ADD COLUMN featured_position BIGINT;
CREATE INDEX markets_featured ON markets (featured_position, id) WHERE featured_position IS NOT NULL;

-- What was imported from the operator's files: the row that was made of an author's key. terms_hash is over what never
-- changes of it, content_hash over all that was read.
CREATE TABLE imports (
    kind TEXT NOT NULL,
    import_key TEXT NOT NULL,
    row_id TEXT NOT NULL,
    terms_hash TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX imports_key ON imports (kind, import_key);
