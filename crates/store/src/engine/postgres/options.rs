//! The service's own options in a PostgreSQL URL. The driver rejects options that it does not know,
//! so they are removed before the driver reads the URL.

use std::time::Duration;

use crate::StoreError;

/// The default number of connections of one process.
const MAX_CONNECTIONS: usize = 24;
/// One connection each for request reads, request writes and workers.
const LEAST_CONNECTIONS: usize = 3;
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const IDLE_IN_TRANSACTION_TIMEOUT: Duration = Duration::from_secs(10);

/// The options from a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Options {
    /// The maximum number of connections of this process. Migrations and administration may open a
    /// few more.
    pub(super) max_connections: usize,
    pub(super) timeouts: Timeouts,
}

/// Timeouts that the server enforces on a session. Zero means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timeouts {
    /// The maximum duration of a statement.
    pub(super) statement: Duration,
    /// The maximum time that a statement waits for a lock.
    pub(super) lock: Duration,
    /// The maximum time that a transaction waits for the next statement. It ends transactions of a
    /// process that is frozen in the middle of one.
    pub(super) idle_in_transaction: Duration,
}

impl Default for Options {
    fn default() -> Self {
        let timeouts = Timeouts {
            statement: STATEMENT_TIMEOUT,
            lock: LOCK_TIMEOUT,
            idle_in_transaction: IDLE_IN_TRANSACTION_TIMEOUT,
        };
        Self { max_connections: MAX_CONNECTIONS, timeouts }
    }
}

/// Splits a URL into the part for the driver and the service's options.
pub(crate) fn split(url: &str) -> Result<(String, Options), StoreError> {
    let mut options = Options::default();
    let Some((base, query)) = url.split_once('?') else { return Ok((url.to_owned(), options)) };
    let mut rest = Vec::new();
    for option in query.split('&') {
        if !options.set(option)? {
            rest.push(option);
        }
    }
    let rest = rest.join("&");
    Ok((if rest.is_empty() { base.to_owned() } else { format!("{base}?{rest}") }, options))
}

impl Options {
    /// Sets the option `name=value` if it is one of the service's. Returns false otherwise.
    fn set(&mut self, option: &str) -> Result<bool, StoreError> {
        let Some((name, value)) = option.split_once('=') else { return Ok(false) };
        let Timeouts { statement, lock, idle_in_transaction } = &mut self.timeouts;
        let timeout = match name {
            "max_connections" => {
                let number = value.parse().ok().filter(|number| *number >= LEAST_CONNECTIONS);
                self.max_connections = number.ok_or_else(|| {
                    StoreError::driver(format!("max_connections must be a number from {LEAST_CONNECTIONS}"))
                })?;
                return Ok(true);
            }
            "statement_timeout_ms" => statement,
            "lock_timeout_ms" => lock,
            "idle_in_transaction_timeout_ms" => idle_in_transaction,
            _ => return Ok(false),
        };
        let ms: Option<u32> = value.parse().ok();
        // PostgreSQL stores timeouts as signed 32-bit integers.
        let ms = ms.filter(|ms| i32::try_from(*ms).is_ok());
        let text = || format!("{name} must be a number of milliseconds, or 0 for no limit");
        *timeout = Duration::from_millis(ms.ok_or_else(|| StoreError::driver(text()))?.into());
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_options_are_removed_from_the_url() {
        for (url, rest, max_connections) in [
            ("postgres://h/d", "postgres://h/d", 24),
            ("postgres://h/d?max_connections=3", "postgres://h/d", 3),
            ("postgres://h/d?a=b&max_connections=4&c=d", "postgres://h/d?a=b&c=d", 4),
        ] {
            let expected = Options { max_connections, ..Options::default() };
            assert_eq!(split(url), Ok((rest.to_owned(), expected)));
        }
    }

    #[test]
    fn each_timeout_can_be_set_in_milliseconds() {
        let url = "postgres://h/d?statement_timeout_ms=1&lock_timeout_ms=0&idle_in_transaction_timeout_ms=3";
        let (rest, options) = split(url).unwrap();
        assert_eq!(rest, "postgres://h/d");
        let Timeouts { statement, lock, idle_in_transaction } = options.timeouts;
        assert_eq!([statement, lock, idle_in_transaction].map(|timeout| timeout.as_millis()), [1, 0, 3]);
    }

    #[test]
    fn an_option_that_cannot_be_used_is_an_error() {
        for option in
            ["max_connections=2", "max_connections=many", "statement_timeout_ms=10s", "lock_timeout_ms=-1"]
        {
            let refused = split(&format!("postgres://h/d?{option}")).unwrap_err().to_string();
            assert!(refused.contains(option.split('=').next().unwrap()), "{refused}");
        }
    }
}
