-- The present owners of accounts, as they were last read from the chain; before an account exists, its first owner.
-- accounts.owner is the first owner, which decides the address and may have been removed since.
CREATE TABLE account_owners (
    user_id TEXT NOT NULL REFERENCES users (id),
    position BIGINT NOT NULL,
    owner TEXT NOT NULL,
    PRIMARY KEY (user_id, position)
);
CREATE UNIQUE INDEX account_owners_owner ON account_owners (user_id, owner);
INSERT INTO account_owners (user_id, position, owner) SELECT user_id, 0, owner FROM accounts;
