-- How far the events of each user are published to a stream of a message broker: the number of the last one that the broker
-- has acknowledged. A user without a row has none.
CREATE TABLE sink_positions (
    -- the stream
    sink TEXT NOT NULL,
    user_id TEXT NOT NULL REFERENCES users (id),
    seq BIGINT NOT NULL,
    published_at_ms BIGINT NOT NULL,
    PRIMARY KEY (sink, user_id)
);
