//! An administrative action before it is logged. Units of work collect such actions.

use serde::Serialize;
use serde_json::Value as Json;

/// The person or program that acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The name given by the operator, by default the user of the operating system.
    pub name: String,
    /// The user of the operating system.
    pub os_user: String,
    /// The machine's host name.
    pub host: String,
}

/// The progress of an action. An action within one transaction is always `Done`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The action is about to be tried.
    Begun,
    Done,
    /// It failed, or its outcome is unknown.
    Failed,
    /// It was printed, to be sent from a wallet.
    Printed,
}

impl Phase {
    /// The phase as the log spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Printed => "printed",
        }
    }
}

/// An administrative action to be logged.
#[derive(Debug, Clone)]
pub struct Act {
    pub(crate) action: &'static str,
    pub(crate) subject: String,
    pub(crate) phase: Phase,
    pub(crate) before: Option<Json>,
    pub(crate) after: Option<Json>,
}

impl Act {
    /// Creates an action such as `key.revoke` on a subject such as `key:018f...`.
    pub fn new(action: &'static str, subject: impl Into<String>) -> Self {
        Self { action, subject: subject.into(), phase: Phase::Done, before: None, after: None }
    }

    /// Adds the state before the action. It must not contain secrets.
    #[must_use]
    pub fn before(mut self, state: impl Serialize) -> Self {
        self.before = serde_json::to_value(state).ok();
        self
    }

    /// Adds the state after the action. It must not contain secrets.
    #[must_use]
    pub fn after(mut self, state: impl Serialize) -> Self {
        self.after = serde_json::to_value(state).ok();
        self
    }

    #[must_use]
    pub const fn in_phase(mut self, phase: Phase) -> Self {
        self.phase = phase;
        self
    }
}
