//! What became of an attempt.

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

/// Where the way to the receiver broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkFault {
    /// The name has no address, or no name server said so.
    Dns,
    /// No address took the connection.
    Connect,
    /// The receiver's certificate does not hold, or TLS cannot be spoken with it.
    Tls,
    /// The connection ended before the answer, or what came over it is not HTTP.
    Cut,
}
