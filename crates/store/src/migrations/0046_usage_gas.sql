-- The gas of settled batches, divided over the keys of their trades. The fee in wei is fee_gwei billions and fee_wei.
CREATE TABLE usage_gas (
    key_id TEXT NOT NULL,
    hour_ms BIGINT NOT NULL,
    gas BIGINT NOT NULL,
    fee_gwei BIGINT NOT NULL,
    fee_wei BIGINT NOT NULL,
    PRIMARY KEY (key_id, hour_ms)
);
CREATE INDEX usage_gas_hour ON usage_gas (hour_ms);
