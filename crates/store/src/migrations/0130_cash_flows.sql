-- USDC that an account received (positive) or sent (negative), from the chain's final blocks.
CREATE TABLE cash_flows (
    account TEXT NOT NULL,
    -- the place on chain, as the ids of movements
    id TEXT NOT NULL,
    tx_hash TEXT NOT NULL,
    counterparty TEXT NOT NULL,
    usdc_atomic BIGINT NOT NULL,
    -- 1 for a deposit or a withdrawal, 0 for a trade or a payout
    is_external BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (account, id)
);
CREATE INDEX cash_flows_time ON cash_flows (account, at_ms, id);

-- The last block whose flows of this account are stored.
ALTER TABLE accounts ADD COLUMN cash_flows_to BIGINT;

-- Tokens that an account received from another one.
CREATE INDEX movements_counterparty ON movements (counterparty, id) WHERE counterparty IS NOT NULL;
