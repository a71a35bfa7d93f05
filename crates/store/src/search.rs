//! The search for markets and threads: an index of words in a table, the same on both engines.
//!
//! A word of the question is found as it is or as the beginning of a longer one. What is found holds every word that is
//! asked for; a title's word weighs four, a tag's three, a category's two, and twice that where the whole word was asked
//! for. The words of a row are written when its texts change, in the same transaction.
//!
//! The rarest word says what is looked at: the [`MOST_FOUND`] newest that have it as it is, and as many that have longer words that
//! begin so. The others are looked up for each of these. So no question costs more, however common its words are.

use std::collections::BTreeMap;

use domain::search::words;

use crate::{StoreError, Tx, Value, params};

/// What is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Markets.
    Market,
    /// Threads.
    Thread,
}

impl Kind {
    /// The word of the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Market => "market",
            Self::Thread => "thread",
        }
    }
}

/// The texts that something is found by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Texts {
    /// A title or a question.
    pub title: String,
    /// Free words.
    pub tags: Vec<String>,
    /// Such as `sports`.
    pub category: Option<String>,
}

impl Texts {
    /// Each word with its weight.
    pub fn weights(&self) -> BTreeMap<String, i64> {
        let mut weights = BTreeMap::new();
        let mut add = |text: &str, weight: i64| {
            for word in words(text) {
                let known = weights.entry(word).or_insert(weight);
                *known = weight.max(*known);
            }
        };
        add(&self.title, 4);
        self.tags.iter().for_each(|tag| add(tag, 3));
        add(self.category.as_deref().unwrap_or_default(), 2);
        weights
    }
}

/// How many of those that have the rarest word as it is are looked at, and how many that have longer ones.
pub const MOST_FOUND: u32 = 2_000;

/// The words of a question, the rarest first.
pub(crate) async fn asked(tx: &mut Tx, kind: Kind, text: &str) -> Result<Vec<String>, StoreError> {
    const SQL: &str =
        "SELECT COUNT(*) FROM (SELECT 1 AS one FROM search_terms WHERE kind = $1 AND term >= $2 AND term < $3
        LIMIT $4) found";
    let mut words = words(text);
    if words.len() < 2 {
        return Ok(words);
    }
    let mut counted: Vec<(u32, String)> = Vec::with_capacity(words.len());
    for word in words.drain(..) {
        let bound = params![kind.as_str(), word.as_str(), beyond(&word), MOST_FOUND];
        let count = tx.find(SQL, &bound, |row| row.number(0)).await?;
        counted.push((count.unwrap_or_default(), word));
    }
    counted.sort_by_key(|(count, _)| *count);
    Ok(counted.into_iter().map(|(_, word)| word).collect())
}

/// What sorts behind every word that begins so.
pub(crate) fn beyond(word: &str) -> String {
    format!("{word}\u{10ffff}")
}

/// The words of something, with their weights.
pub(crate) async fn find(tx: &mut Tx, kind: Kind, id: &str) -> Result<BTreeMap<String, i64>, StoreError> {
    const SQL: &str = "SELECT term, weight FROM search_terms WHERE kind = $1 AND id = $2";
    let terms = tx.list(SQL, &params![kind.as_str(), id], |row| Ok((row.text(0)?, row.int(1)?))).await?;
    Ok(terms.into_iter().collect())
}

/// Writes the words of something, in place of those it had.
pub(crate) async fn put(tx: &mut Tx, kind: Kind, id: &str, texts: &Texts) -> Result<(), StoreError> {
    const FORGET: &str = "DELETE FROM search_terms WHERE kind = $1 AND id = $2";
    const PUT: &str = "INSERT INTO search_terms (kind, id, term, weight) VALUES ($1, $2, $3, $4)";
    tx.exec(FORGET, &params![kind.as_str(), id]).await?;
    let weights = texts.weights();
    let rows: Vec<Vec<Value<'_>>> =
        weights.iter().map(|(term, weight)| params![kind.as_str(), id, term, *weight].to_vec()).collect();
    tx.exec_each(PUT, &rows).await.map(drop)
}
