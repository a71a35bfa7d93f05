-- Lanes: the executors that share the accounts. A lane keeps its number for ever, and its executor too.
CREATE TABLE lanes (
    lane BIGINT PRIMARY KEY,
    executor TEXT NOT NULL,
    -- the holder of the executor's key: 'file' or 'web3signer'
    signer TEXT NOT NULL,
    -- JSON without secrets: how the holder of the key is reached
    signer_settings TEXT,
    -- 'active', 'draining' or 'removed'
    state TEXT NOT NULL,
    -- 1 if other lanes take over what this one has not signed
    hands_over BIGINT NOT NULL,
    -- since when a process runs the lane; accounts are assigned only to lanes that have one
    started_at_ms BIGINT,
    -- after a change of the lanes: until at least when trades wait for older ones of their account in other lanes
    settles_after_ms BIGINT,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX lanes_executor ON lanes (executor);
