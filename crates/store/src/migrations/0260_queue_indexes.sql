-- A user's trades that are not signed. For the earlier condition, "nonce IS NULL AND ended_at_ms IS NULL", PostgreSQL chose
-- trades_open and read all open trades of all users: its statistics know few open trades. No other index has this condition.
CREATE INDEX CONCURRENTLY trades_queued ON trades (user_id, queue_rank) WHERE COALESCE(nonce, ended_at_ms) IS NULL;
DROP INDEX trades_unsigned;
-- Trades that were signed and have lost their batch: few, and none most of the time.
CREATE INDEX CONCURRENTLY trades_unbatched ON trades (lane, created_at_ms, id)
    WHERE status = 'executing' AND batch_id IS NULL AND ended_at_ms IS NULL;
