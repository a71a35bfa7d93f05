//! The actor of a command or of the service itself, as the audit log names it.

use store::audit_log::Actor;

/// The name of what the service does by itself.
const SERVICE: &str = "foretell serve";

/// The user of the operating system and the machine, under the name that was given, or the user's own.
pub fn named(name: Option<&str>) -> Actor {
    let unknown = |_| "unknown".to_owned();
    let os_user = whoami::username().unwrap_or_else(unknown);
    let host = whoami::hostname().unwrap_or_else(unknown);
    let name = name.map(str::trim).filter(|name| !name.is_empty()).unwrap_or(&os_user).to_owned();
    Actor { name, os_user, host }
}

/// The service itself.
pub fn service() -> Actor {
    named(Some(SERVICE))
}
