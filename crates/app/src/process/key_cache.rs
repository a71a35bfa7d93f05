//! A cache of key rows, so that an authenticated request needs no database read.
//!
//! A row is valid for half a second after it was requested. So a revocation takes effect in every
//! process within a second, without messages between processes. The row's conditions, such as
//! expiry, are checked for every request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::Timestamp;
use domain::ids::KeyId;
use parking_lot::Mutex;
use quick_cache::unsync::Cache;
use store::keys::Key;
use store::{Store, StoreError};

/// The time for which a row is valid.
const LIFETIME_MS: i64 = 500;
/// The maximum number of rows.
const MOST_KNOWN: usize = 8_192;
/// The maximum number of digests without a key. They are separate, so that guesses do not evict
/// valid keys.
const MOST_UNKNOWN: usize = 2_048;

/// Rows by the digest of their key.
#[derive(Debug, Default)]
pub struct KeyCache(Mutex<Rows>, AtomicU64);

#[derive(Debug)]
struct Rows {
    known: Cache<String, (Timestamp, Arc<Key>)>,
    unknown: Cache<String, Timestamp>,
    /// Incremented by [`KeyCache::forget`]. The result of a read that began before is not cached.
    forgotten: u64,
}

impl Default for Rows {
    fn default() -> Self {
        Self { known: Cache::new(MOST_KNOWN), unknown: Cache::new(MOST_UNKNOWN), forgotten: 0 }
    }
}

/// Returns whether a row read at `asked_at` is still valid.
fn is_valid(asked_at: Timestamp, now: Timestamp) -> bool {
    // After the clock was set back, a row may be from the future: it counts as expired.
    (0..LIFETIME_MS).contains(&now.since_ms(asked_at))
}

impl KeyCache {
    /// Returns the cached result for a digest: `None` if it is not cached, `Some(None)` if no key
    /// has this digest.
    fn get(&self, digest: &str, now: Timestamp) -> Option<Option<Arc<Key>>> {
        let rows = self.0.lock();
        if let Some((_, key)) = rows.known.get(digest).filter(|(asked_at, _)| is_valid(*asked_at, now)) {
            return Some(Some(Arc::clone(key)));
        }
        rows.unknown.get(digest).is_some_and(|asked_at| is_valid(*asked_at, now)).then_some(None)
    }

    fn put(&self, digest: String, asked_at: Timestamp, row: Option<&Arc<Key>>, forgotten: u64) {
        let mut rows = self.0.lock();
        // A key was changed during the read, so the row may be outdated.
        if rows.forgotten != forgotten {
            return;
        }
        match row {
            Some(key) => rows.known.insert(digest, (asked_at, Arc::clone(key))),
            None => rows.unknown.insert(digest, asked_at),
        }
    }

    /// Returns the number of database reads.
    pub fn look_ups(&self) -> u64 {
        self.1.load(Ordering::Relaxed)
    }

    fn forgotten(&self) -> u64 {
        self.0.lock().forgotten
    }

    /// Removes a key that this process has changed, so that the change takes effect here at once.
    pub(crate) fn forget(&self, id: KeyId) {
        let mut rows = self.0.lock();
        rows.forgotten += 1;
        rows.known.retain(|_, (_, key)| key.id != id);
    }

    /// Returns the key with this digest, as it was at most half a second before `asked_at`. A row's
    /// age counts from the start of its read.
    pub(crate) async fn find(
        &self,
        store: &Store,
        digest: String,
        asked_at: Timestamp,
    ) -> Result<Option<Arc<Key>>, StoreError> {
        if let Some(row) = self.get(&digest, asked_at) {
            return Ok(row);
        }
        let forgotten = self.forgotten();
        self.1.fetch_add(1, Ordering::Relaxed);
        let read =
            store.read(digest.clone(), |tx, digest| Box::pin(store::keys::find_by_digest(tx, digest))).await;
        let read: Result<Option<Key>, StoreError> = read;
        let row = read?.map(Arc::new);
        self.put(digest, asked_at, row.as_ref(), forgotten);
        Ok(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(10_000);

    #[test]
    fn a_row_is_cached_for_half_a_second_after_its_read() {
        let cache = KeyCache::default();
        cache.put("a".to_owned(), NOW, None, 0);
        for (offset_ms, believed) in [(0, true), (499, true), (500, false), (-1, false)] {
            assert_eq!(cache.get("a", NOW.plus_ms(offset_ms)).is_some(), believed, "{offset_ms}");
        }
    }

    #[test]
    fn guessed_digests_fill_a_bounded_cache_and_the_newest_stays() {
        let cache = KeyCache::default();
        for guess in 0..10 * MOST_UNKNOWN {
            cache.put(guess.to_string(), NOW, None, 0);
            assert!(cache.get(&guess.to_string(), NOW).is_some());
        }
        assert!(cache.0.lock().unknown.len() <= MOST_UNKNOWN);
    }

    #[test]
    fn a_read_that_began_before_a_change_is_not_cached() {
        let cache = KeyCache::default();
        let asked = cache.forgotten();
        cache.forget(KeyId(uuid::Uuid::nil()));
        cache.put("a".to_owned(), NOW, None, asked);
        assert!(cache.get("a", NOW).is_none());
    }
}
