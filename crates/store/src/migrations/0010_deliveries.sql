-- What became of the deliveries to keys' webhooks, each counted in the hour in which it happened and in the transaction that
-- noted it. hour_ms is the hour's start.
CREATE TABLE usage_webhooks (
    key_id TEXT NOT NULL,
    hour_ms BIGINT NOT NULL,
    event TEXT NOT NULL,
    counted BIGINT NOT NULL,
    PRIMARY KEY (key_id, hour_ms, event)
);
CREATE INDEX usage_webhooks_hour ON usage_webhooks (hour_ms);

-- Events that are never posted leave the feed when they are old; those that are posted stay, and are not looked at for it.
CREATE INDEX events_prunable ON events (emitted_at_ms) WHERE kind IN
    ('trade.status-changed', 'redemption.completed', 'market.resolved', 'position.claimable');
