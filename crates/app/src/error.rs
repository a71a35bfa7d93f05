//! What a use case refuses with: a public half that becomes the answer, and a private half for the log.

use chain::ChainError;
use domain::ErrorCode;
use domain::ids::{KeyId, TradeId};
use domain::limits::SpendRefusal;
use domain::trade::{FieldError, RequestRefusal};
use serde_json::{Map, Value};
use store::StoreError;

/// Whether the chain may see the trade that a refusal speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submission {
    /// Nothing was sent.
    NotSubmitted,
    /// It was sent, or will be without anybody doing more for it.
    Submitted,
    /// Whether it was stored and will be sent is not known: look it up.
    Unknown,
}

impl Submission {
    /// The word of `extensions.submission`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotSubmitted => "not_submitted",
            Self::Submitted => "submitted",
            Self::Unknown => "unknown",
        }
    }
}

/// A refusal.
#[derive(Debug)]
pub struct AppError {
    /// The code of the catalogue.
    pub code: ErrorCode,
    /// What happened and what to do. Public.
    pub detail: String,
    /// More for programs. Public.
    pub extensions: Map<String, Value>,
    /// Seconds after which another try makes sense.
    pub retry_after_s: Option<u32>,
    /// The key that it is about, where it is known. Private: it is counted and audited, never told.
    pub key_id: Option<KeyId>,
    /// The cause, for the log alone.
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl AppError {
    /// A refusal with the code's own words.
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

    /// With words of its own.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// With one more member of `extensions`.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.extensions.insert(name.to_owned(), value.into());
        self
    }

    /// With what is known of the trade's way to the chain.
    #[must_use]
    pub fn submission(self, submission: Submission) -> Self {
        self.with("submission", submission.as_str())
    }

    /// As the refusal of a request that is one unit of work: without the database nothing was kept, unless the answer
    /// to the commit was lost.
    #[must_use]
    pub fn of_one_unit(self) -> Self {
        let is_told = self.extensions.contains_key("submission");
        if is_told || self.code != ErrorCode::DependencyUnavailable {
            return self;
        }
        self.submission(Submission::NotSubmitted)
    }

    /// With the trade that it speaks of.
    #[must_use]
    pub fn trade(self, id: TradeId) -> Self {
        self.with("tradeId", id.to_string())
    }

    /// With the time after which another try makes sense.
    #[must_use]
    pub const fn retry_after_s(mut self, seconds: u32) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// As a failed authentication of a key that is known.
    #[must_use]
    pub const fn of_key(mut self, id: KeyId) -> Self {
        self.key_id = Some(id);
        self
    }

    /// With its cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Fields that do not have the documented form.
    pub fn validation(errors: &[FieldError]) -> Self {
        let errors = serde_json::to_value(errors).unwrap_or_default();
        Self::new(ErrorCode::ValidationFailed).with("errors", errors)
    }

    /// One field that does not have the documented form.
    pub fn field(pointer: &str, detail: &str) -> Self {
        Self::validation(&[FieldError::new(pointer, detail)])
    }

    /// One field whose value does not meet a requirement.
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
        if !error.is_unavailable() {
            return Self::new(ErrorCode::InternalError).caused_by(error);
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
        crate::chain_errors::to_app_error(error)
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
