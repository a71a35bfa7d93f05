//! The roles of a process: the parts of the service that it runs, and the secrets that they need.

use std::collections::BTreeSet;
use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A part of the service that a process can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessRole {
    /// The public listener: the APIs and the web application.
    Api,
    /// The lanes, which sign transactions and send them.
    Executor,
    /// Reading of the chain's events.
    Sync,
    /// Deliveries of webhooks.
    Dispatcher,
    /// Comparison with the chain, recovery, payouts, expiries and cleaning.
    Upkeep,
}

impl ProcessRole {
    const ALL: [Self; 5] = [Self::Api, Self::Executor, Self::Sync, Self::Dispatcher, Self::Upkeep];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Executor => "executor",
            Self::Sync => "sync",
            Self::Dispatcher => "dispatcher",
            Self::Upkeep => "upkeep",
        }
    }
}

/// A secret of the secrets file that roles need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretName {
    KeyPepper,
    SealingKey,
    CursorKey,
    Executors,
}

impl SecretName {
    const ALL: [Self; 4] = [Self::KeyPepper, Self::SealingKey, Self::CursorKey, Self::Executors];

    /// Returns the name in the secrets file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::KeyPepper => "keyPepper",
            Self::SealingKey => "sealingKey",
            Self::CursorKey => "cursorKey",
            Self::Executors => "executors",
        }
    }

    /// Returns the roles that need the secret.
    pub const fn roles(self) -> &'static [ProcessRole] {
        match self {
            // API keys are authenticated, cursors are given out, and confirmation tokens are made.
            Self::KeyPepper | Self::CursorKey => &[ProcessRole::Api],
            // The API seals the webhook secrets of new keys, the dispatcher signs with them.
            Self::SealingKey => &[ProcessRole::Api, ProcessRole::Dispatcher],
            Self::Executors => &[ProcessRole::Executor],
        }
    }
}

/// The setting names no role.
#[derive(Debug, thiserror::Error)]
#[error("roles must name at least one of {}", ProcessRoles::default())]
pub struct NoRole;

/// The roles of one process, at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessRoles(BTreeSet<ProcessRole>);

impl Default for ProcessRoles {
    /// All roles.
    fn default() -> Self {
        Self(ProcessRole::ALL.into_iter().collect())
    }
}

impl fmt::Display for ProcessRoles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(", "))
    }
}

impl ProcessRoles {
    /// Returns the roles of the setting, which are all if it is absent.
    pub fn new(given: Option<Vec<ProcessRole>>) -> Result<Self, NoRole> {
        match given {
            None => Ok(Self::default()),
            Some(roles) if roles.is_empty() => Err(NoRole),
            Some(roles) => Ok(Self(roles.into_iter().collect())),
        }
    }

    pub fn has(&self, role: ProcessRole) -> bool {
        self.0.contains(&role)
    }

    pub fn are_all(&self) -> bool {
        self.0.len() == ProcessRole::ALL.len()
    }

    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|role| role.as_str()).collect()
    }

    /// Returns whether one of the roles needs the secret.
    pub fn need(&self, secret: SecretName) -> bool {
        secret.roles().iter().any(|role| self.has(*role))
    }

    /// Returns the secrets that the roles need.
    pub fn secrets(&self) -> Vec<SecretName> {
        SecretName::ALL.into_iter().filter(|secret| self.need(*secret)).collect()
    }

    /// Returns the secrets that none of the roles needs.
    pub fn other_secrets(&self) -> Vec<SecretName> {
        SecretName::ALL.into_iter().filter(|secret| !self.need(*secret)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(roles: &[ProcessRole]) -> Vec<&'static str> {
        let roles = ProcessRoles::new(Some(roles.to_vec())).unwrap();
        roles.secrets().into_iter().map(SecretName::as_str).collect()
    }

    #[test]
    fn each_role_needs_only_its_own_secrets() {
        assert_eq!(secrets(&[ProcessRole::Api]), ["keyPepper", "sealingKey", "cursorKey"]);
        assert_eq!(secrets(&[ProcessRole::Executor]), ["executors"]);
        assert_eq!(secrets(&[ProcessRole::Dispatcher]), ["sealingKey"]);
        assert_eq!(secrets(&[ProcessRole::Sync, ProcessRole::Upkeep]), [""; 0]);
        assert_eq!(secrets(&ProcessRole::ALL), ["keyPepper", "sealingKey", "cursorKey", "executors"]);
    }

    #[test]
    fn without_a_setting_a_process_has_all_roles() {
        let all = ProcessRoles::new(None).unwrap();
        assert!(all.are_all() && all == ProcessRoles::new(Some(ProcessRole::ALL.to_vec())).unwrap());
        assert_eq!(all.to_string(), "api, executor, sync, dispatcher, upkeep");
        let none = ProcessRoles::new(Some(Vec::new())).unwrap_err().to_string();
        assert_eq!(none, "roles must name at least one of api, executor, sync, dispatcher, upkeep");
    }
}
