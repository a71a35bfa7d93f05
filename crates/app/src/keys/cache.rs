//! Key rows that were read a moment ago, so that an authenticated request costs no read of the database.
//!
//! A row is believed for half a second after it was asked for, which is what makes a revocation effective within a second
//! in every process without any of them telling the others. What the row says is judged anew at every request.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::Timestamp;
use domain::ids::KeyId;
use parking_lot::Mutex;
use store::StoreError;
use store::keys::Key;

use crate::Ctx;

/// For how long a row is believed.
const LIFETIME_MS: i64 = 500;
/// The most rows of a generation; two generations are kept.
const KNOWN: usize = 4_096;
/// The same for digests that no key has. They are kept apart, so that guesses push no key out.
const UNKNOWN: usize = 1_024;

/// Rows by the digest of their key.
#[derive(Debug, Default)]
pub struct KeyCache(Mutex<Rows>, AtomicU64);

#[derive(Debug, Default)]
struct Rows {
    known: Generations<Arc<Key>>,
    unknown: Generations<()>,
    /// Grows with every [`KeyCache::forget`]: what was asked for before it is not kept.
    forgotten: u64,
}

/// A bounded map: when the young generation is full it becomes the old one, and the old one is dropped.
#[derive(Debug)]
struct Generations<T> {
    young: HashMap<String, (Timestamp, T)>,
    old: HashMap<String, (Timestamp, T)>,
}

impl<T> Default for Generations<T> {
    fn default() -> Self {
        Self { young: HashMap::new(), old: HashMap::new() }
    }
}

impl<T: Clone> Generations<T> {
    fn get(&self, digest: &str, now: Timestamp) -> Option<T> {
        let (asked_at, value) = self.young.get(digest).or_else(|| self.old.get(digest))?;
        // A clock that was set back makes nothing younger.
        (0..LIFETIME_MS).contains(&now.since_ms(*asked_at)).then(|| value.clone())
    }

    fn put(&mut self, digest: String, asked_at: Timestamp, value: T, most: usize) {
        if self.young.len() >= most && !self.young.contains_key(&digest) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(digest, (asked_at, value));
    }
}

impl KeyCache {
    /// What is known of the digest: `None` where it must be asked for, `Some(None)` where no key has it.
    fn get(&self, digest: &str, now: Timestamp) -> Option<Option<Arc<Key>>> {
        let rows = self.0.lock();
        let known = rows.known.get(digest, now).map(Some);
        known.or_else(|| rows.unknown.get(digest, now).map(|()| None))
    }

    fn put(&self, digest: String, asked_at: Timestamp, row: Option<&Arc<Key>>, forgotten: u64) {
        let mut rows = self.0.lock();
        if rows.forgotten != forgotten {
            return;
        }
        match row {
            Some(key) => rows.known.put(digest, asked_at, Arc::clone(key), KNOWN),
            None => rows.unknown.put(digest, asked_at, (), UNKNOWN),
        }
    }

    /// How many rows were asked of the database.
    pub fn look_ups(&self) -> u64 {
        self.1.load(Ordering::Relaxed)
    }

    fn forgotten(&self) -> u64 {
        self.0.lock().forgotten
    }

    /// Forgets the row of a key that this process has changed, so that it need not wait for its own change.
    pub(super) fn forget(&self, id: KeyId) {
        let mut rows = self.0.lock();
        rows.forgotten += 1;
        let Generations { young, old } = &mut rows.known;
        young.retain(|_, (_, key)| key.id != id);
        old.retain(|_, (_, key)| key.id != id);
    }
}

/// The key with this digest, as it was at most half a second before `asked_at`: a row is as old as the question for it, not
/// as the answer.
pub(super) async fn find(
    ctx: &Ctx,
    digest: String,
    asked_at: Timestamp,
) -> Result<Option<Arc<Key>>, StoreError> {
    if let Some(row) = ctx.key_cache.get(&digest, asked_at) {
        return Ok(row);
    }
    let forgotten = ctx.key_cache.forgotten();
    ctx.key_cache.1.fetch_add(1, Ordering::Relaxed);
    let read =
        ctx.store.read(digest.clone(), |tx, digest| Box::pin(store::keys::find_by_digest(tx, digest))).await;
    let read: Result<Option<Key>, StoreError> = read;
    let row = read?.map(Arc::new);
    ctx.key_cache.put(digest, asked_at, row.as_ref(), forgotten);
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(10_000);

    #[test]
    fn a_row_is_believed_for_half_a_second_and_not_before_it_was_asked_for() {
        let cache = KeyCache::default();
        cache.put("a".to_owned(), NOW, None, 0);
        for (offset_ms, believed) in [(0, true), (499, true), (500, false), (-1, false)] {
            assert_eq!(cache.get("a", NOW.plus_ms(offset_ms)).is_some(), believed, "{offset_ms}");
        }
    }

    #[test]
    fn however_many_digests_are_guessed_few_are_kept_and_the_newest_stays() {
        let cache = KeyCache::default();
        for guess in 0..10 * UNKNOWN {
            cache.put(guess.to_string(), NOW, None, 0);
            assert!(cache.get(&guess.to_string(), NOW).is_some());
        }
        let rows = cache.0.lock();
        assert!(rows.unknown.young.len() + rows.unknown.old.len() <= 2 * UNKNOWN);
    }

    #[test]
    fn an_answer_to_a_question_from_before_a_change_is_not_kept() {
        let cache = KeyCache::default();
        let asked = cache.forgotten();
        cache.forget(KeyId(uuid::Uuid::nil()));
        cache.put("a".to_owned(), NOW, None, asked);
        assert!(cache.get("a", NOW).is_none());
    }
}
