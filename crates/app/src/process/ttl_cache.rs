//! A cache of recently read market data.

use std::hash::Hash;

use domain::Timestamp;
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Equivalent, OptionsBuilder, Weighter};

/// The maximum age of an entry, and so the time that another process's changes may go unnoticed.
const KEEP_MS: i64 = 250;
/// An estimate for the cache's layout. It does not limit the content.
const TYPICAL_VALUE_BYTES: usize = 4_096;
/// The number of separately locked parts. A value larger than a part is not cached.
const SHARDS: usize = 4;
/// The approximate overhead per entry.
const ENTRY_BYTES: usize = 128;

/// The memory size of a cached key or value.
pub trait Weigh {
    /// The approximate number of bytes.
    fn weight_bytes(&self) -> usize;
}

impl Weigh for std::sync::Arc<str> {
    fn weight_bytes(&self) -> usize {
        self.len()
    }
}

/// Values computed from markets. An entry is valid until this process changes one of its markets,
/// or for a quarter of a second.
///
/// So each process reads its own writes exactly, while writes of other processes show with a delay
/// of up to a quarter of a second. The total size is limited.
#[derive(Debug)]
pub struct TtlCache<K, V>(Cache<K, Entry<V>, WeighEntry>);

#[derive(Debug, Clone)]
struct Entry<V> {
    as_of: MarketsVersion,
    /// The time at which the value ends regardless of changes.
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

/// A state of the markets: the state that a value was read in (taken before the read), or the state
/// that it must at least reflect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarketsVersion {
    /// The store's version of the markets.
    pub version: u64,
    pub at: Timestamp,
}

impl MarketsVersion {
    /// For values that may be shown despite later changes. Only their age counts.
    pub const fn age_alone(at: Timestamp) -> Self {
        Self { version: 0, at }
    }

    /// Returns the time after which a value read in this state is too old.
    pub const fn too_old_at(self) -> Timestamp {
        self.at.plus_ms(KEEP_MS)
    }

    /// Returns whether a value read at `self` may be used in place of one read at `now`.
    fn is_fresh(self, now: Self) -> bool {
        // The range also rejects entries from the future, after the clock went back.
        self.version >= now.version && (0..KEEP_MS).contains(&now.at.since_ms(self.at))
    }
}

impl<V> Entry<V> {
    fn is_fresh(&self, now: MarketsVersion) -> bool {
        self.as_of.is_fresh(now) && self.until.is_none_or(|until| now.at < until)
    }
}

impl<K: Hash + Eq + Weigh, V: Clone + Weigh> TtlCache<K, V> {
    /// Creates a cache of at most `bytes` bytes.
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

    /// Returns the value if it is still valid.
    pub fn get<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q, now: MarketsVersion) -> Option<V> {
        self.0.get(key).filter(|entry| entry.is_fresh(now)).map(|entry| entry.value)
    }

    /// Adds a value. `as_of` must be taken before the value was read. The value expires at `until`
    /// in any case.
    pub fn put(&self, key: K, as_of: MarketsVersion, until: Option<Timestamp>, value: V) {
        self.0.insert(key, Entry { as_of, until, value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Large = Large(1);

    /// A value with a given size.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    struct Large(usize);

    impl Weigh for Large {
        fn weight_bytes(&self) -> usize {
            self.0
        }
    }

    fn as_of(version: u64, ms: i64) -> MarketsVersion {
        MarketsVersion { version, at: Timestamp::from_ms(ms) }
    }

    #[test]
    fn a_value_expires_on_a_market_change_or_after_250_ms() {
        let cache = TtlCache::within_bytes(65_536);
        cache.put(KEY, as_of(1, 1_000), None, Large(7));
        assert_eq!(cache.get(&KEY, as_of(1, 1_249)), Some(Large(7)));
        assert_eq!(cache.get(&KEY, as_of(1, 1_250)), None);
        assert_eq!(cache.get(&KEY, as_of(2, 1_000)), None);
        assert_eq!(cache.get(&Large(2), as_of(1, 1_000)), None);
    }

    #[test]
    fn a_value_with_an_end_expires_at_that_instant() {
        let cache = TtlCache::within_bytes(65_536);
        cache.put(KEY, as_of(1, 1_000), Some(Timestamp::from_ms(1_010)), Large(7));
        assert_eq!(cache.get(&KEY, as_of(1, 1_009)), Some(Large(7)));
        assert_eq!(cache.get(&KEY, as_of(1, 1_010)), None);
    }

    #[test]
    fn a_clock_set_back_does_not_prolong_a_value() {
        let cache = TtlCache::within_bytes(65_536);
        cache.put(KEY, as_of(1, 1_000), None, Large(7));
        assert_eq!(cache.get(&KEY, as_of(1, 999)), None);
    }

    #[test]
    fn large_values_evict_others_to_stay_within_the_byte_limit() {
        const BYTES: usize = 1 << 20;
        let cache = TtlCache::within_bytes(BYTES);
        for n in 0..1_000 {
            cache.put(Large(n), as_of(1, 1_000), None, Large(10_000));
            assert!(cache.0.weight() <= BYTES as u64, "{} bytes after {n}", cache.0.weight());
        }
        assert!(cache.0.len() > 50, "{} values of 10 kB are kept in 1 MiB", cache.0.len());
        assert!(cache.get(&Large(999), as_of(1, 1_000)).is_some(), "the newest value is kept");
        cache.put(Large(0), as_of(1, 1_000), None, Large(BYTES));
        assert!(cache.0.weight() <= BYTES as u64, "a value that is too large is not kept");
    }
}
