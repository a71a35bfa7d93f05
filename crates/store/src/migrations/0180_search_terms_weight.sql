-- Searches read weights, which only the rows had. Both indexes now answer them without a look at the row.
CREATE INDEX CONCURRENTLY search_terms_of ON search_terms (kind, id, term, weight);
CREATE INDEX CONCURRENTLY search_terms_word ON search_terms (kind, term, id, weight);
DROP INDEX search_terms_id;
