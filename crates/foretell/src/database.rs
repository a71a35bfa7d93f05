//! The database of a configuration.

use secrecy::{ExposeSecret, SecretString};
use store::{RemoteTls, Schema, SslMode, Store, StoreError};

use crate::config::{EnvironmentSetting, ResolvedConfig};
use crate::start_error::StartError;

/// Opens the configured database, with its replica if there is one. Changes no schema.
pub async fn open(config: &ResolvedConfig) -> Result<Store, StoreError> {
    let replica = config.database_read_url.as_ref().map(ExposeSecret::expose_secret);
    Store::open_replicated(config.database_url.expose_secret(), replica, remote_tls(config)).await
}

/// Returns an error with the command to run if the database does not have this program's schema.
pub async fn require_current_schema(store: &Store) -> Result<(), StartError> {
    match store.schema().await? {
        Schema::Current => Ok(()),
        Schema::Older => Err(StartError::Other(
            "the database schema is older than this program: run `foretell migrate` with the same settings"
                .to_owned(),
        )),
        Schema::Newer { database, program } => Err(StoreError::SchemaTooNew { database, program }.into()),
    }
}

/// Returns the default protection of connections to a database on another machine.
const fn remote_tls(config: &ResolvedConfig) -> RemoteTls {
    match config.environment {
        EnvironmentSetting::Live => RemoteTls::Verified,
        EnvironmentSetting::Test => RemoteTls::Preferred,
    }
}

/// Returns a warning if another machine could read or change what is sent to the database at `url`.
pub fn transport_warning(config: &ResolvedConfig, url: &SecretString) -> Result<Option<String>, StoreError> {
    let weak = match store::transport(url.expose_secret(), remote_tls(config))? {
        None | Some(SslMode::VerifyFull) => return Ok(None),
        Some(weak) => weak,
    };
    let danger = match weak {
        SslMode::Disable => "everything is sent in plaintext",
        SslMode::Prefer => {
            "everything is sent in plaintext if the server, or a machine in between, offers no TLS"
        }
        SslMode::Require => "the server's certificate is not verified",
        SslMode::VerifyCa | SslMode::VerifyFull => "the name in the server's certificate is not verified",
    };
    Ok(Some(format!("sslmode={}: {danger}. Use sslmode=verify-full", weak.as_str())))
}
