//! What is posted to keys' URLs: a queue for each key, whom it is held by, and what became of each event.
//!
//! The dispatcher writes the queue and the endpoint, the routes read them. One sender at a time holds a key's queue, by an
//! epoch that every write of its checks. A sender that dies leaves the head where it is: when its hold ends another posts
//! the same event again.

mod archive;
mod delivery;
mod endpoint;
mod queue;
mod secret;

pub use archive::archive_given_up;
pub use delivery::{
    Attempt, Delivery, DeliveryFilter, DeliveryStatus, Redelivered, UnknownDeliveryStatus, find, find_body,
    list, list_attempts, redeliver,
};
pub use endpoint::{Endpoint, Head, find_endpoint};
pub(crate) use queue::enqueue;
pub use queue::{
    Ending, Finished, Held, Job, begin_anew, claim_due, end_holds, find_job, find_oldest_due, finish,
    has_due, let_go, postpone,
};
pub use secret::{Secrets, find_secrets, lock_secrets, rotate};
