use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::response::ResponseInfo;
use crate::types::Submission;

/// The kind of an error. It follows from the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorFamily {
    /// 401 and 403: the key is missing, wrong, revoked, paused, or lacks a scope.
    Authentication,
    /// 429: too many requests.
    RateLimited,
    /// 409: the request conflicts with the state of the account, the market or another trade.
    Conflict,
    /// Any other 4xx: the request is wrong, or there is no such resource.
    Refused,
    /// No usable answer: 3xx, 5xx, a failed connection, or an answer that cannot be read.
    Unavailable,
}

impl ErrorFamily {
    /// Returns the family of a status. Pass `None` if there was no answer.
    #[must_use]
    pub const fn of_status(status: Option<u16>) -> Self {
        match status {
            Some(401 | 403) => Self::Authentication,
            Some(429) => Self::RateLimited,
            Some(409) => Self::Conflict,
            Some(400..=499) => Self::Refused,
            _ => Self::Unavailable,
        }
    }
}

/// An error of the API or of the connection to it. Branch on the family and on `code`.
#[derive(Clone)]
pub struct Error(Box<ErrorDetails>);

/// The members of an [`Error`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ErrorDetails {
    /// The stable code. New codes can be added: treat an unknown one like its family.
    pub code: String,
    /// The status of HTTP. `None` if there was no answer.
    pub status: Option<u16>,
    /// A description for people.
    pub message: String,
    /// The id of the request. Quote it when you report a problem.
    pub request_id: Option<String>,
    /// The address of the page about the code.
    pub doc_url: Option<String>,
    /// Only for writes: if anything was stored or sent.
    pub submission: Option<Submission>,
    /// The time after which the service asks to try again.
    pub retry_after: Option<Duration>,
    /// Further members of the problem, such as `errors`, `tradeId`, `cap` or `limiter`.
    pub extensions: Map<String, Value>,
    /// The circumstances of the response, if there was one.
    pub response: Option<ResponseInfo>,
}

impl Error {
    pub(crate) fn new(code: impl Into<String>, status: Option<u16>, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorDetails {
            code: code.into(),
            status,
            message: message.into(),
            request_id: None,
            doc_url: None,
            submission: None,
            retry_after: None,
            extensions: Map::new(),
            response: None,
        }))
    }

    /// An answer with a success status that cannot be used.
    pub(crate) fn unreadable(status: u16, message: impl Into<String>) -> Self {
        Self::new("UNREADABLE_ANSWER", Some(status), message)
    }

    /// A connection that failed, or an answer that broke off.
    pub(crate) fn connection_failed(reason: &str) -> Self {
        Self::new("CONNECTION_FAILED", None, format!("the connection failed: {reason}"))
    }

    /// The family of the error.
    #[must_use]
    pub fn family(&self) -> ErrorFamily {
        // An answer that cannot be read has a status of success.
        ErrorFamily::of_status(self.status)
    }

    /// The trade that the error is about, if there is one.
    #[must_use]
    pub fn trade_id(&self) -> Option<&str> {
        self.extensions.get("tradeId")?.as_str()
    }

    /// Returns true if no answer of the service arrived.
    pub(crate) fn has_no_answer(&self) -> bool {
        self.status.is_none() || self.code == "UNREADABLE_ANSWER"
    }

    /// Returns true if the request may have been stored.
    pub(crate) fn may_be_stored(&self) -> bool {
        self.may_be_lost() || self.submission == Some(Submission::Unknown)
    }

    /// Returns true if the service may have stored the request, and its answer was lost.
    pub(crate) fn may_be_lost(&self) -> bool {
        self.has_no_answer() || self.status == Some(502)
    }

    /// Returns true if the first attempt with this name is still running.
    pub(crate) fn is_in_progress(&self) -> bool {
        self.code == "IDEMPOTENCY_KEY_CONFLICT"
            && self.extensions.get("reason").is_some_and(|reason| reason == "in_progress")
    }
}

impl Deref for Error {
    type Target = ErrorDetails;

    fn deref(&self) -> &ErrorDetails {
        &self.0
    }
}

impl DerefMut for Error {
    fn deref_mut(&mut self) -> &mut ErrorDetails {
        &mut self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

/// One line, because `main` prints the error that it returns in this form.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.family())?;
        if let Some(submission) = &self.submission {
            write!(f, ", {submission}")?;
        }
        self.request_id.iter().try_for_each(|id| write!(f, ", request {id}"))
    }
}

impl std::error::Error for Error {}
