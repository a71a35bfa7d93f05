-- Transactions that a remote signer was or will be asked to sign. A row is written before the signer is asked, and deleted when
-- the signed form is stored, so the signer never gets two different transactions with one nonce and the same fees.
CREATE TABLE signing_requests (
    batch_id TEXT PRIMARY KEY,
    max_fee_per_gas TEXT NOT NULL,
    max_priority_fee_per_gas TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL
);
