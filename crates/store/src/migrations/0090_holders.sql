-- The largest holders of a market. Amounts are decimal digits without leading zeros, so the longer one is larger.
CREATE INDEX positions_size ON positions (market_id, LENGTH(tokens_wad), tokens_wad) WHERE tokens_wad <> '0';

-- No statement uses this index any more.
DROP INDEX positions_owed;
