-- The generation of the event feed. Data that is restored from a copy begins a new one, so that a reader's position in
-- events that are lost is not mistaken for a position in those that took their numbers.
CREATE TABLE feed_generation (
    id BIGINT PRIMARY KEY,
    generation BIGINT NOT NULL,
    began_at_ms BIGINT NOT NULL
);
INSERT INTO feed_generation (id, generation, began_at_ms) VALUES (1, 1, 0);
