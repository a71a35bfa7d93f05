//! Webhooks: what is posted to the receiver of a key's events, how it is signed, when, and what follows from its answers.
//!
//! A delivery's life is a loop of three questions. The [`Breaker`] of the endpoint says whether anything may be sent at all;
//! the attempt ends in an [`Outcome`]; [`judge`] says what follows from it. All three are functions of what was and of now.

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

pub use breaker::{Admission, Breaker, ParseBreakerError, due};
pub use outcome::{Class, NetworkFault, Outcome};
pub use retry::{MAX_ATTEMPTS, Standing, Verdict, judge};
pub use retry_after::retry_after_ms;
pub use rotation::{
    COOLDOWN_MS, Cause, Cooldown, OVERLAP_MS, may_rotate, previous_expires_at, signing_secrets,
};
pub use secret::{ParseSecretError, WebhookSecret};
pub use signing::{Delivery, StandardHeaders, verify, verify_standard};
pub use status::{DeliveryStatus, MAX_REPLAYS, UnknownDeliveryStatus};
