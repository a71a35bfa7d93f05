-- A key whose trading is paused; null while it may trade.
ALTER TABLE keys ADD COLUMN paused_at_ms BIGINT;

-- Held trades, by the end of their confirmation window.
CREATE INDEX trades_held ON trades (confirmation_expires_at_ms, id) WHERE status = 'pending_confirmation';

-- A trace is found among its user's own; a trace id that many callers share costs none of them more.
DROP INDEX trades_correlation;
CREATE INDEX trades_correlation ON trades (user_id, correlation_id, created_at_ms, id);
