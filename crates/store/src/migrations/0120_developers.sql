-- The caps that a user chooses for a key by signing an act. They hold from the end of the act; a cap that the user lowers in
-- between removes them.
ALTER TABLE owner_acts ADD COLUMN caps_key_id TEXT;
ALTER TABLE owner_acts ADD COLUMN caps_daily_usdc_atomic BIGINT;
ALTER TABLE owner_acts ADD COLUMN caps_per_trade_usdc_atomic BIGINT;

-- Rejected requests and writes of keys, as their owners see them. The id is that of the request.
CREATE TABLE requests (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    key_id TEXT NOT NULL REFERENCES keys (id),
    at_ms BIGINT NOT NULL,
    route TEXT NOT NULL,
    status BIGINT NOT NULL,
    -- the error code, if the request was rejected
    code TEXT,
    latency_ms BIGINT NOT NULL,
    -- the trade that the request created or confirmed
    trade_id TEXT
);
CREATE INDEX requests_user ON requests (user_id, at_ms, id);
CREATE INDEX requests_key ON requests (key_id, at_ms, id);
CREATE INDEX requests_trade ON requests (trade_id) WHERE trade_id IS NOT NULL;
CREATE INDEX requests_age ON requests (at_ms);
