-- Administrative acts. Entries are only ever inserted. The hash of an entry covers the hash of the entry before it, so an
-- entry that was changed or removed shows. before_state and after_state are JSON and hold no secrets.
CREATE TABLE audit_entries (
    seq BIGINT PRIMARY KEY,
    at_ms BIGINT NOT NULL,
    actor TEXT NOT NULL,
    os_user TEXT NOT NULL,
    host TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    phase TEXT NOT NULL,
    before_state TEXT,
    after_state TEXT,
    hash TEXT NOT NULL
);
CREATE INDEX audit_entries_actor ON audit_entries (actor, seq);
CREATE INDEX audit_entries_action ON audit_entries (action, seq);
CREATE INDEX audit_entries_subject ON audit_entries (subject, seq);

-- The number and the hash of the last entry: missing entries at the end show, too. Its row orders concurrent writers.
CREATE TABLE audit_head (
    id BIGINT PRIMARY KEY,
    seq BIGINT NOT NULL,
    hash TEXT NOT NULL
);
INSERT INTO audit_head (id, seq, hash) VALUES (1, 0, '');
