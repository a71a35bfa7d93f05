-- The version of the API that a key speaks where its requests name none.
ALTER TABLE keys ADD COLUMN api_version TEXT;

-- What the operator has switched off: a route (`METHOD /path/{template}`), or `trading` as a whole. A switch that was put
-- back keeps its row, with who did it and why.
CREATE TABLE kill_switches (
    name TEXT PRIMARY KEY,
    thrown_at_ms BIGINT,
    changed_at_ms BIGINT NOT NULL,
    changed_by TEXT NOT NULL,
    reason TEXT
);

-- Failed authentications of known keys: one row for all equal ones of a minute, with the first one's route and request.
CREATE TABLE key_audit (
    key_id TEXT NOT NULL REFERENCES keys (id),
    minute_ms BIGINT NOT NULL,
    code TEXT NOT NULL,
    ip TEXT NOT NULL,
    route TEXT NOT NULL,
    request_id TEXT NOT NULL,
    first_at_ms BIGINT NOT NULL,
    last_at_ms BIGINT NOT NULL,
    failures BIGINT NOT NULL
);
CREATE UNIQUE INDEX key_audit_minute ON key_audit (key_id, minute_ms, code, ip);
CREATE INDEX key_audit_age ON key_audit (minute_ms);
