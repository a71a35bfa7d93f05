//! The log of this process, on standard error.

use std::io::IsTerminal;
use std::sync::Arc;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

/// Changes the log level of the running process.
#[derive(Debug, Clone)]
pub struct LogLevel {
    filter: Arc<reload::Handle<EnvFilter, Registry>>,
}

/// A text that is not a log level.
#[derive(Debug, thiserror::Error)]
pub enum LogLevelError {
    #[error(
        "the log level must be error, warn, info, debug or trace, or directives such as info,app::trades=debug"
    )]
    Form,
    #[error("the log cannot be changed: another part of this process has started it")]
    NotStarted,
}

impl LogLevel {
    /// Sets the level: `error` to `trace`, or directives such as `info,app::trades=debug`.
    pub fn set(&self, text: &str) -> Result<(), LogLevelError> {
        let filter = parse(text)?;
        self.filter.reload(filter).map_err(|_| LogLevelError::NotStarted)
    }
}

/// Parses directives. A word without `=` must be a level: the parser would take a mistyped level for
/// the name of a module, and log everything of it.
fn parse(text: &str) -> Result<EnvFilter, LogLevelError> {
    let is_known = |directive: &str| {
        let is_level = !directive.is_empty() && directive.parse::<LevelFilter>().is_ok();
        is_level || directive.contains('=')
    };
    if !text.split(',').map(str::trim).all(is_known) {
        return Err(LogLevelError::Form);
    }
    EnvFilter::builder().parse(text).map_err(|_| LogLevelError::Form)
}

/// Starts logging to standard error: readable text on a terminal, JSON otherwise. `RUST_LOG`
/// overrides the filter.
pub fn start(default: &str) -> LogLevel {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let (filter, handle) = reload::Layer::new(filter);
    let is_terminal = std::io::stderr().is_terminal();
    let text = is_terminal.then(|| fmt::layer().with_writer(std::io::stderr));
    let json = (!is_terminal).then(|| fmt::layer().json().with_writer(std::io::stderr));
    // Logging can only be initialized once per process. Tests start it several times, which is
    // harmless.
    drop(tracing_subscriber::registry().with(filter).with(text).with(json).try_init());
    crate::panics::log();
    LogLevel { filter: Arc::new(handle) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_level_is_a_level_or_directives() {
        for good in ["info", "WARN", "info,app::trades=debug", "warn, http_kit=trace"] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in ["", "inf", "info,", "app::trades", "app=loud"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
