-- Keys that belong to an agent, and trades that an agent created: only the account's owner confirms those, on the trade's page.
-- A release that doesn't know the columns writes 0.
ALTER TABLE keys ADD COLUMN is_agent BIGINT NOT NULL DEFAULT 0;
ALTER TABLE trades ADD COLUMN is_from_agent BIGINT NOT NULL DEFAULT 0;
