//! What became of an attempt, as it was heard. What it means is for the rules of webhooks to say.

use domain::Timestamp;
use domain::webhook;
pub use domain::webhook::NetworkFault;

/// One attempt to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// How it ended.
    pub outcome: Outcome,
    /// From the call to the end, in milliseconds.
    pub duration_ms: i64,
    /// How the answer's body begins, for the endpoint's owner to read: at most 1 KiB, without control characters.
    pub answer_head: Option<String>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// With an answer, whatever it says.
    Answered {
        /// Its status.
        status: u16,
        /// Its `Retry-After`, as it was written.
        retry_after: Option<String>,
    },
    /// Without a whole answer in time.
    TimedOut,
    /// Without an answer.
    Unreachable(NetworkFault),
    /// Before anything was sent: the target, or an address of its name, may not be called.
    TargetRefused,
}

impl Outcome {
    /// What the outcome is for the rules of deliveries, heard at `now`.
    pub fn at(&self, now: Timestamp) -> webhook::Outcome {
        match self {
            Self::Answered { status, retry_after } => {
                let retry_after_ms =
                    retry_after.as_deref().and_then(|text| webhook::retry_after_ms(text, now));
                webhook::Outcome::Answered { status: *status, retry_after_ms }
            }
            Self::TimedOut => webhook::Outcome::TimedOut,
            Self::Unreachable(fault) => webhook::Outcome::Unreachable(*fault),
            Self::TargetRefused => webhook::Outcome::TargetRefused,
        }
    }
}
