-- The USDC that a trade is expected to move: what it counts for the contracts' hourly volume cap before it is made.
ALTER TABLE trades ADD COLUMN volume_usdc_atomic BIGINT NOT NULL DEFAULT 0;
UPDATE trades SET volume_usdc_atomic = intent_usdc_atomic WHERE ended_at_ms IS NULL;

-- What a trade waits for before it is signed; null if for nothing but its turn.
ALTER TABLE trades ADD COLUMN waiting_for TEXT;
CREATE INDEX trades_waiting ON trades (waiting_for) WHERE waiting_for IS NOT NULL AND nonce IS NULL AND ended_at_ms IS NULL;
