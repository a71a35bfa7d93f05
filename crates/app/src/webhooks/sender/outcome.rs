//! The observable outcome of an attempt. [`domain::webhook`] decides what follows from it.

use domain::Timestamp;
use domain::webhook;
pub use domain::webhook::NetworkFault;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub outcome: PostOutcome,
    /// Total duration in milliseconds.
    pub duration_ms: i64,
    /// The beginning of the response body, for the endpoint's owner: at most 1 KiB, without control
    /// characters.
    pub answer_head: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PostOutcome {
    /// The receiver responded, with any status.
    Answered {
        status: u16,
        /// The `Retry-After` header, unparsed.
        retry_after: Option<String>,
    },
    /// No complete response before the deadline.
    TimedOut,
    /// No response, because of a network fault.
    Unreachable(NetworkFault),
    /// Nothing was sent: the policy forbids the target or an address of its name.
    TargetRefused,
}

impl PostOutcome {
    /// Converts the outcome for the delivery rules. `now` is the time of the response.
    pub fn at(&self, now: Timestamp) -> webhook::AttemptOutcome {
        match self {
            Self::Answered { status, retry_after } => {
                let retry_after_ms =
                    retry_after.as_deref().and_then(|text| webhook::retry_after_ms(text, now));
                webhook::AttemptOutcome::Answered { status: *status, retry_after_ms }
            }
            Self::TimedOut => webhook::AttemptOutcome::TimedOut,
            Self::Unreachable(fault) => webhook::AttemptOutcome::Unreachable(*fault),
            Self::TargetRefused => webhook::AttemptOutcome::TargetRefused,
        }
    }
}
