-- What users do with their own accounts. Not in the chain of audit_entries: anybody can sign up, and entries of a chain can never
-- be deleted. detail is JSON and holds no secrets.
CREATE TABLE user_log (
    user_id TEXT NOT NULL REFERENCES users (id),
    at_ms BIGINT NOT NULL,
    ip TEXT NOT NULL,
    action TEXT NOT NULL,
    -- empty for the user
    subject TEXT NOT NULL,
    detail TEXT,
    -- further entries of this action that were only counted, and the time of the last one
    more BIGINT NOT NULL DEFAULT 0,
    last_at_ms BIGINT NOT NULL
);
CREATE INDEX user_log_user ON user_log (user_id, at_ms);
CREATE INDEX user_log_age ON user_log (at_ms);
