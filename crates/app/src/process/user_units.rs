//! Limits the concurrent writes of one user.
//!
//! Writes of one user wait for each other's row locks. On PostgreSQL each waiting write holds a
//! connection. Without a limit, one user's requests could take all connections.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use domain::ids::UserId;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The longest time that a write waits for the user's earlier ones.
const WAIT: Duration = Duration::from_secs(2);
/// The map size above which users without a running write are removed.
const MANY: usize = 1_024;

#[derive(Debug, Default)]
pub struct UserUnits(Mutex<HashMap<UserId, Weak<Semaphore>>>);

impl UserUnits {
    /// Waits until fewer than `limit` writes of the user are running. `None` if that takes longer
    /// than [`WAIT`].
    pub(crate) async fn begin(&self, user_id: UserId, limit: usize) -> Option<OwnedSemaphorePermit> {
        let running = self.of(user_id, limit);
        // The semaphore is never closed, so the inner error cannot occur.
        tokio::time::timeout(WAIT, running.acquire_owned()).await.ok()?.ok()
    }

    fn of(&self, user_id: UserId, limit: usize) -> Arc<Semaphore> {
        let mut users = self.0.lock();
        if let Some(running) = users.get(&user_id).and_then(Weak::upgrade) {
            return running;
        }
        if users.len() >= MANY {
            users.retain(|_, running| running.strong_count() > 0);
        }
        let running = Arc::new(Semaphore::new(limit));
        users.insert(user_id, Arc::downgrade(&running));
        running
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn user(number: usize) -> UserId {
        UserId(Uuid::from_u128(number as u128))
    }

    #[tokio::test(start_paused = true)]
    async fn writes_above_the_limit_delay_only_their_user() {
        let units = UserUnits::default();
        let first = units.begin(user(1), 2).await.unwrap();
        let _second = units.begin(user(1), 2).await.unwrap();
        assert!(units.begin(user(1), 2).await.is_none());
        assert!(units.begin(user(2), 2).await.is_some());
        drop(first);
        assert!(units.begin(user(1), 2).await.is_some());
    }

    #[tokio::test]
    async fn users_without_a_running_write_are_removed() {
        let units = UserUnits::default();
        for number in 0..3 * MANY {
            drop(units.begin(user(number), 1).await);
        }
        assert!(units.0.lock().len() <= MANY);
    }
}
