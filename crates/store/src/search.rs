//! Full-text search for markets and threads, with a table of words that works the same on both
//! engines.
//!
//! A word of the query matches an equal word or the beginning of a longer one. Results contain all
//! words of the query. A match in the title scores 4, in a tag 3, in the category 2, and twice that
//! for a whole word. The words of a row are updated in the same transaction as its texts.
//!
//! The candidates are chosen by the rarest word: the [`MOST_FOUND`] newest rows with exactly that
//! word, and as many rows with longer words. The other words are then looked up for each candidate.
//! The cost of a query is therefore bounded, however common its words are.

use std::collections::BTreeMap;

use domain::search::words;

use crate::{SqlValue, StoreError, Tx, params};

/// The kind of a searchable row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchKind {
    Market,
    Thread,
}

impl SearchKind {
    /// The kind as stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Market => "market",
            Self::Thread => "thread",
        }
    }
}

/// The searchable texts of a row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Texts {
    /// A title or a question.
    pub title: String,
    /// Free-form tags.
    pub tags: Vec<String>,
    /// A category such as `sports`.
    pub category: Option<String>,
}

impl Texts {
    /// Returns each word with its weight.
    pub fn weights(&self) -> BTreeMap<String, i64> {
        let mut weights = BTreeMap::new();
        let mut add = |text: &str, weight: i64| {
            for word in words(text) {
                let known = weights.entry(word).or_insert(weight);
                // A word that occurs in several texts counts with its highest weight.
                *known = weight.max(*known);
            }
        };
        add(&self.title, 4);
        self.tags.iter().for_each(|tag| add(tag, 3));
        add(self.category.as_deref().unwrap_or_default(), 2);
        weights
    }
}

/// The maximum number of candidates with exactly the rarest word, and also of those with longer
/// words.
pub const MOST_FOUND: u32 = 2_000;

/// Returns the words of a query, rarest first.
pub(crate) async fn asked(tx: &mut Tx, kind: SearchKind, text: &str) -> Result<Vec<String>, StoreError> {
    const SQL: &str =
        "SELECT COUNT(*) AS count FROM (SELECT 1 AS one FROM search_terms WHERE kind = $1 AND term >= $2 AND term < $3
        LIMIT $4) found";
    let mut words = words(text);
    // A single word needs no order, so it is not counted.
    if words.len() < 2 {
        return Ok(words);
    }
    let mut counted: Vec<(u32, String)> = Vec::with_capacity(words.len());
    for word in words.drain(..) {
        let bound = params![kind.as_str(), word.as_str(), beyond(&word), MOST_FOUND];
        let count = tx.find(SQL, &bound, |row| row.only()).await?;
        counted.push((count.unwrap_or_default(), word));
    }
    counted.sort_by_key(|(count, _)| *count);
    Ok(counted.into_iter().map(|(_, word)| word).collect())
}

/// Returns an upper bound of all words that begin with `word`.
pub(crate) fn beyond(word: &str) -> String {
    format!("{word}\u{10ffff}")
}

/// Returns the stored words of a row, with their weights.
pub(crate) async fn find(
    tx: &mut Tx,
    kind: SearchKind,
    id: &str,
) -> Result<BTreeMap<String, i64>, StoreError> {
    const SQL: &str = "SELECT term, weight FROM search_terms WHERE kind = $1 AND id = $2";
    let terms =
        tx.list(SQL, &params![kind.as_str(), id], |row| Ok((row.get("term")?, row.get("weight")?))).await?;
    Ok(terms.into_iter().collect())
}

/// Replaces the stored words of a row.
pub(crate) async fn put(tx: &mut Tx, kind: SearchKind, id: &str, texts: &Texts) -> Result<(), StoreError> {
    const FORGET: &str = "DELETE FROM search_terms WHERE kind = $1 AND id = $2";
    const PUT: &str = "INSERT INTO search_terms (kind, id, term, weight) VALUES ($1, $2, $3, $4)";
    tx.exec(FORGET, &params![kind.as_str(), id]).await?;
    let weights = texts.weights();
    let rows: Vec<Vec<SqlValue<'_>>> =
        weights.iter().map(|(term, weight)| params![kind.as_str(), id, term, *weight].to_vec()).collect();
    tx.exec_each(PUT, &rows).await.map(drop)
}
