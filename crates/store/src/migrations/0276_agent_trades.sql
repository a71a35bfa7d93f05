-- Trades that an agent created: only the account's owner confirms them, on the trade's page.
ALTER TABLE trades ADD COLUMN is_from_agent BIGINT NOT NULL DEFAULT 0;
