-- Keys that belong to an agent. A release that doesn't know the column writes 0.
ALTER TABLE keys ADD COLUMN is_agent BIGINT NOT NULL DEFAULT 0;
