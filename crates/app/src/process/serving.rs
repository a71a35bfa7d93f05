//! Whether this process, compared with others on the same database and chain, can serve requests.
//! Faults of what all processes share do not count: a load balancer would remove all of them at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::Timestamp;
use parking_lot::Mutex;
use store::{PoolStatus, REPLICA_POOL};

/// The time without a successful checkout after which a pool counts as exhausted.
const EXHAUSTED_MS: i64 = 10_000;

#[derive(Debug, Default)]
pub struct Serving {
    has_old_schema: AtomicBool,
    pools: Mutex<HashMap<&'static str, Stalled>>,
}

/// The state of a pool at the first look at which callers waited and none had got a connection
/// since the look before.
#[derive(Debug, Clone, Copy)]
struct Stalled {
    checkouts: u64,
    since: Option<Timestamp>,
}

/// A reason for which this process must get no requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServingFault {
    /// The database lacks a migration that this program needs.
    OldSchema,
    /// No caller got a connection of this pool for ten seconds, and some wait.
    PoolExhausted(&'static str),
}

impl Serving {
    pub fn note_schema(&self, is_old: bool) {
        self.has_old_schema.store(is_old, Ordering::Relaxed);
    }

    /// Compares the pools with the last look. Call it about once a second.
    pub fn note_pools(&self, pools: &[PoolStatus], now: Timestamp) {
        let mut seen = self.pools.lock();
        // Without a replica, the primary answers.
        for pool in pools.iter().filter(|pool| pool.name != REPLICA_POOL) {
            let last = seen.get(pool.name).copied();
            // A busy pool always has waiting callers. It is exhausted only if they do not get on.
            let moves = last.is_none_or(|last| last.checkouts != pool.checkouts) || pool.idle > 0;
            let since = match last.and_then(|last| last.since) {
                _ if moves => None,
                None if pool.waiting > 0 => Some(now),
                since => since,
            };
            seen.insert(pool.name, Stalled { checkouts: pool.checkouts, since });
        }
    }

    pub fn faults(&self, now: Timestamp) -> Vec<ServingFault> {
        let schema = self.has_old_schema.load(Ordering::Relaxed).then_some(ServingFault::OldSchema);
        let pools = self.pools.lock();
        let is_exhausted =
            |pool: &Stalled| pool.since.is_some_and(|since| now.since_ms(since) >= EXHAUSTED_MS);
        let exhausted = pools.iter().filter(|(_, pool)| is_exhausted(pool));
        schema.into_iter().chain(exhausted.map(|(name, _)| ServingFault::PoolExhausted(name))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_777_464_000_000);

    fn pool(waiting: usize, checkouts: u64) -> PoolStatus {
        PoolStatus { name: "reads", busy: 6, idle: 0, waiting, checkouts }
    }

    fn faults_after(looks: impl Fn(i64) -> PoolStatus) -> Vec<ServingFault> {
        let serving = Serving::default();
        (0..=11).for_each(|s| serving.note_pools(&[looks(s)], NOW.plus_ms(s * 1_000)));
        serving.faults(NOW.plus_ms(11_000))
    }

    #[test]
    fn a_pool_is_exhausted_if_callers_wait_and_none_gets_a_connection_for_ten_seconds() {
        assert_eq!(faults_after(|_| pool(1, 9)), [ServingFault::PoolExhausted("reads")]);
        // Callers that gave up meanwhile do not end the exhaustion.
        assert_eq!(faults_after(|s| pool(usize::from(s == 1), 9)), [ServingFault::PoolExhausted("reads")]);
        assert_eq!(faults_after(|_| pool(0, 9)), []);
        assert_eq!(faults_after(|s| pool(1, u64::from(s > 5))), []);
        assert_eq!(faults_after(|_| PoolStatus { idle: 1, ..pool(1, 9) }), []);
        assert_eq!(faults_after(|_| PoolStatus { name: REPLICA_POOL, ..pool(1, 9) }), []);
    }

    #[test]
    fn a_busy_pool_is_not_exhausted() {
        assert_eq!(faults_after(|s| pool(50, s.unsigned_abs())), []);
    }

    #[test]
    fn an_old_schema_is_a_fault_until_it_is_migrated() {
        let serving = Serving::default();
        serving.note_schema(true);
        assert_eq!(serving.faults(NOW), [ServingFault::OldSchema]);
        serving.note_schema(false);
        assert_eq!(serving.faults(NOW), []);
    }
}
