//! Serializes requests with the same idempotency key: a retry waits for the first request instead
//! of repeating its work.
//!
//! This only covers one process. Across processes, the key's row in the database decides which
//! request creates the trade.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use domain::ids::UserId;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

/// The longest time that a request waits for its turn.
const WAIT: Duration = Duration::from_secs(2);
/// The map size from which unused entries are removed on insert.
const MANY: usize = 1_024;

type Key = (UserId, String);

/// The lock of each idempotency key that is in use.
#[derive(Debug, Default)]
// The map holds weak references: an entry is unused once no request holds or awaits its lock.
pub struct IdempotencyLocks(Mutex<HashMap<Key, Weak<tokio::sync::Mutex<()>>>>);

/// The right to handle a request with a key, until it is dropped.
pub type IdempotencyLock = OwnedMutexGuard<()>;

impl IdempotencyLocks {
    /// Waits for the turn of a user's key. `None` if the request before is still running after two
    /// seconds.
    pub async fn take(&self, user_id: UserId, key: &str) -> Option<IdempotencyLock> {
        let turn = self.of((user_id, key.to_owned()));
        tokio::time::timeout(WAIT, turn.lock_owned()).await.ok()
    }

    fn of(&self, key: Key) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.0.lock();
        if let Some(turn) = turns.get(&key).and_then(Weak::upgrade) {
            return turn;
        }
        if turns.len() >= MANY {
            turns.retain(|_, turn| turn.strong_count() > 0);
        }
        let turn = Arc::default();
        turns.insert(key, Arc::downgrade(&turn));
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const ADA: UserId = UserId(Uuid::from_u128(1));
    const BOB: UserId = UserId(Uuid::from_u128(2));

    #[tokio::test]
    async fn requests_under_one_key_of_a_user_run_one_after_another() {
        let turns = IdempotencyLocks::default();
        let first = turns.take(ADA, "k").await.unwrap();
        assert!(turns.take(ADA, "other").await.is_some());
        assert!(turns.take(BOB, "k").await.is_some());
        drop(first);
        assert!(turns.take(ADA, "k").await.is_some());
    }

    #[tokio::test]
    async fn released_keys_are_removed() {
        let turns = IdempotencyLocks::default();
        for number in 0..3 * MANY {
            turns.take(ADA, &number.to_string()).await.unwrap();
        }
        assert!(turns.0.lock().len() <= MANY);
    }
}
