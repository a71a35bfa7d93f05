//! Webhooks: target URLs, signatures, and the schedule of deliveries.
//!
//! A delivery repeats three steps. The [`Breaker`] of the endpoint decides whether an attempt may
//! be made. The attempt ends with an [`AttemptOutcome`]. [`decide_retry`] decides what follows from it. All
//! are pure functions of the stored state and the current time.

mod breaker;
mod outcome;
mod retry;
mod retry_after;
mod rotation;
mod secret;
mod signing;
#[cfg(test)]
mod simulation;
mod status;
pub mod target;

pub use breaker::{Admission, Breaker, ParseBreakerError, due};
pub use outcome::{AttemptOutcome, Class, NetworkFault};
pub use retry::{DeliveryProgress, MAX_ATTEMPTS, RetryDecision, decide_retry};
pub use retry_after::retry_after_ms;
pub use rotation::{
    COOLDOWN_MS, Cause, Cooldown, OVERLAP_MS, may_rotate, previous_expires_at, signing_secrets,
};
pub use secret::{ParseSecretError, WebhookSecret};
pub use signing::{Delivery, StandardHeaders, verify, verify_standard};
pub use status::{DeliveryStatus, MAX_REPLAYS, UnknownDeliveryStatus};
