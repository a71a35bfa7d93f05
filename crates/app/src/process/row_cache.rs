//! A cache of rows that authenticate requests, by the digest of a secret, so that an authenticated
//! request needs no database read.
//!
//! A row is valid for half a second after it was requested. So a revocation takes effect in every
//! process within a second, without messages between processes. The row's conditions, such as
//! expiry, are checked for every request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::Timestamp;
use parking_lot::Mutex;
use quick_cache::unsync::Cache;
use store::StoreError;

/// The time for which a row is valid.
const LIFETIME_MS: i64 = 500;
/// The maximum number of rows.
const MOST_KNOWN: usize = 8_192;
/// The maximum number of digests without a row. They are separate, so that guesses do not evict
/// valid rows.
const MOST_UNKNOWN: usize = 2_048;

/// Rows by the digest of their secret.
#[derive(Debug)]
pub struct RowCache<R>(Mutex<Rows<R>>, AtomicU64);

#[derive(Debug)]
struct Rows<R> {
    known: Cache<String, (Timestamp, Arc<R>)>,
    unknown: Cache<String, Timestamp>,
    /// Incremented by [`RowCache::forget`]. The result of a read that began before is not cached.
    forgotten: u64,
}

impl<R> Default for RowCache<R> {
    fn default() -> Self {
        let rows = Rows { known: Cache::new(MOST_KNOWN), unknown: Cache::new(MOST_UNKNOWN), forgotten: 0 };
        Self(Mutex::new(rows), AtomicU64::new(0))
    }
}

/// Returns whether a row read at `asked_at` is still valid.
fn is_valid(asked_at: Timestamp, now: Timestamp) -> bool {
    // After the clock was set back, a row may be from the future: it counts as expired.
    (0..LIFETIME_MS).contains(&now.since_ms(asked_at))
}

impl<R> RowCache<R> {
    /// Returns the cached result for a digest: `None` if it is not cached, `Some(None)` if no row
    /// has this digest.
    fn get(&self, digest: &str, now: Timestamp) -> Option<Option<Arc<R>>> {
        let rows = self.0.lock();
        if let Some((_, row)) = rows.known.get(digest).filter(|(asked_at, _)| is_valid(*asked_at, now)) {
            return Some(Some(Arc::clone(row)));
        }
        rows.unknown.get(digest).is_some_and(|asked_at| is_valid(*asked_at, now)).then_some(None)
    }

    fn put(&self, digest: String, asked_at: Timestamp, row: Option<&Arc<R>>, forgotten: u64) {
        let mut rows = self.0.lock();
        // A row was changed during the read, so the result may be outdated.
        if rows.forgotten != forgotten {
            return;
        }
        match row {
            Some(row) => rows.known.insert(digest, (asked_at, Arc::clone(row))),
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

    /// Removes the rows that this process has changed, so that the change takes effect here at
    /// once.
    pub(crate) fn forget(&self, is_changed: impl Fn(&R) -> bool) {
        let mut rows = self.0.lock();
        rows.forgotten += 1;
        rows.known.retain(|_, (_, row)| !is_changed(row));
    }

    /// Returns the row with this digest, as it was at most half a second before `asked_at`. Runs
    /// `read` if it is not cached. A row's age counts from the start of its read.
    pub(crate) async fn find(
        &self,
        digest: String,
        asked_at: Timestamp,
        read: impl Future<Output = Result<Option<R>, StoreError>>,
    ) -> Result<Option<Arc<R>>, StoreError> {
        if let Some(row) = self.get(&digest, asked_at) {
            return Ok(row);
        }
        let forgotten = self.forgotten();
        self.1.fetch_add(1, Ordering::Relaxed);
        let row = read.await?.map(Arc::new);
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
        let cache = RowCache::<()>::default();
        cache.put("a".to_owned(), NOW, None, 0);
        for (offset_ms, believed) in [(0, true), (499, true), (500, false), (-1, false)] {
            assert_eq!(cache.get("a", NOW.plus_ms(offset_ms)).is_some(), believed, "{offset_ms}");
        }
    }

    #[test]
    fn guessed_digests_fill_a_bounded_cache_and_the_newest_stays() {
        let cache = RowCache::<()>::default();
        for guess in 0..10 * MOST_UNKNOWN {
            cache.put(guess.to_string(), NOW, None, 0);
            assert!(cache.get(&guess.to_string(), NOW).is_some());
        }
        assert!(cache.0.lock().unknown.len() <= MOST_UNKNOWN);
    }

    #[test]
    fn a_read_that_began_before_a_change_is_not_cached() {
        let cache = RowCache::<()>::default();
        let asked = cache.forgotten();
        cache.forget(|()| true);
        cache.put("a".to_owned(), NOW, None, asked);
        assert!(cache.get("a", NOW).is_none());
    }

    #[test]
    fn only_changed_rows_are_forgotten() {
        let cache = RowCache::default();
        cache.put("a".to_owned(), NOW, Some(&Arc::new(1)), 0);
        cache.put("b".to_owned(), NOW, Some(&Arc::new(2)), 0);
        cache.forget(|row| *row == 1);
        assert!(cache.get("a", NOW).is_none() && cache.get("b", NOW).is_some());
    }
}
