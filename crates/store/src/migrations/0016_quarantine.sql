-- Markets whose events could not be applied. A market's rows stay as they were before block_number until the market is
-- repaired from the chain; all other markets go on.
CREATE TABLE market_quarantine (
    market_id TEXT PRIMARY KEY REFERENCES markets (id),
    block_number BIGINT NOT NULL,
    reason TEXT NOT NULL,
    detail TEXT NOT NULL,
    quarantined_at_ms BIGINT NOT NULL,
    repair_attempts BIGINT NOT NULL,
    next_repair_at_ms BIGINT NOT NULL
);
CREATE INDEX market_quarantine_due ON market_quarantine (next_repair_at_ms, market_id);

-- The same instant on the market's row: a quarantined market is not tradeable.
ALTER TABLE markets ADD COLUMN quarantined_at_ms BIGINT;

-- A digest of the logs that were read of a recent block. The block is read again before it is settled.
ALTER TABLE sync_blocks ADD COLUMN logs_digest TEXT;

-- Blocks whose events the operator has told the sync not to read.
CREATE TABLE skipped_blocks (
    number BIGINT PRIMARY KEY,
    reason TEXT NOT NULL,
    skipped_at_ms BIGINT NOT NULL
);

-- What the sync has ignored, repaired and found to differ from the chain, by kind.
CREATE TABLE sync_counters (
    name TEXT PRIMARY KEY,
    value BIGINT NOT NULL
);
