//! What was read a moment ago and is still as good as new.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use domain::Timestamp;
use parking_lot::Mutex;

/// For how long another process's changes may go unnoticed.
const KEEP_MS: i64 = 250;

/// Values that were read of markets, each until this process changes a market that it tells of, or a quarter of a second
/// has passed.
/// Reading one's own writes is exact by that; what other processes write shows a quarter of a second late.
#[derive(Debug)]
pub struct Fresh<K, V> {
    entries: Mutex<HashMap<K, Entry<V>>>,
    most: usize,
}

#[derive(Debug)]
struct Entry<V> {
    as_of: AsOf,
    /// When the value is over by the clock alone.
    until: Option<Timestamp>,
    value: V,
}

/// The state of the markets that a value was read in, noted before reading; or that it must have been read in, which is
/// the last change of what it tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsOf {
    /// The store's version of the markets.
    pub version: u64,
    /// When.
    pub at: Timestamp,
}

impl AsOf {
    /// For values that may be shown whatever has changed since: their age alone counts.
    pub const fn age_alone(at: Timestamp) -> Self {
        Self { version: 0, at }
    }

    /// When what was read then is too old, whatever has happened meanwhile.
    pub const fn too_old_at(self) -> Timestamp {
        self.at.plus_ms(KEEP_MS)
    }

    /// Whether what was read at `self` can stand for what would be read at `now`.
    fn is_fresh(self, now: Self) -> bool {
        self.version >= now.version && (0..KEEP_MS).contains(&now.at.since_ms(self.at))
    }
}

impl<V> Entry<V> {
    fn is_fresh(&self, now: AsOf) -> bool {
        self.as_of.is_fresh(now) && self.until.is_none_or(|until| now.at < until)
    }
}

impl<K: Hash + Eq, V: Clone> Fresh<K, V> {
    /// Keeps at most that many values.
    pub fn at_most(most: usize) -> Self {
        Self { entries: Mutex::default(), most }
    }

    /// The value, where it is still fresh.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q, now: AsOf) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let entries = self.entries.lock();
        entries.get(key).filter(|entry| entry.is_fresh(now)).map(|entry| entry.value.clone())
    }

    /// Keeps a value that was read after `as_of` was noted, and that is over at `until` whatever happens.
    pub fn put(&self, key: K, as_of: AsOf, until: Option<Timestamp>, value: V) {
        let mut entries = self.entries.lock();
        if entries.len() >= self.most && !entries.contains_key(&key) {
            entries.retain(|_, entry| entry.is_fresh(as_of));
            if entries.len() >= self.most {
                entries.clear();
            }
        }
        entries.insert(key, Entry { as_of, until, value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_of(version: u64, ms: i64) -> AsOf {
        AsOf { version, at: Timestamp::from_ms(ms) }
    }

    #[test]
    fn a_value_is_given_until_the_markets_change_or_a_quarter_of_a_second_has_passed() {
        let fresh = Fresh::at_most(4);
        fresh.put("a", as_of(1, 1_000), None, 7);
        assert_eq!(fresh.get("a", as_of(1, 1_249)), Some(7));
        assert_eq!(fresh.get("a", as_of(1, 1_250)), None);
        assert_eq!(fresh.get("a", as_of(2, 1_000)), None);
        assert_eq!(fresh.get("b", as_of(1, 1_000)), None);
    }

    #[test]
    fn a_value_that_is_over_by_the_clock_alone_is_not_given_from_then_on() {
        let fresh = Fresh::at_most(4);
        fresh.put("a", as_of(1, 1_000), Some(Timestamp::from_ms(1_010)), 7);
        assert_eq!(fresh.get("a", as_of(1, 1_009)), Some(7));
        assert_eq!(fresh.get("a", as_of(1, 1_010)), None);
    }

    #[test]
    fn a_clock_that_was_set_back_keeps_nothing_alive() {
        let fresh = Fresh::at_most(4);
        fresh.put("a", as_of(1, 1_000), None, 7);
        assert_eq!(fresh.get("a", as_of(1, 999)), None);
    }

    #[test]
    fn no_more_values_are_kept_than_asked_for() {
        let fresh = Fresh::at_most(4);
        for n in 0..100 {
            fresh.put(n, as_of(1, n), None, n);
            assert!(fresh.entries.lock().len() <= 4);
            assert_eq!(fresh.get(&n, as_of(1, n)), Some(n));
        }
    }
}
