//! Turns of requests with one idempotency key: a repetition waits for the first instead of doing its work beside it.
//!
//! This holds within a process. Over several, the key's row in the database decides which request makes the trade.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use domain::ids::UserId;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

/// How long a repetition waits for its turn.
const WAIT: Duration = Duration::from_secs(2);
/// From how many keys on those that nobody holds any more are cleared away.
const MANY: usize = 1_024;

type Key = (UserId, String);

/// Whose turn it is with each key.
#[derive(Debug, Default)]
pub struct Turns(Mutex<HashMap<Key, Weak<tokio::sync::Mutex<()>>>>);

/// The right to judge a request; it ends when this is dropped.
pub type Turn = OwnedMutexGuard<()>;

impl Turns {
    /// Waits for the turn with a user's key; `None` where the one before is still running after two seconds.
    pub async fn take(&self, user_id: UserId, key: &str) -> Option<Turn> {
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
    async fn a_key_is_one_users_and_its_turns_follow_each_other() {
        let turns = Turns::default();
        let first = turns.take(ADA, "k").await.unwrap();
        assert!(turns.take(ADA, "other").await.is_some());
        assert!(turns.take(BOB, "k").await.is_some());
        drop(first);
        assert!(turns.take(ADA, "k").await.is_some());
    }

    #[tokio::test]
    async fn keys_that_nobody_holds_are_cleared_away() {
        let turns = Turns::default();
        for number in 0..3 * MANY {
            turns.take(ADA, &number.to_string()).await.unwrap();
        }
        assert!(turns.0.lock().len() <= MANY);
    }
}
