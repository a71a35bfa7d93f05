-- Acts of admins in the web application, from their preparation until they end. Confirmed acts are never deleted: the
-- audit log names them.
CREATE TABLE admin_acts (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    -- JSON: the act and its fields
    request TEXT NOT NULL,
    -- JSON: the words that the admin confirms
    summary TEXT NOT NULL,
    -- 32 random bytes in hex
    nonce TEXT NOT NULL,
    -- contains the hash of all columns above
    challenge TEXT NOT NULL,
    -- JSON: the passkey's assertion over the challenge
    assertion TEXT,
    confirmed_at_ms BIGINT,
    -- JSON: the result; NULL until the act has ended
    outcome TEXT,
    ended_at_ms BIGINT,
    created_at_ms BIGINT NOT NULL
);
CREATE INDEX admin_acts_unconfirmed ON admin_acts (created_at_ms) WHERE confirmed_at_ms IS NULL;
