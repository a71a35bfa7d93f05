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

-- What became of trades, each counted in the hour in which it happened and in the transaction that made it happen. Each
-- event has a row of its own, since each is written by another worker: none of them waits for the others' transactions.
CREATE TABLE usage_trades (
    key_id TEXT NOT NULL,
    hour_ms BIGINT NOT NULL,
    event TEXT NOT NULL,
    trades BIGINT NOT NULL,
    volume_usdc_atomic BIGINT NOT NULL,
    PRIMARY KEY (key_id, hour_ms, event)
);
CREATE INDEX usage_trades_hour ON usage_trades (hour_ms);

INSERT INTO usage_trades (key_id, hour_ms, event, trades, volume_usdc_atomic)
SELECT key_id, created_at_ms - created_at_ms % 3600000, 'created', COUNT(*), 0 FROM trades GROUP BY 1, 2;

INSERT INTO usage_trades (key_id, hour_ms, event, trades, volume_usdc_atomic)
SELECT key_id, ended_at_ms - ended_at_ms % 3600000, status, COUNT(*), SUM(COALESCE(usdc_moved_atomic, 0)) FROM trades
WHERE ended_at_ms IS NOT NULL GROUP BY 1, 2, 3;
