//! SIGHUP: reads the configuration and the secrets again, and applies what a running process can
//! change: the log level, the trusted proxies and the sealing keys.

use std::path::PathBuf;

use app::encryption::SealingKeys;
use http_kit::TrustedProxies;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::Settings;
use crate::logging::LogLevel;
use crate::secrets::Secrets;
use crate::start_error::StartError;

/// The source of the configuration. Flags and the environment of a process do not change.
#[derive(Debug, Clone)]
pub struct ConfigSource {
    pub flags: Settings,
    pub file: Option<PathBuf>,
}

/// The state that a reload changes.
pub struct Reload {
    pub source: ConfigSource,
    pub log_level: LogLevel,
    pub trusted_proxies: TrustedProxies,
    pub sealing_keys: SealingKeys,
}

impl Reload {
    /// Reloads on each SIGHUP. If something is wrong, nothing changes and the log says why.
    pub async fn on_hangup(self, default_level: &'static str) {
        let Ok(mut hangups) = signal(SignalKind::hangup()) else { return };
        while hangups.recv().await.is_some() {
            match self.apply(default_level) {
                Ok(()) => tracing::info!("reloaded the log level, the trusted proxies and the sealing keys"),
                Err(error) => {
                    tracing::error!(%error, "could not reload the configuration: nothing was changed")
                }
            }
        }
    }

    /// Applies the configuration as it is now.
    ///
    /// # Errors
    /// If the file, a setting or the secrets are wrong. Nothing is changed then.
    pub fn apply(&self, default_level: &str) -> Result<(), StartError> {
        let ConfigSource { flags, file } = &self.source;
        let config = flags.clone().or_from_file(file.as_deref())?.decide()?;
        // A process whose roles need no sealing keys may have no file with them.
        let sealing_keys = match self.sealing_keys.are_none() {
            true => None,
            false => Some(Secrets::load(&config.secrets_file)?.sealing_keys()?),
        };
        // The environment wins, as at the start.
        if std::env::var_os("RUST_LOG").is_none() {
            let level = config.log_level.as_deref().unwrap_or(default_level);
            self.log_level.set(level).map_err(|error| StartError::Other(error.to_string()))?;
        }
        self.trusted_proxies.replace(config.trusted_proxies);
        if let Some(sealing_keys) = sealing_keys {
            self.sealing_keys.replace(&sealing_keys);
        }
        Ok(())
    }
}
