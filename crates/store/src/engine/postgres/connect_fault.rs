//! The reason why a connection cannot be opened, with what the operator can do about it.

use std::error::Error as StdError;
use std::io;

use tokio_postgres::Error;
use tokio_rustls::rustls::{self, CertificateError};

use super::fault::describe;

/// Describes a failed connect. The text contains no value of the URL.
pub(super) fn describe_connect(error: &Error) -> String {
    if let Some(refused) = error.as_db_error() {
        let hint = match refused.code().code() {
            "28P01" => ": the password or the user is wrong",
            "28000" => ": the server does not allow this user, database, address or client certificate",
            "3D000" => ": the database does not exist",
            _ => "",
        };
        return describe(refused) + hint;
    }
    if let Some(tls) = tls_error(error) {
        return format!("TLS to the database failed: {}", describe_tls(tls));
    }
    match error.source() {
        Some(cause) if cause.to_string() == NO_TLS => {
            "the database server does not offer TLS: enable it there, or set a weaker sslmode".to_owned()
        }
        // A refused or unanswered connection. The cause contains no value of the URL.
        Some(cause) if cause.is::<io::Error>() => format!("{error}: {cause}"),
        _ => error.to_string(),
    }
}

/// The driver's message about a server without TLS. It has no error kind for it.
const NO_TLS: &str = "server does not support TLS";

fn describe_tls(error: &rustls::Error) -> String {
    use CertificateError as Of;
    match error {
        rustls::Error::InvalidCertificate(why) => match why {
            Of::UnknownIssuer => {
                "the server's certificate was not signed by a trusted authority: check sslrootcert".to_owned()
            }
            Of::Expired | Of::ExpiredContext { .. } => "the server's certificate has expired".to_owned(),
            Of::NotValidYet | Of::NotValidYetContext { .. } => {
                "the server's certificate is not valid yet: check the clocks".to_owned()
            }
            Of::NotValidForName | Of::NotValidForNameContext { .. } => {
                "the server's certificate is for another name than the host in the URL".to_owned()
            }
            other => format!("the server's certificate is invalid: {other}"),
        },
        rustls::Error::AlertReceived(alert) => {
            format!("the server ended it with {alert:?}: check sslcert and sslkey")
        }
        other => other.to_string(),
    }
}

/// Finds the TLS error that caused `error`.
fn tls_error(error: &Error) -> Option<&rustls::Error> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(tls) = error.downcast_ref() {
            return Some(tls);
        }
        // The source of an `io::Error` skips the error that it wraps.
        let wrapped = error.downcast_ref().and_then(io::Error::get_ref);
        cause = wrapped.map(|wrapped| wrapped as &(dyn StdError + 'static)).or_else(|| error.source());
    }
    None
}
