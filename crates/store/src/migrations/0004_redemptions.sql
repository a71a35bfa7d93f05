-- Claims of what settled markets pay: one for each position, made by its owner or by the service itself, and made again
-- in the same row. What is expected is as the chain said it when the claim was made; what was paid is the sum of the final
-- events that completed it, of which paid_movement_id is the last.
CREATE TABLE redemptions (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    key_id TEXT REFERENCES keys (id),
    account TEXT NOT NULL,
    market_id TEXT NOT NULL REFERENCES markets (id),
    outcome_index BIGINT NOT NULL,
    correlation_id TEXT NOT NULL,
    status TEXT NOT NULL,
    tokens_wad TEXT NOT NULL,
    expected_usdc_atomic BIGINT NOT NULL,
    paid_usdc_atomic BIGINT NOT NULL,
    paid_movement_id TEXT,
    tx_hash TEXT,
    error_code TEXT,
    error_message TEXT,
    -- the batch that carries it, or the last one that did
    batch_id TEXT,
    -- not looked at again before
    judge_after_ms BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT
);
CREATE UNIQUE INDEX redemptions_position ON redemptions (account, market_id, outcome_index);
CREATE INDEX redemptions_user_created ON redemptions (user_id, created_at_ms, id);
CREATE INDEX redemptions_open ON redemptions (created_at_ms, id) WHERE ended_at_ms IS NULL;

-- How far the automatic payment has gone through the positions of a settled market. A refund that was topped up has
-- another scale, and is gone through again.
CREATE TABLE payout_scans (
    market_id TEXT PRIMARY KEY REFERENCES markets (id),
    refund_scale_wad TEXT NOT NULL,
    after_account TEXT NOT NULL,
    after_outcome_index BIGINT NOT NULL,
    ended_at_ms BIGINT
);
CREATE INDEX positions_market ON positions (market_id, account, outcome_index);

-- What a batch carries: intents for the Gate, or redemptions for the hub.
ALTER TABLE batches ADD COLUMN kind TEXT NOT NULL DEFAULT 'trades';
