-- A pending trade's place in its lane's queue: the first trades of all users come first, then their second ones, and so on.
-- Trades of one rank go by their age.
ALTER TABLE trades ADD COLUMN queue_rank BIGINT NOT NULL DEFAULT 0;
DROP INDEX trades_open;
CREATE INDEX trades_open ON trades (lane, status, queue_rank, created_at_ms, id) WHERE ended_at_ms IS NULL;
-- A user's trades that are not signed.
CREATE INDEX trades_unsigned ON trades (user_id, queue_rank) WHERE nonce IS NULL AND ended_at_ms IS NULL;
