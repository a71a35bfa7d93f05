//! The error type of all use cases. It has a public part for the response and a private part for
//! the log.

mod person;
pub(crate) mod revert;

pub use person::{AccountChoice, PersonError};

use chain::{ChainError, SignerError};
use domain::ErrorCode;
use domain::ids::{KeyId, TradeId};
use domain::limits::SpendRefusal;
use domain::trade::{FieldError, RequestRefusal};
use serde_json::{Map, Value};
use store::StoreError;

/// The submission status of the trade that an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submission {
    /// Not submitted.
    NotSubmitted,
    /// Submitted, or will be without further action by the client.
    Submitted,
    /// Unknown: the client must look up the trade.
    Unknown,
}

impl Submission {
    /// The value of `extensions.submission`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotSubmitted => "not_submitted",
            Self::Submitted => "submitted",
            Self::Unknown => "unknown",
        }
    }
}

/// A state that does not allow an act, such as "the market is OPEN". It is the source of the act's
/// [`AppError`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidState(pub String);

#[derive(Debug)]
pub struct AppError {
    pub code: ErrorCode,
    /// The error and its remedy. Public.
    pub detail: String,
    /// Additional data for programs. Public.
    pub extensions: Map<String, Value>,
    /// Seconds to wait before the next attempt.
    pub retry_after_s: Option<u32>,
    /// The key that failed to authenticate, if known. Private: only counted and audited.
    pub key_id: Option<KeyId>,
    /// The cause. Only logged.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl AppError {
    /// Creates an error with the code's default detail.
    pub fn new(code: ErrorCode) -> Self {
        Self {
            code,
            detail: code.default_detail().to_owned(),
            extensions: Map::new(),
            retry_after_s: None,
            key_id: None,
            source: None,
        }
    }

    /// An internal error with its cause, which is logged and never returned.
    pub fn internal(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::new(ErrorCode::InternalError).caused_by(source)
    }

    /// The error of an act that a state does not allow.
    pub fn invalid_state(code: ErrorCode, state: impl Into<String>) -> Self {
        let state = state.into();
        let mut letters = state.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let detail = first.into_iter().chain(letters).chain(['.']).collect::<String>();
        Self::new(code).detail(detail).caused_by(InvalidState(state))
    }

    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Adds a member to `extensions`.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.extensions.insert(name.to_owned(), value.into());
        self
    }

    #[must_use]
    pub fn submission(self, submission: Submission) -> Self {
        self.with("submission", submission.as_str())
    }

    /// Marks an error of a request that is a single transaction. If the database was unavailable,
    /// nothing was written, unless the commit's result is unknown.
    #[must_use]
    pub fn of_one_unit(self) -> Self {
        let is_told = self.extensions.contains_key("submission");
        if is_told || self.code != ErrorCode::DependencyUnavailable {
            return self;
        }
        self.submission(Submission::NotSubmitted)
    }

    /// Adds the id of the trade that the error is about.
    #[must_use]
    pub fn trade(self, id: TradeId) -> Self {
        self.with("tradeId", id.to_string())
    }

    #[must_use]
    pub const fn retry_after_s(mut self, seconds: u32) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// Marks a failed authentication with a known key.
    #[must_use]
    pub const fn of_key(mut self, id: KeyId) -> Self {
        self.key_id = Some(id);
        self
    }

    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Creates an error for invalid fields.
    pub fn validation(errors: &[FieldError]) -> Self {
        let errors = serde_json::to_value(errors).unwrap_or_default();
        Self::new(ErrorCode::ValidationFailed).with("errors", errors)
    }

    /// Creates an error for one invalid field.
    pub fn field(pointer: &str, detail: &str) -> Self {
        Self::validation(&[FieldError::new(pointer, detail)])
    }

    /// Creates an error for one field with the rejected value.
    pub fn wrong_value(pointer: &str, requirement: &str, got: &str) -> Self {
        Self::validation(&[FieldError::new(pointer, requirement).got(got)])
    }
}

impl std::fmt::Display for AppError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

impl std::error::Error for AppError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as &(dyn std::error::Error + 'static))
    }
}

impl From<StoreError> for AppError {
    fn from(error: StoreError) -> Self {
        if error == StoreError::Nul {
            // The readers of requests reject such texts with their place. This is for what got past.
            let detail = "A text of the request must not contain NUL characters.";
            return Self::new(ErrorCode::ValidationFailed).detail(detail).caused_by(error);
        }
        if !error.is_unavailable() {
            return Self::internal(error);
        }
        let refusal = Self::new(ErrorCode::DependencyUnavailable).retry_after_s(1);
        let refusal = match error {
            StoreError::CommitUnknown(_) => refusal.submission(Submission::Unknown),
            _ => refusal,
        };
        refusal.caused_by(error)
    }
}

impl From<ChainError> for AppError {
    fn from(error: ChainError) -> Self {
        revert::to_app_error(error)
    }
}

impl From<SignerError> for AppError {
    fn from(error: SignerError) -> Self {
        match error {
            SignerError::Chain(error) => error.into(),
            error => Self::new(ErrorCode::DependencyUnavailable).detail(error.to_string()).caused_by(error),
        }
    }
}

impl From<SpendRefusal> for AppError {
    fn from(refusal: SpendRefusal) -> Self {
        Self::new(ErrorCode::SpendingLimitExceeded).with("cap", refusal.cap())
    }
}

impl From<RequestRefusal> for AppError {
    fn from(refusal: RequestRefusal) -> Self {
        match refusal {
            RequestRefusal::Fields(errors) => Self::validation(&errors),
            RequestRefusal::AmountTooLarge => Self::new(ErrorCode::AmountTooLarge),
        }
    }
}
