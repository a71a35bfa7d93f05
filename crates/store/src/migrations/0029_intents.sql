-- The nonce that a failed intent had; null in rows that are older than this column.
ALTER TABLE intent_failures ADD COLUMN nonce BIGINT;

-- The nonce of a trade's first intent, if that intent never ran because another one had used its nonce. The trade gets
-- another nonce once.
ALTER TABLE trades ADD COLUMN replaced_nonce BIGINT;
