//! The authenticated caller of a use case.

use std::net::IpAddr;
use std::sync::Arc;

use domain::ErrorCode;
use domain::ids::UserId;
use domain::key::{KeyLimits, Scope};
use store::keys::Key;

use crate::{AppError, Ctx, user_log};

#[derive(Debug, Clone)]
pub struct Caller {
    /// The key of the request.
    pub key: Arc<Key>,
    ip: IpAddr,
    uses_agent_tools: bool,
}

impl Caller {
    pub const fn new(key: Arc<Key>, ip: IpAddr) -> Self {
        Self { key, ip, uses_agent_tools: false }
    }

    /// The address of the request.
    pub const fn ip(&self) -> IpAddr {
        self.ip
    }

    /// The same caller, who sent the request through the tools for agents.
    #[must_use]
    pub fn through_agent_tools(self) -> Self {
        Self { uses_agent_tools: true, ..self }
    }

    /// Returns whether a model may have chosen the request: it came through the tools for agents,
    /// or its key is an agent's.
    pub fn is_agent(&self) -> bool {
        self.uses_agent_tools || self.key.is_agent
    }

    pub fn user_id(&self) -> UserId {
        self.key.user_id
    }

    pub fn limits(&self) -> KeyLimits {
        self.key.limits()
    }

    /// Returns the context in which the key's holder changes the key: the user's log names the key.
    pub(crate) fn acting(&self, ctx: &Ctx) -> Ctx {
        let store = user_log::acting(ctx, self.user_id(), self.ip, Some(self.key.id));
        Ctx { store, ..ctx.clone() }
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
