-- Recoveries of lost data: the chain knew of trades that the database did not. While one is open no lane signs anything.
-- open_slot is 1 while it is open and null afterwards, so that at most one is open.
CREATE TABLE recoveries (
    id BIGINT PRIMARY KEY,
    open_slot BIGINT UNIQUE,
    reason TEXT NOT NULL,
    detail TEXT NOT NULL,
    -- the blocks whose trades are compared; until_block is known once nothing signed before can be mined any more
    from_block BIGINT NOT NULL,
    until_block BIGINT,
    -- the generation of the event feed that it began
    generation BIGINT,
    waits_for TEXT,
    recovered_trades BIGINT NOT NULL,
    corrected_trades BIGINT NOT NULL,
    raised_nonces BIGINT NOT NULL,
    unattributed_trades BIGINT NOT NULL,
    detected_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT
);

-- When a trade was written again from the chain, because its row had been lost.
ALTER TABLE trades ADD COLUMN recovered_at_ms BIGINT;
CREATE INDEX trades_recovered ON trades (recovered_at_ms, id) WHERE recovered_at_ms IS NOT NULL;
