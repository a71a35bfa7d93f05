-- The threads of a category, the newest first.
CREATE INDEX threads_category ON threads (category, created_at_ms, id);
