//! The audit log's actor for commands and for the service itself.

use store::audit_log::Actor;

/// Actor name for actions that the service takes on its own.
const SERVICE: &str = "foretell serve";

/// Returns the operating system's user and host under the given name, or under the user's name if
/// there is none.
pub fn named(name: Option<&str>) -> Actor {
    let unknown = |_| "unknown".to_owned();
    let os_user = whoami::username().unwrap_or_else(unknown);
    let host = whoami::hostname().unwrap_or_else(unknown);
    let name = name.map(str::trim).filter(|name| !name.is_empty()).unwrap_or(&os_user).to_owned();
    Actor { name, os_user, host }
}

/// Returns the actor for actions of the service itself.
pub fn service() -> Actor {
    named(Some(SERVICE))
}
