-- How far a trade's price may be worse than the quote at its acceptance, in hundredths of a percent. Null if only the intent's own
-- amounts bound the price, and in rows that are older than this column.
ALTER TABLE trades ADD COLUMN max_slippage_bps BIGINT;
