-- Test events are deleted when they are old, and what else was delivered is not looked at for it.
CREATE INDEX CONCURRENTLY deliveries_tests ON deliveries (emitted_at_ms) WHERE kind = 'webhook.test';
