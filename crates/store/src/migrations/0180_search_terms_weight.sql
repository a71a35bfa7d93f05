-- Searches read weights, which only the rows had. Both indexes now answer them without a look at the row.
DROP INDEX search_terms_id;
CREATE INDEX search_terms_id ON search_terms (kind, id, term, weight);
CREATE INDEX search_terms_word ON search_terms (kind, term, id, weight);
