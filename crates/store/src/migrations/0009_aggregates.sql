-- A market on chain as lists know it: a narrow copy of its row, written in the transactions that change the row.
-- list_status says REFUNDED for a cancelled market that owes nobody anything. probability_ppm is outcome 0's, in millionths.
-- title_key is the question in lower case. participants are the accounts that have traded.
CREATE TABLE listed_markets (
    market_id TEXT PRIMARY KEY REFERENCES markets (id),
    list_status TEXT NOT NULL,
    category TEXT,
    thread_id TEXT,
    organization_id TEXT,
    partner_id TEXT,
    chapter_id TEXT,
    tags TEXT NOT NULL,
    title_key BYTEWISE_TEXT NOT NULL,
    probability_ppm BIGINT NOT NULL,
    volume_usdc_atomic BIGINT NOT NULL,
    participants BIGINT NOT NULL,
    end_time_ms BIGINT NOT NULL,
    resolved_at_ms BIGINT,
    created_at_ms BIGINT NOT NULL
);
CREATE INDEX listed_created ON listed_markets (list_status, created_at_ms, market_id);
CREATE INDEX listed_volume ON listed_markets (list_status, volume_usdc_atomic, market_id);
CREATE INDEX listed_probability ON listed_markets (list_status, probability_ppm, market_id);
CREATE INDEX listed_title ON listed_markets (list_status, title_key, market_id);
CREATE INDEX listed_end ON listed_markets (list_status, end_time_ms, market_id);
CREATE INDEX listed_resolved ON listed_markets (list_status, resolved_at_ms);
CREATE INDEX listed_thread ON listed_markets (thread_id, list_status, created_at_ms, market_id);
CREATE INDEX listed_organization ON listed_markets (organization_id, list_status, created_at_ms, market_id);
CREATE INDEX listed_partner ON listed_markets (partner_id, list_status, created_at_ms, market_id);
CREATE INDEX listed_chapter ON listed_markets (chapter_id, list_status, created_at_ms, market_id);
CREATE INDEX listed_category ON listed_markets (category, list_status, created_at_ms, market_id);

-- Sums over the listed markets of a thread, an organization, a partner, a chapter or a category, and of all (scope_id '').
CREATE TABLE totals (
    scope TEXT NOT NULL,
    scope_id TEXT NOT NULL,
    open_markets BIGINT NOT NULL,
    frozen_markets BIGINT NOT NULL,
    resolved_markets BIGINT NOT NULL,
    cancelled_markets BIGINT NOT NULL,
    refunded_markets BIGINT NOT NULL,
    volume_usdc_atomic BIGINT NOT NULL,
    participants BIGINT NOT NULL,
    PRIMARY KEY (scope, scope_id)
);

-- What an account has done in a market. Those with trades are the market's participants; an account that was given
-- tokens and redeemed them has a profit without a trade.
CREATE TABLE traders (
    market_id TEXT NOT NULL REFERENCES markets (id),
    account TEXT NOT NULL,
    trade_count BIGINT NOT NULL,
    volume_usdc_atomic BIGINT NOT NULL,
    realized_pnl_usdc_atomic BIGINT NOT NULL,
    last_trade_ms BIGINT NOT NULL,
    PRIMARY KEY (market_id, account)
);
CREATE INDEX traders_last ON traders (last_trade_ms, market_id) WHERE trade_count > 0;

-- In how many of a scope's markets an account takes part.
CREATE TABLE participants (
    scope TEXT NOT NULL,
    scope_id TEXT NOT NULL,
    account TEXT NOT NULL,
    markets BIGINT NOT NULL,
    PRIMARY KEY (scope, scope_id, account)
);

-- A market's trades of five minutes, kept while a window holds them.
CREATE TABLE market_buckets (
    start_ms BIGINT NOT NULL,
    market_id TEXT NOT NULL REFERENCES markets (id),
    trade_count BIGINT NOT NULL,
    volume_usdc_atomic BIGINT NOT NULL,
    PRIMARY KEY (start_ms, market_id)
);
CREATE INDEX market_buckets_market ON market_buckets (market_id, start_ms);

-- Where the windows that trending markets are ranked over begin. Who writes traders, participants, totals of participants,
-- buckets or windows takes all three rows first, so that such writers follow one another.
CREATE TABLE trending_windows (
    window_ms BIGINT PRIMARY KEY,
    start_ms BIGINT NOT NULL
);
INSERT INTO trending_windows (window_ms, start_ms) VALUES (3600000, 0), (86400000, 0), (604800000, 0);

-- A market in a window; score_e4 is its trending score in ten-thousandths.
CREATE TABLE trending_markets (
    window_ms BIGINT NOT NULL,
    market_id TEXT NOT NULL REFERENCES markets (id),
    trade_count BIGINT NOT NULL,
    volume_usdc_atomic BIGINT NOT NULL,
    unique_traders BIGINT NOT NULL,
    score_e4 BIGINT NOT NULL,
    PRIMARY KEY (window_ms, market_id)
);
CREATE INDEX trending_rank ON trending_markets (window_ms, score_e4, market_id);

-- What an account has done in all markets, and in each hour and each day of late.
CREATE TABLE leaderboard (
    account TEXT PRIMARY KEY,
    trade_count BIGINT NOT NULL,
    volume_usdc_atomic BIGINT NOT NULL,
    realized_pnl_usdc_atomic BIGINT NOT NULL
);
CREATE INDEX leaderboard_profit ON leaderboard (realized_pnl_usdc_atomic, account);
CREATE INDEX leaderboard_volume ON leaderboard (volume_usdc_atomic, account);
CREATE TABLE leaderboard_spans (
    span_ms BIGINT NOT NULL,
    start_ms BIGINT NOT NULL,
    account TEXT NOT NULL,
    trade_count BIGINT NOT NULL,
    volume_usdc_atomic BIGINT NOT NULL,
    realized_pnl_usdc_atomic BIGINT NOT NULL,
    PRIMARY KEY (span_ms, start_ms, account)
);

-- What a sale or a redemption gained over what its tokens had cost.
ALTER TABLE movements ADD COLUMN realized_pnl_usdc_atomic BIGINT NOT NULL DEFAULT 0;
CREATE INDEX movements_tx ON movements (tx_hash, id);
-- Refunds and payouts that are still owed.
CREATE INDEX positions_owed ON positions (market_id) WHERE tokens_wad <> '0' AND cost_basis_usdc_atomic > 0;

-- The words of markets and threads.
CREATE TABLE search_terms (
    kind TEXT NOT NULL,
    term BYTEWISE_TEXT NOT NULL,
    id TEXT NOT NULL,
    weight BIGINT NOT NULL,
    PRIMARY KEY (kind, term, id)
);
CREATE INDEX search_terms_id ON search_terms (kind, id);

CREATE INDEX threads_organization ON threads (organization_id, created_at_ms, id);
CREATE INDEX threads_partner ON threads (partner_id, created_at_ms, id);
CREATE INDEX threads_window ON threads (created_at_ms, id, start_time_ms, end_time_ms);

-- Markets and threads of which all this is still to be made.
CREATE TABLE aggregate_backlog (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (kind, id)
);
INSERT INTO aggregate_backlog (kind, id) SELECT 'market', id FROM markets;
INSERT INTO aggregate_backlog (kind, id) SELECT 'thread', id FROM threads;
CREATE INDEX markets_resolution_tx ON markets (resolution_tx_hash) WHERE resolution_tx_hash IS NOT NULL;
