//! A bound on the writes of one user that run at once, if the database needs it.
//!
//! Writes of one user wait for each other's rows. On PostgreSQL each that waits holds a connection, so without a bound the
//! requests of one user could take all of them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use domain::ids::UserId;
use parking_lot::Mutex;
use store::{BoxFuture, StoreError, Tx};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Ctx;

/// How long a write waits for the user's earlier ones.
const WAIT: Duration = Duration::from_secs(2);
/// Above this number of users, those without a running write are removed.
const MANY: usize = 1_024;

/// The running writes of each user.
#[derive(Debug, Default)]
pub struct UserUnits(Mutex<HashMap<UserId, Weak<Semaphore>>>);

impl UserUnits {
    /// Waits until fewer than `limit` of the user's writes are running; `None` if that takes too long.
    async fn begin(&self, user_id: UserId, limit: usize) -> Option<OwnedSemaphorePermit> {
        let running = self.of(user_id, limit);
        // The semaphore is never closed.
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

impl Ctx {
    /// Runs a write that locks rows of `user_id`; see [`store::Store::write`].
    ///
    /// # Errors
    /// As the store's, and `Unavailable` if the user's earlier writes keep this one waiting for too long.
    pub async fn write_of_user<I, T, E>(
        &self,
        user_id: UserId,
        input: I,
        unit: impl for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static,
    ) -> Result<T, E>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let Some(limit) = self.store.units_per_user() else { return self.store.write(input, unit).await };
        let Some(permit) = self.user_units.begin(user_id, limit).await else {
            let why = "the user's earlier writes are still waiting";
            return Err(E::from(StoreError::Unavailable(why.to_owned())));
        };
        // With the input, so that the permit lasts as long as the unit, also if the caller is dropped.
        self.store.write((permit, input), move |tx, (_, input)| unit(tx, input)).await
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
    async fn a_users_writes_above_the_limit_wait_for_a_bounded_time_and_other_users_do_not() {
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
