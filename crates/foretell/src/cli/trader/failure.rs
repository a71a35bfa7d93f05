//! The errors of traders' commands, and their exit codes.

use foretell_client::types::{Submission, Trade};
use foretell_client::{Error, ErrorFamily};
use serde_json::{Value, json};

/// The failure of a command.
#[derive(Debug, thiserror::Error)]
pub enum TraderError {
    /// The key or the address is missing or malformed.
    #[error("{0}")]
    Setup(String),
    /// An argument does not fit the market.
    #[error("{0}")]
    Argument(String),
    /// The user did not agree.
    #[error("{0}")]
    Unconfirmed(String),
    #[error("{0}")]
    Api(Error),
    /// The trade may exist.
    #[error("{error}: the trade may exist. Find out with the same command and --name {name}")]
    Unknown { error: Error, name: String },
    /// The trade exists, and its result is not known.
    #[error("{error}: the trade was made. Wait for it with the same command and --name {name}")]
    Unfollowed { error: Error, name: String },
    /// The claim was made, and has not ended in time.
    #[error("the claim {0} has not ended yet: look for it in `foretell positions` later")]
    Unpaid(String),
    /// The trade or the claim ended without its effect.
    #[error("{what} {id} is {status}: {reason}")]
    NotExecuted { what: &'static str, id: String, status: String, reason: String },
    /// Nobody reads the output.
    #[error("the output was closed")]
    OutputClosed,
    #[error("the output cannot be written: {0}")]
    Output(std::io::Error),
}

impl From<Error> for TraderError {
    fn from(error: Error) -> Self {
        Self::Api(error)
    }
}

impl From<std::io::Error> for TraderError {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe { Self::OutputClosed } else { Self::Output(error) }
    }
}

impl TraderError {
    /// Converts the error of a create with this name.
    pub fn of_create(error: Error, name: &str) -> Self {
        let is_unknown = error.submission == Some(Submission::Unknown);
        if is_unknown { Self::Unknown { error, name: name.to_owned() } } else { Self::Api(error) }
    }

    /// The error of a trade that ended without being executed.
    pub fn not_executed(trade: &Trade) -> Self {
        let reason = [&trade.error_code, &trade.error_message].into_iter().flatten();
        Self::NotExecuted {
            what: "trade",
            id: trade.id.clone(),
            status: trade.status.to_string(),
            reason: reason.cloned().collect::<Vec<_>>().join(": "),
        }
    }

    /// Returns the exit code. Code 2 is that of arguments that cannot be parsed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Setup(_) | Self::Output(_) | Self::OutputClosed => 1,
            Self::Argument(_) => 2,
            Self::Unconfirmed(_) => 4,
            Self::Api(error) => match error.family() {
                ErrorFamily::Authentication => 10,
                ErrorFamily::RateLimited => 11,
                ErrorFamily::Conflict => 12,
                ErrorFamily::Refused => 13,
                ErrorFamily::Unavailable => 14,
            },
            Self::NotExecuted { .. } => 15,
            Self::Unknown { .. } | Self::Unfollowed { .. } | Self::Unpaid(_) => 16,
        }
    }

    /// Returns the error for programs.
    pub fn to_json(&self) -> Value {
        let mut error = match self {
            Self::Api(error) | Self::Unknown { error, .. } | Self::Unfollowed { error, .. } => json!({
                "code": error.code,
                "message": error.message,
                "status": error.status,
                "requestId": error.request_id,
                "docUrl": error.doc_url,
                "submission": error.submission,
                "retryAfterMs": error.retry_after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
                "extensions": error.extensions,
            }),
            other => json!({ "code": other.code(), "message": other.to_string() }),
        };
        if let Self::Unknown { name, .. } | Self::Unfollowed { name, .. } = self {
            error["name"] = name.as_str().into();
        }
        json!({ "error": error })
    }

    const fn code(&self) -> &'static str {
        match self {
            Self::Setup(_) => "CONFIGURATION",
            Self::Argument(_) => "ARGUMENT",
            Self::Unconfirmed(_) => "NOT_CONFIRMED",
            Self::NotExecuted { .. } => "NOT_EXECUTED",
            Self::Unpaid(_) => "NOT_ENDED",
            _ => "COMMAND",
        }
    }
}
