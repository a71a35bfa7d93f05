-- The name that a user shows on the leaderboard. The key is its letters and digits in lower case, so that no two names look
-- alike.
ALTER TABLE users ADD COLUMN public_name TEXT;
ALTER TABLE users ADD COLUMN public_name_key TEXT;
CREATE UNIQUE INDEX users_public_name ON users (public_name_key) WHERE public_name_key IS NOT NULL;
