-- Native currency that the gas treasury has sent, or is about to send, to executors. A row is written before its transaction is
-- sent and counts toward the daily cap, whether or not the transaction was mined.
CREATE TABLE gas_topups (
    id TEXT PRIMARY KEY,
    lane BIGINT NOT NULL,
    executor TEXT NOT NULL,
    wei TEXT NOT NULL,
    -- with the most that the transaction can cost
    spent_wei TEXT NOT NULL,
    tx_hash TEXT,
    created_at_ms BIGINT NOT NULL
);
CREATE INDEX gas_topups_created ON gas_topups (created_at_ms);
