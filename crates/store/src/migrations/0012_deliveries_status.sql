-- A list of those that were given up must not walk past all that were delivered.
CREATE INDEX deliveries_status ON deliveries (user_id, status, emitted_at_ms, event_id);
