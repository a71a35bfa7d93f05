-- Conventions: ids and addresses are lower-case text, times *_ms are milliseconds since the epoch, USDC columns are
-- atomic-6 integers, *_wad columns are decimal text and never summed in SQL.

CREATE TABLE users (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL
);

-- One smart account a user. The reservation is what open buys have set aside of its USDC.
CREATE TABLE accounts (
    user_id TEXT PRIMARY KEY REFERENCES users (id),
    address TEXT NOT NULL,
    owner TEXT NOT NULL,
    salt TEXT NOT NULL,
    reserved_usdc_atomic BIGINT NOT NULL DEFAULT 0,
    created_at_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX accounts_address ON accounts (address);

CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    name TEXT NOT NULL,
    tier TEXT NOT NULL,
    scopes TEXT NOT NULL,
    digest TEXT NOT NULL,
    key_index BIGINT NOT NULL,
    ip_allowlist TEXT NOT NULL,
    webhook_url TEXT,
    webhook_secret_sealed TEXT NOT NULL,
    requests_per_minute BIGINT,
    daily_limit_usdc_atomic BIGINT,
    per_trade_limit_usdc_atomic BIGINT,
    high_value_usdc_atomic BIGINT,
    expires_at_ms BIGINT,
    revoked_at_ms BIGINT,
    created_at_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX keys_digest ON keys (digest);
CREATE UNIQUE INDEX keys_user_key_index ON keys (user_id, key_index);

-- What a key has spent since `since_ms` (exclusive), and the next nonce of its delegation.
CREATE TABLE key_spend (
    key_id TEXT PRIMARY KEY REFERENCES keys (id),
    spent_usdc_atomic BIGINT NOT NULL,
    since_ms BIGINT NOT NULL,
    next_nonce BIGINT NOT NULL
);

CREATE TABLE organizations (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    slug TEXT NOT NULL,
    description TEXT,
    logo TEXT,
    website TEXT,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX organizations_slug ON organizations (slug);

CREATE TABLE partners (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    name TEXT NOT NULL,
    slug TEXT NOT NULL,
    description TEXT,
    logo TEXT,
    website TEXT,
    status TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX partners_slug ON partners (slug);
CREATE INDEX partners_organization ON partners (organization_id, created_at_ms, id);

CREATE TABLE threads (
    id TEXT PRIMARY KEY,
    organization_id TEXT REFERENCES organizations (id),
    partner_id TEXT REFERENCES partners (id),
    title TEXT NOT NULL,
    description TEXT,
    image TEXT,
    background_image TEXT,
    category TEXT,
    tags TEXT NOT NULL,
    start_time_ms BIGINT,
    end_time_ms BIGINT,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);
CREATE INDEX threads_created ON threads (created_at_ms, id);

CREATE TABLE chapters (
    id TEXT PRIMARY KEY,
    thread_id TEXT NOT NULL REFERENCES threads (id),
    title TEXT NOT NULL,
    position BIGINT NOT NULL
);
CREATE INDEX chapters_thread ON chapters (thread_id, position, id);

-- A market is written before it is created on chain; until the chain's event arrives its chain_market_id is null and
-- no API shows it.
CREATE TABLE markets (
    id TEXT PRIMARY KEY,
    chain_id BIGINT NOT NULL,
    contract_address TEXT NOT NULL,
    chain_market_id BIGINT,
    question TEXT NOT NULL,
    description TEXT,
    category TEXT,
    tags TEXT NOT NULL,
    thread_id TEXT REFERENCES threads (id),
    organization_id TEXT REFERENCES organizations (id),
    partner_id TEXT REFERENCES partners (id),
    chapter_id TEXT REFERENCES chapters (id),
    source_url TEXT,
    status TEXT NOT NULL,
    fee_bps BIGINT NOT NULL,
    liquidity_usdc_atomic BIGINT NOT NULL,
    opening_cost_wad TEXT NOT NULL,
    cost_wad TEXT NOT NULL,
    volume_usdc_atomic BIGINT NOT NULL,
    trade_count BIGINT NOT NULL,
    payouts TEXT,
    resolution_tx_hash TEXT,
    resolution_source TEXT,
    refund_scale_wad TEXT,
    end_time_ms BIGINT NOT NULL,
    frozen_at_ms BIGINT,
    resolved_at_ms BIGINT,
    as_of_block BIGINT NOT NULL,
    as_of_ms BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX markets_chain_market ON markets (chain_id, chain_market_id) WHERE chain_market_id IS NOT NULL;
CREATE INDEX markets_as_of ON markets (as_of_block);
CREATE INDEX markets_created ON markets (created_at_ms, id);
CREATE INDEX markets_status_created ON markets (status, created_at_ms, id);
CREATE INDEX markets_thread_created ON markets (thread_id, created_at_ms, id);

CREATE TABLE outcomes (
    market_id TEXT NOT NULL REFERENCES markets (id),
    outcome_index BIGINT NOT NULL,
    label TEXT NOT NULL,
    opening_wad TEXT NOT NULL,
    quantity_wad TEXT NOT NULL,
    volume_usdc_atomic BIGINT NOT NULL,
    trade_count BIGINT NOT NULL,
    PRIMARY KEY (market_id, outcome_index)
);

-- Everything on chain that moved a position, in the chain's order: the source of predictions and of the ledger.
CREATE TABLE movements (
    id TEXT PRIMARY KEY,
    block_number BIGINT NOT NULL,
    log_index BIGINT NOT NULL,
    tx_hash TEXT NOT NULL,
    kind TEXT NOT NULL,
    market_id TEXT NOT NULL REFERENCES markets (id),
    outcome_index BIGINT NOT NULL,
    account TEXT NOT NULL,
    counterparty TEXT,
    usdc_atomic BIGINT NOT NULL,
    tokens_wad TEXT NOT NULL,
    fee_atomic BIGINT NOT NULL,
    cost_wad TEXT,
    quantity_wad TEXT,
    trade_id TEXT,
    created_at_ms BIGINT NOT NULL
);
CREATE INDEX movements_market ON movements (market_id, kind, created_at_ms, id);
CREATE INDEX movements_market_order ON movements (market_id, id);
CREATE INDEX movements_account ON movements (account, id);
CREATE INDEX movements_block ON movements (block_number);

CREATE TABLE positions (
    account TEXT NOT NULL,
    market_id TEXT NOT NULL REFERENCES markets (id),
    outcome_index BIGINT NOT NULL,
    tokens_wad TEXT NOT NULL,
    cost_basis_usdc_atomic BIGINT NOT NULL,
    realized_pnl_usdc_atomic BIGINT NOT NULL,
    fees_paid_usdc_atomic BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    PRIMARY KEY (account, market_id, outcome_index)
);

CREATE TABLE trades (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    key_id TEXT NOT NULL REFERENCES keys (id),
    account TEXT NOT NULL,
    market_id TEXT NOT NULL REFERENCES markets (id),
    outcome_index BIGINT NOT NULL,
    side TEXT NOT NULL,
    amount_text TEXT NOT NULL,
    amount_type TEXT NOT NULL,
    metadata TEXT NOT NULL,
    client_request_id TEXT,
    request_hash TEXT NOT NULL,
    correlation_id TEXT NOT NULL,
    -- what the intent asks of the chain
    intent_side BIGINT NOT NULL,
    intent_usdc_atomic BIGINT NOT NULL,
    intent_tokens_wad TEXT NOT NULL,
    deadline_ms BIGINT NOT NULL,
    key_index BIGINT NOT NULL,
    lane BIGINT NOT NULL,
    nonce BIGINT,
    batch_id TEXT,
    -- what it holds of the caps and of the balance while it is open
    reserved_usdc_atomic BIGINT NOT NULL,
    -- where it stands
    status TEXT NOT NULL,
    confirmation_expires_at_ms BIGINT,
    tx_hash TEXT,
    block_number BIGINT,
    tokens_moved_wad TEXT,
    usdc_moved_atomic BIGINT,
    fee_atomic BIGINT,
    error_code TEXT,
    error_message TEXT,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT
);
CREATE UNIQUE INDEX trades_client_request ON trades (user_id, client_request_id) WHERE client_request_id IS NOT NULL;
CREATE INDEX trades_user_created ON trades (user_id, created_at_ms, id);
CREATE INDEX trades_correlation ON trades (correlation_id);
CREATE INDEX trades_open ON trades (lane, status, created_at_ms, id) WHERE ended_at_ms IS NULL;
CREATE INDEX trades_key_window ON trades (key_id, created_at_ms) WHERE reserved_usdc_atomic > 0;
CREATE INDEX trades_batch ON trades (batch_id) WHERE batch_id IS NOT NULL;

CREATE TABLE idempotency (
    user_id TEXT NOT NULL,
    route TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    trade_id TEXT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    PRIMARY KEY (user_id, route, idempotency_key)
);
CREATE INDEX idempotency_expiry ON idempotency (expires_at_ms);

CREATE TABLE trace_events (
    trade_id TEXT NOT NULL REFERENCES trades (id),
    seq BIGINT NOT NULL,
    stage TEXT NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    attributes TEXT NOT NULL,
    PRIMARY KEY (trade_id, seq)
);

-- Who may do a piece of work that only one process does at a time. The epoch grows with every new owner, and every
-- write of that work checks it, so that a frozen owner that comes back can change nothing.
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    until_ms BIGINT NOT NULL,
    epoch BIGINT NOT NULL
);

-- Signed batches of intents, written before they are sent.
CREATE TABLE batches (
    id TEXT PRIMARY KEY,
    lane BIGINT NOT NULL,
    executor TEXT NOT NULL,
    chain_nonce BIGINT NOT NULL,
    calldata BYTES NOT NULL,
    gas_limit BIGINT NOT NULL,
    status TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    sent_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT
);
CREATE INDEX batches_open ON batches (lane, chain_nonce) WHERE ended_at_ms IS NULL;
CREATE INDEX batches_ended ON batches (ended_at_ms) WHERE ended_at_ms IS NOT NULL;

CREATE TABLE batch_transactions (
    hash TEXT PRIMARY KEY,
    batch_id TEXT NOT NULL REFERENCES batches (id),
    raw BYTES NOT NULL,
    max_fee_per_gas TEXT NOT NULL,
    max_priority_fee_per_gas TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL
);
CREATE INDEX batch_transactions_batch ON batch_transactions (batch_id, created_at_ms);

-- What the chain's events said of intents that ended without a trade, until they are as deep as finality asks.
CREATE TABLE intent_failures (
    trade_id TEXT NOT NULL,
    block_number BIGINT NOT NULL,
    log_index BIGINT NOT NULL,
    tx_hash TEXT NOT NULL,
    reason TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (block_number, log_index)
);

-- The blocks that the sync has read up to; more than one is kept so that a reorganisation finds its fork.
CREATE TABLE sync_blocks (
    number BIGINT PRIMARY KEY,
    hash TEXT NOT NULL,
    at_ms BIGINT NOT NULL
);
CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
