//! Whether this process, compared with others on the same database and chain, can serve requests.
//!
//! Only faults count that a restart or the removal of this process would cure. Faults of what all
//! processes share are degradations: a load balancer would otherwise remove all processes at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};

use domain::Timestamp;
use parking_lot::Mutex;
use store::{PoolStatus, REPLICA_POOL};

/// The time without a successful checkout after which a pool counts as exhausted.
const EXHAUSTED_MS: i64 = 10_000;

#[derive(Debug, Default)]
pub struct Serving {
    is_draining: AtomicBool,
    has_old_schema: AtomicBool,
    /// Whether the database accepted a connection outside of the pools, when a pool was exhausted.
    is_database_reachable: AtomicBool,
    pools: Mutex<HashMap<&'static str, Stalled>>,
    /// The embedded storage that cannot be used, with the reason.
    storage: Mutex<BTreeMap<Storage, StorageFault>>,
}

#[derive(Debug)]
struct StorageFault {
    why: String,
    /// The file is damaged, so that a write that succeeds proves nothing.
    is_lasting: bool,
}

/// Storage that only this process uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Storage {
    /// The file of a SQLite database.
    Database,
    /// The file of the embedded chain.
    Chain,
}

impl Storage {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Chain => "chain",
        }
    }
}

/// The state of a pool at the first look at which callers waited and none had got a connection
/// since the look before.
#[derive(Debug, Clone, Copy)]
struct Stalled {
    checkouts: u64,
    since: Option<Timestamp>,
}

/// A reason for which this process must get no requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServingFault {
    /// The process stops, or was asked to.
    Draining,
    /// The database lacks a migration that this program needs.
    OldSchema,
    /// No caller got a connection of this pool for ten seconds, although the database accepts new
    /// connections.
    PoolExhausted(&'static str),
    /// This process's own storage cannot be used, for the given reason.
    Storage(Storage, String),
}

impl Serving {
    pub fn begin_drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    pub fn note_schema(&self, is_old: bool) {
        self.has_old_schema.store(is_old, Ordering::Relaxed);
    }

    /// Sets or clears the fault of the embedded storage. Logs only changes.
    pub fn note_storage(&self, storage: Storage, fault: Option<String>) {
        let mut known = self.storage.lock();
        if known.get(&storage).is_some_and(|known| known.is_lasting) {
            return;
        }
        let name = storage.as_str();
        match fault {
            Some(why) => {
                let fault = StorageFault { why: why.clone(), is_lasting: false };
                if known.insert(storage, fault).is_none() {
                    tracing::error!(storage = name, why, "this process is not ready: its storage failed");
                }
            }
            None => {
                if known.remove(&storage).is_some() {
                    tracing::info!(storage = name, "the storage works again");
                }
            }
        }
    }

    /// Sets the fault of storage that is damaged. It lasts until the process ends.
    pub fn note_damage(&self, storage: Storage, why: String) {
        tracing::error!(storage = storage.as_str(), why, "this process is not ready: its storage is damaged");
        self.storage.lock().insert(storage, StorageFault { why, is_lasting: true });
    }

    pub fn has_storage_fault(&self, storage: Storage) -> bool {
        self.storage.lock().contains_key(&storage)
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

    /// Returns the pools of which nobody has got a connection since somebody waited. The process must
    /// try them itself: an unready process gets no requests that would.
    pub fn stalled_pools(&self) -> Vec<&'static str> {
        let pools = self.pools.lock();
        pools.iter().filter(|(_, pool)| pool.since.is_some()).map(|(name, _)| *name).collect()
    }

    /// Notes whether the database accepts a connection outside of the pools. Without this, an outage
    /// of the database would be indistinguishable from a fault of the pools.
    pub fn note_database(&self, is_reachable: bool) {
        self.is_database_reachable.store(is_reachable, Ordering::Relaxed);
    }

    pub fn faults(&self, now: Timestamp) -> Vec<ServingFault> {
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        let draining = is_set(&self.is_draining).then_some(ServingFault::Draining);
        let schema = is_set(&self.has_old_schema).then_some(ServingFault::OldSchema);
        let pools = self.pools.lock();
        let is_exhausted = |pool: &Stalled| {
            is_set(&self.is_database_reachable)
                && pool.since.is_some_and(|since| now.since_ms(since) >= EXHAUSTED_MS)
        };
        let exhausted = pools.iter().filter(|(_, pool)| is_exhausted(pool));
        let exhausted = exhausted.map(|(name, _)| ServingFault::PoolExhausted(name));
        let storage = self.storage.lock();
        let storage = storage.iter().map(|(of, fault)| ServingFault::Storage(*of, fault.why.clone()));
        draining.into_iter().chain(schema).chain(exhausted).chain(storage).collect()
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
        serving.note_database(true);
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
    fn a_stalled_pool_is_no_fault_of_the_process_while_the_database_is_out_of_reach() {
        let serving = Serving::default();
        serving.note_pools(&[pool(0, 9)], NOW);
        serving.note_pools(&[pool(1, 9)], NOW);
        assert_eq!(serving.stalled_pools(), ["reads"]);
        let later = NOW.plus_ms(60_000);
        assert_eq!(serving.faults(later), [], "nothing is known of the database");
        serving.note_database(true);
        assert_eq!(serving.faults(later), [ServingFault::PoolExhausted("reads")]);
        serving.note_database(false);
        assert_eq!(serving.faults(later), []);
    }

    #[test]
    fn damaged_storage_is_a_fault_until_it_works_again() {
        let serving = Serving::default();
        serving.note_storage(Storage::Database, Some("the disk is full".to_owned()));
        let fault = ServingFault::Storage(Storage::Database, "the disk is full".to_owned());
        assert_eq!(serving.faults(NOW), [fault]);
        serving.note_storage(Storage::Database, None);
        assert_eq!(serving.faults(NOW), []);
        serving.note_damage(Storage::Chain, "a page is damaged".to_owned());
        serving.note_storage(Storage::Chain, None);
        let fault = ServingFault::Storage(Storage::Chain, "a page is damaged".to_owned());
        assert_eq!(serving.faults(NOW), [fault], "a write that succeeds repairs no page");
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
