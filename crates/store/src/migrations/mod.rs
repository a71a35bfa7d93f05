//! The migrations, in the order in which they are applied.

/// Each migration's name and text. A text that was released is never changed: a new one is added below it.
pub const MIGRATIONS: &[(&str, &str)] =
    &[("0001_core", include_str!("0001_core.sql")), ("0002_protocol", include_str!("0002_protocol.sql"))];
