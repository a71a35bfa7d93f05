//! The log of this process, on standard error.

mod throttle;

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use throttle::{Causes, Throttled};

/// The time between two looks for repeated lines that are due.
const REPEATS_PAUSE: Duration = Duration::from_secs(1);

/// Changes the log level of the running process.
#[derive(Debug, Clone)]
pub struct LogLevel {
    filter: Arc<reload::Handle<EnvFilter, Registry>>,
}

/// A text that is not a log level.
#[derive(Debug, thiserror::Error)]
pub enum LogLevelError {
    #[error(
        "the log level must be off, error, warn, info, debug or trace, or directives such as info,app::trades=debug"
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

/// Checks that a text is a log level.
pub fn check(text: &str) -> Result<(), LogLevelError> {
    parse(text).map(|_| ())
}

/// Parses directives. A word without `=` must be a level: the parser would take a mistyped level for
/// the name of a module, and log everything of it.
fn parse(text: &str) -> Result<EnvFilter, LogLevelError> {
    let is_known = |directive: &str| {
        let is_level = !directive.is_empty() && directive.parse::<LevelFilter>().is_ok();
        is_level || directive.contains('=')
    };
    let directives: Vec<_> = text.split(',').map(str::trim).collect();
    if !directives.iter().copied().all(is_known) {
        return Err(LogLevelError::Form);
    }
    EnvFilter::builder().parse(with_quiet_notices(&directives)).map_err(|_| LogLevelError::Form)
}

/// Libraries whose lines are no news for an operator: PostgreSQL's notices, which its driver logs as
/// `info`, the messages of agents, several lines each, with their mistakes as `warn`, and the
/// connections of NATS's client, which the event sink reports.
const QUIET: [(&str, &str); 3] = [("tokio_postgres", "warn"), ("rmcp", "error"), ("async_nats", "off")];

/// Adds directives that silence the quiet libraries below `debug`, unless `directives` name them.
fn with_quiet_notices(directives: &[&str]) -> String {
    let mut text = directives.join(",");
    if directives.iter().any(|word| matches!(*word, "debug" | "trace")) {
        return text;
    }
    for (library, level) in QUIET {
        if !text.contains(library) {
            text = format!("{library}={level},{text}");
        }
    }
    text
}

/// Starts logging to standard error: readable text on a terminal, JSON otherwise. `RUST_LOG`
/// overrides `level`. Must be called inside of the runtime.
pub fn start(level: &str) -> LogLevel {
    let filter = std::env::var("RUST_LOG").ok().and_then(|text| parse(&text).ok());
    let filter = filter.or_else(|| parse(level).ok()).unwrap_or_default();
    let (filter, handle) = reload::Layer::new(filter);
    let causes = Arc::<Causes>::default();
    let is_terminal = std::io::stderr().is_terminal();
    let text = is_terminal.then(|| {
        let format = Throttled::new(fmt::format(), Arc::clone(&causes));
        fmt::layer().event_format(format).with_writer(std::io::stderr)
    });
    let json = (!is_terminal).then(|| {
        let format = Throttled::new(fmt::format().json(), Arc::clone(&causes));
        fmt::layer().event_format(format).fmt_fields(JsonFields::new()).with_writer(std::io::stderr)
    });
    // Logging can only be initialized once per process. Tests start it several times, which is
    // harmless.
    if tracing_subscriber::registry().with(filter).with(text).with(json).try_init().is_ok() {
        tokio::spawn(print_repeats(causes));
    }
    crate::panics::log();
    LogLevel { filter: Arc::new(handle) }
}

/// Prints how often lines were repeated, until the process ends.
async fn print_repeats(causes: Arc<Causes>) {
    let mut looks = tokio::time::interval(REPEATS_PAUSE);
    loop {
        looks.tick().await;
        for line in causes.take_due(std::time::Instant::now()) {
            eprint!("{line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_level_is_a_level_or_directives() {
        for good in ["info", "WARN", "off", "info,app::trades=debug", "warn, http_kit=trace"] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in ["", "inf", "info,", "app::trades", "app=loud"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn notices_of_the_database_are_logged_from_debug_on() {
        let of = |text| parse(text).unwrap().to_string();
        assert!(
            of("info").contains("tokio_postgres=warn")
                && of("info,app=debug").contains("tokio_postgres=warn")
        );
        assert!(of("info").contains("rmcp=error") && of("info,rmcp=info").contains("rmcp=info"));
        assert!(!of("debug").contains("tokio_postgres") && !of("debug").contains("rmcp"));
        assert!(of("info,tokio_postgres=trace").contains("tokio_postgres=trace"));
    }
}
