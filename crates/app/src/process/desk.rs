//! The queues of requests whose trades are created in groups: see the desk in `trades`.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::Usdc;
use domain::ids::UserId;
use domain::key::KeyLimits;
use parking_lot::Mutex;
use store::StoreError;
use store::trades::Creation;
use tokio::sync::oneshot;

use crate::AppError;

/// The number of queues, each with its own connection.
const QUEUES: usize = 3;
/// The maximum number of requests in one transaction.
const GROUP: usize = 64;
/// The maximum time in a queue, as long as a request may wait for a connection. Without it, the queues
/// would grow while the database fails.
const PATIENCE: Duration = Duration::from_secs(3);

/// A request whose own checks have passed. What remains depends on rows that other requests change.
#[derive(Debug)]
pub(crate) struct Submitted {
    pub creation: Creation,
    /// The caps of the key.
    pub limits: KeyLimits,
    /// The account's funds, including the amount that open trades have reserved.
    pub spendable: Usdc,
}

/// The reason why nothing was created.
#[derive(Debug)]
pub(crate) enum Refused {
    Because(AppError),
    /// Another request with the same idempotency key or `clientRequestId` was faster.
    Raced,
    /// A block was settled between reading the balance and writing the trade.
    Settled,
    /// Another request with the same key has not committed yet.
    InProgress,
    /// The commit's result is unknown: the trade may have been created.
    Lost(StoreError),
}

impl From<AppError> for Refused {
    fn from(error: AppError) -> Self {
        Self::Because(error)
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::CommitUnknown(_) => Self::Lost(error),
            _ => Self::Because(error.into()),
        }
    }
}

/// A request in a queue of the desk.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub submitted: Submitted,
    /// The time at which it joined the queue.
    pub since: Instant,
    /// Gets the outcome. If the client has disconnected, it is dropped.
    pub reply: oneshot::Sender<Result<(), Refused>>,
}

/// The queues of one process.
#[derive(Debug, Default)]
pub struct Desk {
    queues: [Arc<Queue>; QUEUES],
    hasher: RandomState,
}

impl Desk {
    /// Returns the queue of a user, which is always the same.
    pub(crate) fn queue_of(&self, user_id: UserId) -> &Arc<Queue> {
        let hash = self.hasher.hash_one(user_id);
        &self.queues[(hash % QUEUES as u64) as usize]
    }
}

/// Requests that wait for the task of their queue.
#[derive(Debug, Default)]
pub(crate) struct Queue(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Waiting>,
    /// Whether a task serves the queue.
    is_served: bool,
}

impl Queue {
    /// Adds a request. Returns whether the caller must start the task that serves the queue.
    pub(crate) fn push(&self, waiting: Waiting) -> bool {
        let mut state = self.0.lock();
        state.waiting.push_back(waiting);
        !std::mem::replace(&mut state.is_served, true)
    }

    /// Takes the next group, and rejects the requests that have waited too long. `None` if the queue is
    /// empty: the task must end.
    ///
    /// A request whose idempotency key is already in the group stays at the head of the queue, with
    /// those after it.
    pub(crate) fn take(&self, now: Instant) -> Option<Vec<Waiting>> {
        let mut state = self.0.lock();
        let late = count_late(state.waiting.iter().map(|waiting| waiting.since), now);
        for Waiting { reply, .. } in state.waiting.drain(..late) {
            let error = StoreError::Unavailable("the queue of trades is too long".to_owned());
            let _ = reply.send(Err(error.into()));
        }
        let count = group_size(state.waiting.iter().map(key_of));
        if count == 0 {
            state.is_served = false;
            return None;
        }
        Some(state.waiting.drain(..count).collect())
    }
}

/// Marks a queue as not served if its task panics, so that the next request starts another one. The
/// requests in the queue are dropped, because they would wait for that request.
#[derive(Debug)]
pub(crate) struct Served(pub Arc<Queue>);

impl Drop for Served {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.0.0.lock() = State::default();
        }
    }
}

/// Returns how many of the requests that have joined the queue at these times, in order, have waited
/// too long.
fn count_late(since: impl Iterator<Item = Instant>, now: Instant) -> usize {
    since.take_while(|since| now.saturating_duration_since(*since) > PATIENCE).count()
}

fn key_of(waiting: &Waiting) -> Option<(UserId, &str)> {
    let creation = &waiting.submitted.creation;
    Some((creation.trade.user_id, creation.idempotency.as_ref()?.key.as_str()))
}

/// Returns the number of requests that form the next group. Their keys are all different.
fn group_size<K: Eq + Hash>(keys: impl Iterator<Item = Option<K>>) -> usize {
    let mut seen = HashSet::new();
    let mut is_new = |key: Option<K>| key.is_none_or(|key| seen.insert(key));
    keys.take(GROUP).map_while(|key| is_new(key).then_some(())).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_bounded_and_has_no_key_twice() {
        let key = |key: &'static str| Some(key);
        for (keys, size) in [
            (vec![], 0),
            (vec![key("a")], 1),
            (vec![key("a"), key("b"), None, None], 4),
            (vec![key("a"), None, key("b"), key("a"), key("c")], 3),
            (vec![None; GROUP + 1], GROUP),
        ] {
            assert_eq!(group_size(keys.into_iter()), size);
        }
    }

    #[test]
    fn a_request_waits_for_three_seconds() {
        let now = Instant::now() + 2 * PATIENCE;
        let ago = |ms| now - Duration::from_millis(ms);
        for (waited, late) in
            [(vec![], 0), (vec![3_001, 3_001, 3_000, 0], 2), (vec![3_000, 1], 0), (vec![5_000], 1)]
        {
            assert_eq!(count_late(waited.into_iter().map(ago), now), late);
        }
    }
}
