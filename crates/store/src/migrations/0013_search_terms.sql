-- Whether something that was found by one word has another one, too.
DROP INDEX search_terms_id;
CREATE INDEX search_terms_id ON search_terms (kind, id, term);
