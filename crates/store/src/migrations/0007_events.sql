-- The last event of each user, and the last one that was removed from the feed again.
CREATE TABLE feeds (
    user_id TEXT PRIMARY KEY REFERENCES users (id),
    last_seq BIGINT NOT NULL,
    pruned_seq BIGINT NOT NULL DEFAULT 0
);

-- What happened to users, numbered without gaps for each of them, written by the transaction that made it happen.
CREATE TABLE events (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    seq BIGINT NOT NULL,
    kind TEXT NOT NULL,
    key_id TEXT,
    trade_id TEXT,
    body TEXT NOT NULL,
    emitted_at_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX events_user_seq ON events (user_id, seq);
CREATE INDEX events_emitted ON events (emitted_at_ms);

-- What became of the events that are posted to keys' URLs.
CREATE TABLE deliveries (
    event_id TEXT PRIMARY KEY REFERENCES events (id),
    user_id TEXT NOT NULL,
    key_id TEXT NOT NULL REFERENCES keys (id),
    kind TEXT NOT NULL,
    trade_id TEXT,
    emitted_at_ms BIGINT NOT NULL,
    status TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    replays BIGINT NOT NULL,
    last_attempted_at_ms BIGINT,
    last_delivered_at_ms BIGINT,
    last_status_code BIGINT,
    last_failure_code TEXT,
    last_error_message TEXT,
    terminal_failure_at_ms BIGINT
);
CREATE INDEX deliveries_user ON deliveries (user_id, emitted_at_ms, event_id);
CREATE INDEX deliveries_trade ON deliveries (trade_id) WHERE trade_id IS NOT NULL;
CREATE INDEX deliveries_given_up ON deliveries (terminal_failure_at_ms) WHERE terminal_failure_at_ms IS NOT NULL;

CREATE TABLE delivery_attempts (
    event_id TEXT NOT NULL REFERENCES deliveries (event_id),
    number BIGINT NOT NULL,
    replay BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL,
    status_code BIGINT,
    failure_code TEXT,
    error_message TEXT,
    answer_head TEXT,
    PRIMARY KEY (event_id, number)
);

-- A key's receiver: the end of its queue, when the head of the queue is due (null while the queue is empty), and until
-- when a sender has it. The epoch grows with every sender, and what a sender writes checks it.
CREATE TABLE webhook_endpoints (
    key_id TEXT PRIMARY KEY REFERENCES keys (id),
    tail BIGINT NOT NULL,
    due_at_ms BIGINT,
    held_until_ms BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    breaker TEXT NOT NULL
);
CREATE INDEX webhook_endpoints_due ON webhook_endpoints (due_at_ms) WHERE due_at_ms IS NOT NULL;

-- What is still to be sent, in the order of each key: an event, or a replay of one (its number; 0 is the event itself).
-- Each begins its attempts and its 24 hours anew.
CREATE TABLE webhook_queue (
    key_id TEXT NOT NULL REFERENCES keys (id),
    position BIGINT NOT NULL,
    event_id TEXT NOT NULL REFERENCES deliveries (event_id),
    replay BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    began_at_ms BIGINT NOT NULL,
    PRIMARY KEY (key_id, position)
);
CREATE INDEX webhook_queue_event ON webhook_queue (event_id);

-- Events that were given up 30 days ago: out of the API, for the operator.
CREATE TABLE archived_events (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    trade_id TEXT,
    body TEXT NOT NULL,
    emitted_at_ms BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    replays BIGINT NOT NULL,
    last_status_code BIGINT,
    last_failure_code TEXT,
    terminal_failure_at_ms BIGINT NOT NULL,
    archived_at_ms BIGINT NOT NULL
);

-- For a while after a rotation both secrets sign.
ALTER TABLE keys ADD COLUMN webhook_secret_rotated_at_ms BIGINT;
ALTER TABLE keys ADD COLUMN previous_webhook_secret_sealed TEXT;
ALTER TABLE keys ADD COLUMN previous_webhook_secret_until_ms BIGINT;
