//! Webhooks: a queue per key, the hold of a sender on it, and the delivery record of each event.
//!
//! The dispatcher writes queues and endpoints, and HTTP handlers read them. One sender at a time
//! holds a key's queue, under an epoch that each of its writes checks. If a sender dies, the head
//! stays in the queue: after the hold has expired, another sender posts the same event again.

mod archive;
mod delivery;
mod endpoint;
mod queue;
mod secret;

pub use archive::{archive_given_up, delete_tests};
pub use delivery::{
    Attempt, Delivery, DeliveryFilter, DeliveryStatus, Redelivered, UnknownDeliveryStatus, find, find_body,
    list, list_attempts, redeliver,
};
pub use endpoint::{Head, WebhookEndpoint, find_endpoint};
pub(crate) use queue::enqueue;
pub use queue::{
    AttemptResult, Finished, Job, QueueHold, Recorded, begin_anew, claim_due, count_due, count_open_breakers,
    end_hold, end_holds, find_due_at, find_job, find_oldest_due, finish, has_due, let_go, postpone,
};
pub use secret::{Secrets, find_secrets, lock_secrets, rotate};
