//! What was read a moment ago and is still as good as new.

use std::hash::Hash;

use domain::Timestamp;
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Equivalent, OptionsBuilder, Weighter};

/// For how long another process's changes may go unnoticed.
const KEEP_MS: i64 = 250;
/// An estimate that only decides how the cache is laid out, not how much it holds.
const TYPICAL_VALUE_BYTES: usize = 4_096;
/// Parts that are locked one at a time. A value larger than a part is not kept.
const SHARDS: usize = 4;
/// About what an entry takes beside its key's and its value's own bytes.
const ENTRY_BYTES: usize = 128;

/// Bytes that a cached key or value holds in memory, about.
pub trait Weigh {
    /// That number.
    fn weight_bytes(&self) -> usize;
}

impl Weigh for std::sync::Arc<str> {
    fn weight_bytes(&self) -> usize {
        self.len()
    }
}

/// Values that were read of markets, each until this process changes a market that it tells of, or a quarter of a second
/// has passed. They take a bounded number of bytes, however many or large they are.
/// Reading one's own writes is exact by that; what other processes write shows a quarter of a second late.
#[derive(Debug)]
pub struct Fresh<K, V>(Cache<K, Entry<V>, WeighEntry>);

#[derive(Debug, Clone)]
struct Entry<V> {
    as_of: AsOf,
    /// When the value is over by the clock alone.
    until: Option<Timestamp>,
    value: V,
}

#[derive(Debug, Clone)]
struct WeighEntry;

impl<K: Weigh, V: Weigh> Weighter<K, Entry<V>> for WeighEntry {
    fn weight(&self, key: &K, entry: &Entry<V>) -> u64 {
        (ENTRY_BYTES + key.weight_bytes() + entry.value.weight_bytes()) as u64
    }
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

impl<K: Hash + Eq + Weigh, V: Clone + Weigh> Fresh<K, V> {
    /// Keeps values of at most that many bytes together.
    pub fn within_bytes(bytes: usize) -> Self {
        let options = OptionsBuilder::new()
            .shards(SHARDS)
            .estimated_items_capacity(bytes / TYPICAL_VALUE_BYTES)
            .weight_capacity(bytes as u64)
            .build();
        #[expect(clippy::expect_used, reason = "both required options are set above")]
        let options = options.expect("a complete set of options");
        Self(Cache::with_options(options, WeighEntry, DefaultHashBuilder::default(), Default::default()))
    }

    /// The value, if it is still fresh.
    pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q, now: AsOf) -> Option<V> {
        self.0.get(key).filter(|entry| entry.is_fresh(now)).map(|entry| entry.value)
    }

    /// Keeps a value that was read after `as_of` was noted, and that is over at `until` whatever happens.
    pub fn put(&self, key: K, as_of: AsOf, until: Option<Timestamp>, value: V) {
        self.0.insert(key, Entry { as_of, until, value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Large = Large(1);

    /// A value that says how large it is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    struct Large(usize);

    impl Weigh for Large {
        fn weight_bytes(&self) -> usize {
            self.0
        }
    }

    fn as_of(version: u64, ms: i64) -> AsOf {
        AsOf { version, at: Timestamp::from_ms(ms) }
    }

    #[test]
    fn a_value_is_given_until_the_markets_change_or_a_quarter_of_a_second_has_passed() {
        let fresh = Fresh::within_bytes(65_536);
        fresh.put(KEY, as_of(1, 1_000), None, Large(7));
        assert_eq!(fresh.get(&KEY, as_of(1, 1_249)), Some(Large(7)));
        assert_eq!(fresh.get(&KEY, as_of(1, 1_250)), None);
        assert_eq!(fresh.get(&KEY, as_of(2, 1_000)), None);
        assert_eq!(fresh.get(&Large(2), as_of(1, 1_000)), None);
    }

    #[test]
    fn a_value_that_is_over_by_the_clock_alone_is_not_given_from_then_on() {
        let fresh = Fresh::within_bytes(65_536);
        fresh.put(KEY, as_of(1, 1_000), Some(Timestamp::from_ms(1_010)), Large(7));
        assert_eq!(fresh.get(&KEY, as_of(1, 1_009)), Some(Large(7)));
        assert_eq!(fresh.get(&KEY, as_of(1, 1_010)), None);
    }

    #[test]
    fn a_clock_that_was_set_back_keeps_nothing_alive() {
        let fresh = Fresh::within_bytes(65_536);
        fresh.put(KEY, as_of(1, 1_000), None, Large(7));
        assert_eq!(fresh.get(&KEY, as_of(1, 999)), None);
    }

    #[test]
    fn large_values_push_out_others_so_that_all_together_stay_within_the_bytes() {
        const BYTES: usize = 1 << 20;
        let fresh = Fresh::within_bytes(BYTES);
        for n in 0..1_000 {
            fresh.put(Large(n), as_of(1, 1_000), None, Large(10_000));
            assert!(fresh.0.weight() <= BYTES as u64, "{} bytes after {n}", fresh.0.weight());
        }
        assert!(fresh.0.len() > 50, "{} values of 10 kB are kept in 1 MiB", fresh.0.len());
        assert!(fresh.get(&Large(999), as_of(1, 1_000)).is_some(), "the newest value is kept");
        fresh.put(Large(0), as_of(1, 1_000), None, Large(BYTES));
        assert!(fresh.0.weight() <= BYTES as u64, "a value that is too large is not kept");
    }
}
