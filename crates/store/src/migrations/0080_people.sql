-- People of the web application: their roles, keys, credentials, sessions and challenges.

ALTER TABLE users ADD COLUMN role TEXT NOT NULL DEFAULT 'user';
-- The tier of the user's web key.
ALTER TABLE users ADD COLUMN tier TEXT NOT NULL DEFAULT 'free';

ALTER TABLE keys ADD COLUMN kind TEXT NOT NULL DEFAULT 'api';
-- The last four characters. NULL for keys that were issued before this column existed.
ALTER TABLE keys ADD COLUMN hint TEXT;
ALTER TABLE keys ADD COLUMN chosen_daily_usdc_atomic BIGINT;
ALTER TABLE keys ADD COLUMN chosen_per_trade_usdc_atomic BIGINT;
CREATE UNIQUE INDEX keys_web ON keys (user_id) WHERE kind = 'web' AND revoked_at_ms IS NULL;

CREATE INDEX account_owners_users ON account_owners (owner, user_id);

-- Passkeys and wallets that sign in. public_key has the form of an account's owner. The columns passkey_id to
-- transports are only set for passkeys.
CREATE TABLE credentials (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    public_key TEXT NOT NULL,
    passkey_id BYTES,
    user_handle BYTES,
    counter BIGINT NOT NULL,
    backup TEXT,
    transports TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    last_used_at_ms BIGINT
);
CREATE UNIQUE INDEX credentials_passkey ON credentials (passkey_id) WHERE passkey_id IS NOT NULL;
CREATE UNIQUE INDEX credentials_wallet ON credentials (public_key) WHERE passkey_id IS NULL;
CREATE INDEX credentials_user ON credentials (user_id, created_at_ms, id);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES users (id),
    -- the credential that signed in last; it may have been removed since
    credential_id TEXT NOT NULL,
    token_digest TEXT NOT NULL,
    user_agent TEXT NOT NULL,
    ip TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    last_used_at_ms BIGINT NOT NULL,
    renewed_at_ms BIGINT NOT NULL,
    stepped_up_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT
);
CREATE UNIQUE INDEX sessions_token ON sessions (token_digest);
CREATE INDEX sessions_live ON sessions (user_id, last_used_at_ms) WHERE ended_at_ms IS NULL;
CREATE INDEX sessions_age ON sessions (last_used_at_ms);

CREATE TABLE challenges (
    challenge TEXT PRIMARY KEY,
    purpose TEXT NOT NULL,
    -- the user who may answer it; NULL for sign-up and sign-in
    user_id TEXT REFERENCES users (id),
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    used_at_ms BIGINT
);
CREATE INDEX challenges_expiry ON challenges (expires_at_ms);
