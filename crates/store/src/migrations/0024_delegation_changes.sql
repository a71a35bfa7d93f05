-- Changes of delegations that the service makes on chain: a revocation, or lower caps (null: as it is). The executor of the
-- account's lane carries each in a transaction of its own, in the order of its nonces.
CREATE TABLE delegation_changes (
    id TEXT PRIMARY KEY,
    key_id TEXT NOT NULL REFERENCES keys (id),
    account TEXT NOT NULL,
    key_index BIGINT NOT NULL,
    lane BIGINT NOT NULL,
    kind TEXT NOT NULL,
    per_trade_usdc_atomic BIGINT,
    daily_usdc_atomic BIGINT,
    expires_at_ms BIGINT,
    status TEXT NOT NULL,
    -- the batch that carries it, or the last one that did
    batch_id TEXT,
    tx_hash TEXT,
    -- why the last attempt did not carry it
    error TEXT,
    -- not tried again before
    try_after_ms BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT
);
CREATE INDEX delegation_changes_open ON delegation_changes (lane, created_at_ms, id) WHERE ended_at_ms IS NULL;
CREATE INDEX delegation_changes_key ON delegation_changes (key_id, created_at_ms, id);
-- A key is revoked once; asking again while the revocation is under way finds it.
CREATE UNIQUE INDEX delegation_changes_revoke ON delegation_changes (key_id) WHERE kind = 'revoke' AND ended_at_ms IS NULL;

-- The keys that ended of late, whose trades that wait are ended with them.
CREATE INDEX keys_revoked ON keys (revoked_at_ms) WHERE revoked_at_ms IS NOT NULL;
CREATE INDEX keys_expiry ON keys (expires_at_ms) WHERE expires_at_ms IS NOT NULL;
