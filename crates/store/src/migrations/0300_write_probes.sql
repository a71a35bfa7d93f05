-- Rows with which a process proves that the database accepts writes. Each is deleted in the transaction that inserts it, so the
-- table is empty.
CREATE TABLE write_probes (
    id TEXT NOT NULL PRIMARY KEY,
    written_at_ms BIGINT NOT NULL
);
