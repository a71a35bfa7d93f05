-- What keys were used for, in hours. Every process adds what it has counted to the same rows; hour_ms is the hour's start.
-- The keys' rows are not referenced: a count that has no key must not hold up the others.

-- Refusals at the door.
CREATE TABLE usage_refusals (
    key_id TEXT NOT NULL,
    hour_ms BIGINT NOT NULL,
    code TEXT NOT NULL,
    refused BIGINT NOT NULL,
    PRIMARY KEY (key_id, hour_ms, code)
);
CREATE INDEX usage_refusals_hour ON usage_refusals (hour_ms);

-- Latencies: a row for each doubling, a column for each of its sixteen equal steps.
CREATE TABLE usage_latency (
    key_id TEXT NOT NULL,
    hour_ms BIGINT NOT NULL,
    octave BIGINT NOT NULL,
    n0 BIGINT NOT NULL,
    n1 BIGINT NOT NULL,
    n2 BIGINT NOT NULL,
    n3 BIGINT NOT NULL,
    n4 BIGINT NOT NULL,
    n5 BIGINT NOT NULL,
    n6 BIGINT NOT NULL,
    n7 BIGINT NOT NULL,
    n8 BIGINT NOT NULL,
    n9 BIGINT NOT NULL,
    n10 BIGINT NOT NULL,
    n11 BIGINT NOT NULL,
    n12 BIGINT NOT NULL,
    n13 BIGINT NOT NULL,
    n14 BIGINT NOT NULL,
    n15 BIGINT NOT NULL,
    PRIMARY KEY (key_id, hour_ms, octave)
);
CREATE INDEX usage_latency_hour ON usage_latency (hour_ms);

CREATE TABLE usage_keys (
    key_id TEXT PRIMARY KEY,
    last_used_at_ms BIGINT NOT NULL
);

-- What became of trades, each counted in the hour in which it happened and in the transaction that made it happen.
CREATE TABLE usage_trades (
    key_id TEXT NOT NULL,
    hour_ms BIGINT NOT NULL,
    created BIGINT NOT NULL,
    completed BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    rejected BIGINT NOT NULL,
    volume_usdc_atomic BIGINT NOT NULL,
    PRIMARY KEY (key_id, hour_ms)
);
CREATE INDEX usage_trades_hour ON usage_trades (hour_ms);

INSERT INTO usage_trades (key_id, hour_ms, created, completed, failed, rejected, volume_usdc_atomic)
SELECT key_id, hour_ms, SUM(created), SUM(completed), SUM(failed), SUM(rejected), SUM(volume_usdc_atomic) FROM (
    SELECT key_id, created_at_ms - created_at_ms % 3600000 AS hour_ms, 1 AS created, 0 AS completed, 0 AS failed,
        0 AS rejected, 0 AS volume_usdc_atomic
    FROM trades
    UNION ALL
    SELECT key_id, ended_at_ms - ended_at_ms % 3600000, 0, CASE WHEN status = 'completed' THEN 1 ELSE 0 END,
        CASE WHEN status = 'failed' THEN 1 ELSE 0 END, CASE WHEN status = 'rejected' THEN 1 ELSE 0 END,
        COALESCE(usdc_moved_atomic, 0)
    FROM trades WHERE ended_at_ms IS NOT NULL
) AS happened GROUP BY key_id, hour_ms;
