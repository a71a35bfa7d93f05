//! The service's own options in a PostgreSQL URL. The driver rejects options that it does not know,
//! so they are removed before the driver reads the URL.

use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use super::tls::{Roots, SslMode, TlsOptions};
use crate::StoreError;

/// The default number of connections of one process.
const MAX_CONNECTIONS: usize = 24;
/// One connection each for request reads, request writes and workers.
const LEAST_CONNECTIONS: usize = 3;
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const IDLE_IN_TRANSACTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Below the age at which readers of public data notice.
const MAX_LAG: Duration = Duration::from_secs(5);
/// A replica is compared five times within this time.
const LEAST_MAX_LAG_MS: u32 = 500;

/// The options from a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    /// The maximum number of connections of this process. Migrations and administration may open a
    /// few more.
    pub(super) max_connections: usize,
    pub(super) timeouts: Timeouts,
    pub(super) statements: Statements,
    pub(super) tls: TlsOptions,
    /// The lag above which a replica is not used.
    pub(super) max_lag: Duration,
}

/// The way statements are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Statements {
    /// Prepared once for each session, under a name.
    #[default]
    Named,
    /// Sent whole each time, for a pooler that gives each transaction another session. Nothing is
    /// stored in a session, its settings neither.
    Unnamed,
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
        Self {
            max_connections: MAX_CONNECTIONS,
            timeouts,
            statements: Statements::default(),
            tls: TlsOptions::default(),
            max_lag: MAX_LAG,
        }
    }
}

/// Splits a URL into the part for the driver and the service's options.
pub(crate) fn split(url: &str) -> Result<(String, Options), StoreError> {
    let mut options = Options::default();
    let Some((base, query)) = url.split_once('?') else { return Ok((url.to_owned(), options)) };
    let mut rest = Vec::new();
    for option in query.split('&') {
        if !options.set(option)? {
            rest.push(for_driver(option));
        }
    }
    let rest = rest.join("&");
    Ok((if rest.is_empty() { base.to_owned() } else { format!("{base}?{rest}") }, options))
}

/// Translates the values of libpq that the driver knows only by another name.
fn for_driver(option: &str) -> &str {
    match option {
        "target_session_attrs=primary" => "target_session_attrs=read-write",
        "target_session_attrs=standby" => "target_session_attrs=read-only",
        other => other,
    }
}

impl Options {
    /// Sets the option `name=value` if it is one of the service's. Returns false otherwise.
    fn set(&mut self, option: &str) -> Result<bool, StoreError> {
        let Some((name, value)) = option.split_once('=') else { return Ok(false) };
        match name {
            "max_connections" => {
                let number = value.parse().ok().filter(|number| *number >= LEAST_CONNECTIONS);
                self.max_connections = number.ok_or_else(|| {
                    StoreError::driver(format!("max_connections must be a number from {LEAST_CONNECTIONS}"))
                })?;
            }
            "statement_timeout_ms" => self.timeouts.statement = timeout(name, value)?,
            "lock_timeout_ms" => self.timeouts.lock = timeout(name, value)?,
            "idle_in_transaction_timeout_ms" => self.timeouts.idle_in_transaction = timeout(name, value)?,
            "max_lag_ms" => {
                let ms = value.parse().ok().filter(|ms: &u32| *ms >= LEAST_MAX_LAG_MS);
                let ms = ms.ok_or_else(|| {
                    StoreError::driver(format!(
                        "max_lag_ms must be a number of milliseconds from {LEAST_MAX_LAG_MS}"
                    ))
                })?;
                self.max_lag = Duration::from_millis(ms.into());
            }
            "statements" => {
                self.statements = match value {
                    "named" => Statements::Named,
                    "unnamed" => Statements::Unnamed,
                    _ => return Err(StoreError::driver("statements must be named or unnamed")),
                }
            }
            "sslmode" => self.tls.mode = Some(SslMode::parse(value)?),
            "sslrootcert" => {
                let path = path(name, value)?;
                self.tls.roots =
                    Some(if path.as_os_str() == "system" { Roots::System } else { Roots::File(path) });
            }
            "sslcert" => self.tls.certificate = Some(path(name, value)?),
            "sslkey" => self.tls.key = Some(path(name, value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn timeout(name: &str, value: &str) -> Result<Duration, StoreError> {
    let ms: Option<u32> = value.parse().ok();
    // PostgreSQL stores timeouts as signed 32-bit integers.
    let ms = ms.filter(|ms| i32::try_from(*ms).is_ok());
    let text = || format!("{name} must be a number of milliseconds, or 0 for no limit");
    Ok(Duration::from_millis(ms.ok_or_else(|| StoreError::driver(text()))?.into()))
}

fn path(name: &str, value: &str) -> Result<PathBuf, StoreError> {
    let text = percent_decode_str(value).decode_utf8().ok().filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| StoreError::driver(format!("{name} must be the path of a file")))?;
    Ok(PathBuf::from(text.as_ref()))
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
    fn the_lag_of_a_replica_is_limited_to_five_seconds_unless_the_url_says_otherwise() {
        for (url, expected) in [("postgres://h/d", 5_000), ("postgres://h/d?max_lag_ms=500", 500)] {
            let (rest, options) = split(url).unwrap();
            assert_eq!((rest.as_str(), options.max_lag.as_millis()), ("postgres://h/d", expected));
        }
    }

    #[test]
    fn statements_are_named_unless_the_url_says_otherwise() {
        for (url, expected) in [
            ("postgres://h/d", Statements::Named),
            ("postgres://h/d?statements=named", Statements::Named),
            ("postgres://h/d?statements=unnamed", Statements::Unnamed),
        ] {
            let (rest, options) = split(url).unwrap();
            assert_eq!((rest.as_str(), options.statements), ("postgres://h/d", expected));
        }
    }

    #[test]
    fn the_tls_options_of_libpq_are_understood() {
        let url = "postgres://a,b/d?sslmode=verify-ca&sslrootcert=/etc/ca%20of%20us.pem&sslcert=c.pem&sslkey=k.pem\
                   &target_session_attrs=primary";
        let (rest, options) = split(url).unwrap();
        assert_eq!(rest, "postgres://a,b/d?target_session_attrs=read-write");
        let expected = TlsOptions {
            mode: Some(SslMode::VerifyCa),
            roots: Some(Roots::File("/etc/ca of us.pem".into())),
            certificate: Some("c.pem".into()),
            key: Some("k.pem".into()),
        };
        assert_eq!(options.tls, expected);
        let (_, options) = split("postgres://h/d?sslrootcert=system").unwrap();
        assert_eq!(options.tls.roots, Some(Roots::System));
    }

    #[test]
    fn an_option_that_cannot_be_used_is_an_error() {
        for option in [
            "max_connections=2",
            "max_connections=many",
            "statement_timeout_ms=10s",
            "lock_timeout_ms=-1",
            "max_lag_ms=0",
            "statements=none",
            "sslmode=verify",
            "sslrootcert=",
            "sslkey=%FF",
        ] {
            let refused = split(&format!("postgres://h/d?{option}")).unwrap_err().to_string();
            assert!(refused.contains(option.split('=').next().unwrap()), "{refused}");
        }
    }
}
