//! In-memory counters. A request costs one short lock and no allocation, except for the first
//! request of a key since the last flush.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use domain::ids::KeyId;
use domain::usage::{RequestCounts, hour_of};
use domain::{ErrorCode, Timestamp};
use parking_lot::Mutex;
use store::usage::KeyHour;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The number of locks that the keys are spread over.
const SHARDS: usize = 16;

/// The counts of each key and hour. The hour is given by its start.
type Counted = HashMap<(KeyId, Timestamp), Box<KeyHour>>;

/// The counts of this process that are not in the database yet. Only existing keys are counted, so
/// clients cannot make it grow.
#[derive(Debug, Default)]
pub struct Recorder {
    shards: [Mutex<Counted>; SHARDS],
    /// Write-locked while counts move to the database, so that a reader finds each count in exactly
    /// one place.
    moving: RwLock<()>,
}

impl Recorder {
    /// Counts a request of a key that was answered at `now`. `code` is set if it was rejected.
    pub fn record(&self, key_id: KeyId, code: Option<ErrorCode>, latency_ms: u64, now: Timestamp) {
        let mut shard = self.shard(key_id).lock();
        let counted = counted(&mut shard, key_id, hour_of(now), now);
        counted.counts.record(code, latency_ms);
    }

    /// Returns the key's counts, one item per hour.
    pub fn of_key(&self, key_id: KeyId) -> Vec<KeyHour> {
        let shard = self.shard(key_id).lock();
        shard.values().filter(|counted| counted.key_id == key_id).map(|counted| (**counted).clone()).collect()
    }

    /// Blocks flushes until the guard is dropped.
    pub async fn hold_still(&self) -> RwLockReadGuard<'_, ()> {
        self.moving.read().await
    }

    /// Blocks readers until the guard is dropped.
    pub(crate) async fn hold_readers(&self) -> RwLockWriteGuard<'_, ()> {
        self.moving.write().await
    }

    /// Takes all counts, sorted by key and hour. Processes that update the same rows then lock them
    /// in the same order, which prevents deadlocks.
    pub(crate) fn take(&self) -> Vec<KeyHour> {
        let taken = self.shards.iter().flat_map(|shard| std::mem::take(&mut *shard.lock()).into_values());
        let mut taken: Vec<KeyHour> = taken.map(|counted| *counted).collect();
        taken.sort_unstable_by_key(|counted| (counted.key_id, counted.hour));
        taken
    }

    /// Puts back counts that could not be written.
    pub(crate) fn put_back(&self, hours: &[KeyHour]) {
        for kept in hours {
            let mut shard = self.shard(kept.key_id).lock();
            let counted = counted(&mut shard, kept.key_id, kept.hour, kept.last_used_at);
            counted.counts.merge(&kept.counts);
        }
    }

    fn shard(&self, key_id: KeyId) -> &Mutex<Counted> {
        // The last byte of an id is random.
        let [.., last] = *key_id.0.as_bytes();
        &self.shards[usize::from(last) % SHARDS]
    }
}

/// Returns the counts of the key's hour, created if needed, with `at` as the last use.
fn counted(shard: &mut Counted, key_id: KeyId, hour: Timestamp, at: Timestamp) -> &mut KeyHour {
    let counted = match shard.entry((key_id, hour)) {
        Entry::Occupied(entry) => entry.into_mut(),
        Entry::Vacant(entry) => entry.insert(Box::new(KeyHour {
            key_id,
            hour,
            last_used_at: at,
            counts: RequestCounts::default(),
        })),
    };
    counted.last_used_at = counted.last_used_at.max(at);
    counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::time::HOUR_MS;
    use uuid::Uuid;

    const NOW: Timestamp = Timestamp::from_ms(1_777_464_000_000);

    fn id(number: u128) -> KeyId {
        KeyId(Uuid::from_u128(number))
    }

    #[test]
    fn keys_of_a_shard_and_hours_of_a_key_are_counted_separately() {
        let recorder = Recorder::default();
        let (one, other) = (id(1), id(1 + 16));
        recorder.record(one, None, 5, NOW);
        recorder.record(one, None, 7, NOW.plus_ms(HOUR_MS));
        recorder.record(other, Some(ErrorCode::ApiKeyRevoked), 5, NOW.plus_ms(1));
        let hours: Vec<_> = recorder.of_key(one).iter().map(|counted| counted.hour.since_ms(NOW)).collect();
        assert_eq!(hours.iter().sum::<i64>(), HOUR_MS);
        let others = recorder.of_key(other);
        assert_eq!((others.len(), others[0].counts.auth_failures()), (1, 1));
        assert_eq!(others[0].last_used_at, NOW.plus_ms(1));
    }

    #[test]
    fn restored_counts_are_added_to_newer_ones() {
        let recorder = Recorder::default();
        recorder.record(id(2), None, 5, NOW.plus_ms(9));
        let taken = recorder.take();
        assert!(recorder.of_key(id(2)).is_empty());
        recorder.record(id(2), None, 5, NOW);
        recorder.put_back(&taken);
        let counted = &recorder.of_key(id(2))[0];
        assert_eq!((counted.counts.latency.count(), counted.last_used_at), (2, NOW.plus_ms(9)));
    }

    #[test]
    fn concurrent_requests_are_all_counted() {
        let recorder = Recorder::default();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let recorder = &recorder;
                scope.spawn(move || (0..1_000).for_each(|n| recorder.record(id(thread % 2), None, n, NOW)));
            }
        });
        let counts: u64 = recorder.take().iter().map(|counted| counted.counts.latency.count()).sum();
        assert_eq!(counts, 8_000);
    }
}
