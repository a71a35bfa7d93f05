-- A wallet may sign in to several accounts: those that it has confirmed with its own signature. signed_up is 1 for the
-- account that it signed up for, of which it has at most one.
ALTER TABLE credentials ADD COLUMN signed_up BIGINT NOT NULL DEFAULT 0;
UPDATE credentials SET signed_up = 1
    WHERE public_key = (SELECT a.owner FROM accounts a WHERE a.user_id = credentials.user_id);
-- Wallets that signed in only because the chain named them owners. They can sign in again once they have confirmed the
-- account.
DELETE FROM credentials WHERE passkey_id IS NULL AND signed_up = 0 AND NOT EXISTS
    (SELECT 1 FROM audit_entries e WHERE e.action = 'credential.add' AND e.subject = 'user:' || credentials.user_id
    AND e.after_state LIKE '%' || credentials.id || '%');
UPDATE sessions SET ended_at_ms = last_used_at_ms WHERE ended_at_ms IS NULL AND NOT EXISTS
    (SELECT 1 FROM credentials c WHERE c.id = sessions.credential_id);
CREATE UNIQUE INDEX CONCURRENTLY credentials_wallet_user ON credentials (public_key, user_id) WHERE passkey_id IS NULL;
CREATE UNIQUE INDEX CONCURRENTLY credentials_signed_up ON credentials (public_key)
    WHERE passkey_id IS NULL AND signed_up = 1;
DROP INDEX credentials_wallet;
-- The accounts that name a wallet as their first owner.
CREATE INDEX CONCURRENTLY accounts_owner ON accounts (owner, user_id);
-- Nothing looks for the accounts that have an owner on chain: a stranger can add any owner.
DROP INDEX account_owners_users;
