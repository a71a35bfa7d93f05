-- How far a settled market's positions were gone through to tell their owners: the last position, and the last account that
-- was told of the result. What was settled before there was a feed is not told any more.
CREATE TABLE announcements (
    market_id TEXT PRIMARY KEY REFERENCES markets (id),
    after_account TEXT NOT NULL,
    after_outcome_index BIGINT NOT NULL,
    told_account TEXT NOT NULL,
    ended_at_ms BIGINT
);
INSERT INTO announcements (market_id, after_account, after_outcome_index, told_account, ended_at_ms)
    SELECT id, '', -1, '', as_of_ms FROM markets WHERE status IN ('RESOLVED', 'CANCELLED');

-- The statuses that markets have had, by the place of the chain from which on they held; the ids sort among those of
-- movements. A market whose time is over stops behind the last block that was read by then.
CREATE TABLE market_statuses (
    market_id TEXT NOT NULL REFERENCES markets (id),
    id TEXT NOT NULL,
    block_number BIGINT NOT NULL,
    status TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    PRIMARY KEY (market_id, id)
);
CREATE INDEX market_statuses_block ON market_statuses (block_number);
