-- What trading did to a market's prices in one interval in which it was traded: the course of the market maker's cost, the
-- quantities that it left (a JSON list), and, for the outcomes that were traded, what cannot be told from these: a JSON list
-- of [outcome, [open, high, low, close of cost less quantity], USDC atomic, tokens, trades]. Rows follow from movements and
-- can be made of them again. trade_count is the market's from its first trade on: a row that does not go on where
-- the row before it ended shows that one is missing.
CREATE TABLE candles (
    market_id TEXT NOT NULL REFERENCES markets (id),
    interval_ms BIGINT NOT NULL,
    start_ms BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    block_number BIGINT NOT NULL,
    trade_count BIGINT NOT NULL,
    open_cost_wad TEXT NOT NULL,
    high_cost_wad TEXT NOT NULL,
    low_cost_wad TEXT NOT NULL,
    cost_wad TEXT NOT NULL,
    quantities TEXT NOT NULL,
    traded TEXT NOT NULL,
    PRIMARY KEY (market_id, interval_ms, start_ms)
);

-- Markets whose candles are still to be made of the movements after this one.
CREATE TABLE candle_backlog (
    market_id TEXT PRIMARY KEY REFERENCES markets (id),
    after_movement_id TEXT NOT NULL
);
INSERT INTO candle_backlog (market_id, after_movement_id) SELECT DISTINCT market_id, '' FROM movements;
