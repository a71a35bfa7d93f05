//! In-memory states by key, in separately locked shards. Idle states are removed.

use std::hash::{BuildHasher, Hash, RandomState};

use domain::Timestamp;
use domain::rate::{Lockout, SlidingWindow, TokenBucket};
use domain::time::MINUTE_MS;
use indexmap::IndexMap;
use parking_lot::Mutex;

const SHARDS: usize = 64;
/// The interval at which a shard removes idle states.
const SWEEP_EVERY_MS: i64 = MINUTE_MS;
/// The number of states to choose from when a full shard must evict one. It bounds the cost of a
/// request from a new address.
const CANDIDATES: usize = 8;

/// A state that equals the default from some time on.
pub trait Idle: Default {
    /// Returns the time from which the state equals the default.
    fn idle_at(&self) -> Timestamp;
}

impl Idle for SlidingWindow {
    fn idle_at(&self) -> Timestamp {
        self.idle_at()
    }
}

impl Idle for TokenBucket {
    fn idle_at(&self) -> Timestamp {
        self.idle_at()
    }
}

impl Idle for Lockout {
    fn idle_at(&self) -> Timestamp {
        self.idle_at()
    }
}

#[derive(Debug)]
pub struct Table<K, V> {
    shards: Box<[Mutex<Shard<K, V>>]>,
    hasher: RandomState,
    max_per_shard: usize,
}

#[derive(Debug)]
struct Shard<K, V> {
    states: IndexMap<K, V>,
    sweep_at: Timestamp,
}

impl<K: Hash + Eq + Copy, V: Idle> Table<K, V> {
    /// Creates a table without a maximum, for keys that clients cannot make up.
    pub fn unbounded() -> Self {
        Self::bounded(usize::MAX)
    }

    /// Creates a table of about `max` states. A full shard evicts, of a few candidates, the one
    /// that becomes idle first.
    pub fn bounded(max: usize) -> Self {
        let shard = || Mutex::new(Shard { states: IndexMap::new(), sweep_at: Timestamp::from_ms(0) });
        let max_per_shard = (max / SHARDS).max(1);
        Self { shards: (0..SHARDS).map(|_| shard()).collect(), hasher: RandomState::new(), max_per_shard }
    }

    /// Changes the key's state, creating the default if there is none.
    pub fn with<T>(&self, key: K, now: Timestamp, change: impl FnOnce(&mut V) -> T) -> T {
        let hash = self.hash(&key);
        let mut shard = self.shards[hash % SHARDS].lock();
        if shard.sweep_at <= now {
            shard.sweep_at = now.plus_ms(SWEEP_EVERY_MS);
            shard.states.retain(|_, state| state.idle_at() > now);
        }
        if shard.states.len() >= self.max_per_shard && !shard.states.contains_key(&key) {
            shard.make_room(hash / SHARDS);
        }
        change(shard.states.entry(key).or_default())
    }

    /// Reads the key's state, if there is one.
    pub fn find<T>(&self, key: &K, look: impl FnOnce(&mut V) -> T) -> Option<T> {
        self.shards[self.hash(key) % SHARDS].lock().states.get_mut(key).map(look)
    }

    /// Shows every state, a shard at a time.
    pub fn for_each(&self, mut look: impl FnMut(&K, &mut V)) {
        for shard in &self.shards {
            for (key, state) in &mut shard.lock().states {
                look(key, state);
            }
        }
    }

    fn hash(&self, key: &K) -> usize {
        self.hasher.hash_one(key) as usize
    }
}

impl<K: Hash + Eq + Copy, V: Idle> Shard<K, V> {
    /// Evicts one state. `chance` selects the first candidate.
    fn make_room(&mut self, chance: usize) {
        let count = self.states.len();
        let idle_at = |place: &usize| self.states.get_index(*place).map(|(_, state)| state.idle_at());
        let candidates = (0..CANDIDATES.min(count)).map(|n| (chance % count + n) % count);
        if let Some(place) = candidates.min_by_key(idle_at) {
            self.states.swap_remove_index(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(1_800_000_000_000 + ms)
    }

    fn len(table: &Table<u32, SlidingWindow>) -> usize {
        table.shards.iter().map(|shard| shard.lock().states.len()).sum()
    }

    #[test]
    fn idle_entries_are_dropped() {
        let table = Table::unbounded();
        for key in 0..10_000 {
            table.with(key, at(0), |window: &mut SlidingWindow| window.take(1, at(0)));
        }
        assert_eq!(len(&table), 10_000);
        // A minute later each shard removes its idle states at its next request.
        for key in 10_000..12_000 {
            table.with(key, at(60_000), |window| window.take(1, at(60_000)));
        }
        assert_eq!(len(&table), 2_000);
    }

    #[test]
    fn a_full_table_drops_the_entries_closest_to_idle() {
        let table = Table::bounded(SHARDS * 8);
        table.with(0, at(0), |window: &mut SlidingWindow| window.take(1, at(50_000)));
        for key in 1..100_000 {
            table.with(key, at(0), |window| window.take(1, at(0)));
        }
        assert!(len(&table) <= SHARDS * 8);
        assert_eq!(table.find(&0, |window| window.peek(1, at(50_000)).allowed), Some(false));
    }
}
