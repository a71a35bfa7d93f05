-- Batches of calls that an owner of an account signs, from their preparation until they end. The executor of the account's
-- lane sends each in a transaction of its own.
CREATE TABLE owner_acts (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    account TEXT NOT NULL,
    lane BIGINT NOT NULL,
    kind TEXT NOT NULL,
    -- JSON: a list of target, value and data
    calls TEXT NOT NULL,
    -- the account's nonce
    nonce BIGINT NOT NULL,
    deadline_s BIGINT NOT NULL,
    digest TEXT NOT NULL,
    status TEXT NOT NULL,
    -- the owner that signed
    signer TEXT,
    signature BYTES,
    signed_at_ms BIGINT,
    -- the batch that contains the act, or the last one that did; it has the signed bytes of the transaction
    batch_id TEXT,
    tx_hash TEXT,
    failure TEXT,
    -- details of the failure, or of the last attempt
    error TEXT,
    -- not tried again before
    try_after_ms BIGINT NOT NULL DEFAULT 0,
    created_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT
);
-- Preparing the same batch again finds it.
CREATE UNIQUE INDEX owner_acts_digest ON owner_acts (account, digest) WHERE ended_at_ms IS NULL;
-- An account has at most one signed act, because of its nonce.
CREATE UNIQUE INDEX owner_acts_signed ON owner_acts (account) WHERE status IN ('signed', 'sent');
CREATE INDEX owner_acts_queue ON owner_acts (lane, signed_at_ms, id) WHERE status = 'signed';
CREATE INDEX owner_acts_batch ON owner_acts (batch_id) WHERE ended_at_ms IS NULL AND batch_id IS NOT NULL;
CREATE INDEX owner_acts_user ON owner_acts (user_id, id);
CREATE INDEX owner_acts_prepared ON owner_acts (deadline_s) WHERE status = 'prepared';
CREATE INDEX owner_acts_unsigned ON owner_acts (ended_at_ms) WHERE signature IS NULL AND ended_at_ms IS NOT NULL;

-- The called contract of a batch, if its kind does not determine it.
ALTER TABLE batches ADD COLUMN target TEXT;

-- The owner that the user chose to add with the act that deploys the account.
ALTER TABLE accounts ADD COLUMN second_owner TEXT;
