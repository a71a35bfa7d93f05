//! The authenticated caller of a use case.

use std::sync::Arc;

use domain::ErrorCode;
use domain::ids::UserId;
use domain::key::{KeyLimits, Scope};
use store::keys::Key;

use crate::AppError;

#[derive(Debug, Clone)]
pub struct Caller {
    /// The key of the request.
    pub key: Arc<Key>,
}

impl Caller {
    pub fn user_id(&self) -> UserId {
        self.key.user_id
    }

    pub fn limits(&self) -> KeyLimits {
        self.key.limits()
    }

    /// Checks that the key has `scope`.
    pub fn require(&self, scope: Scope) -> Result<(), AppError> {
        if self.key.scopes.contains(scope) {
            return Ok(());
        }
        let detail = format!("This key lacks the scope {}, which this route requires.", scope.as_str());
        let refusal = AppError::new(ErrorCode::InsufficientScope).of_key(self.key.id).detail(detail);
        Err(refusal.with("requiredScope", scope.as_str()))
    }
}
