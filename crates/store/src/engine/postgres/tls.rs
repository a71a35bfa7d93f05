//! TLS to PostgreSQL, with the options of libpq.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls_platform_verifier::BuilderVerifierExt;
use tokio_postgres::Config;
use tokio_postgres::config::{self, Host};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::client::WantsClientCert;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, ConfigBuilder, RootCertStore};

use super::verifier::Verifier;
use crate::StoreError;

/// The protection of a connection, as libpq defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SslMode {
    Disable,
    /// TLS if the server offers it.
    Prefer,
    /// TLS, with any certificate.
    Require,
    /// TLS, with a certificate of a trusted authority for any name.
    VerifyCa,
    /// TLS, with a certificate of a trusted authority for the host in the URL.
    VerifyFull,
}

impl SslMode {
    const ALL: [Self; 5] = [Self::Disable, Self::Prefer, Self::Require, Self::VerifyCa, Self::VerifyFull];

    /// Returns the value as the URL spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, StoreError> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text).ok_or_else(|| {
            let all = Self::ALL.map(Self::as_str).join(", ");
            StoreError::driver(format!("sslmode must be one of {all}"))
        })
    }

    /// Returns the driver's mode. The driver only decides whether TLS is used; the certificate is
    /// checked by the verifier of this crate.
    const fn for_driver(self) -> config::SslMode {
        match self {
            Self::Disable => config::SslMode::Disable,
            Self::Prefer => config::SslMode::Prefer,
            Self::Require | Self::VerifyCa | Self::VerifyFull => config::SslMode::Require,
        }
    }
}

/// The protection of connections to a server on another machine, if the URL has no `sslmode`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RemoteTls {
    /// TLS if the server offers it, like libpq.
    #[default]
    Preferred,
    /// TLS with a verified certificate.
    Verified,
}

/// The trusted certificate authorities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Roots {
    /// Those of the operating system.
    System,
    /// Those of a PEM file.
    File(PathBuf),
}

/// The options of libpq in a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TlsOptions {
    pub(super) mode: Option<SslMode>,
    pub(super) roots: Option<Roots>,
    /// The client's certificate and its key.
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

/// The TLS settings of a server, after the defaults were applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tls {
    pub(super) mode: SslMode,
    roots: Roots,
    client: Option<(PathBuf, PathBuf)>,
}

impl TlsOptions {
    /// Applies the defaults for the servers in `config`.
    pub(super) fn resolve(self, config: &Config, remote: RemoteTls) -> Result<Tls, StoreError> {
        let mode = match (self.mode, &self.roots) {
            // PostgreSQL has no TLS over Unix sockets, and libpq ignores the option there.
            _ if is_all(config, is_unix) => SslMode::Disable,
            // The rule of libpq: a server that shows a certificate must not be weaker than a file
            // that was given to verify it.
            (Some(SslMode::Require), Some(Roots::File(_))) => SslMode::VerifyCa,
            (Some(mode), _) => mode,
            (None, Some(Roots::System)) => SslMode::VerifyFull,
            (None, _) if remote == RemoteTls::Verified && !is_local(config) => SslMode::VerifyFull,
            (None, _) => SslMode::Prefer,
        };
        let wrong = |detail: &str| Err(StoreError::driver(detail));
        let client = match (self.certificate, self.key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return wrong("sslcert and sslkey must be set together"),
        };
        let roots = match (mode, self.roots) {
            // Anybody can get a certificate of a public authority for a name of their own.
            (SslMode::VerifyCa, None | Some(Roots::System)) => {
                return wrong("sslmode=verify-ca requires sslrootcert with the file of your own authority");
            }
            (SslMode::VerifyFull, None) => Roots::System,
            (SslMode::VerifyFull | SslMode::VerifyCa, Some(roots)) => roots,
            (_, Some(Roots::System)) => return wrong("sslrootcert=system requires sslmode=verify-full"),
            (_, roots) => roots.unwrap_or(Roots::System),
        };
        Ok(Tls { mode, roots, client })
    }
}

impl Tls {
    /// Sets the driver's mode, and returns the function that encrypts its connections. Reads the
    /// files.
    pub(super) fn apply(&self, config: &mut Config) -> Result<MakeRustlsConnect, StoreError> {
        config.ssl_mode(self.mode.for_driver());
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|e| StoreError::driver(format!("TLS is not available: {e}")))?;
        let builder = match (self.mode, &self.roots) {
            (SslMode::VerifyFull, Roots::System) => builder.with_platform_verifier().map_err(|_| {
                StoreError::driver(
                    "the system has no certificate authorities: install them (Debian: ca-certificates), \
                     or set sslrootcert to a file",
                )
            })?,
            (SslMode::VerifyFull, Roots::File(path)) => builder.with_root_certificates(read_roots(path)?),
            (SslMode::VerifyCa, Roots::File(path)) => {
                with_verifier(builder, Verifier::of_authority(read_roots(path)?, &provider))
            }
            _ => with_verifier(builder, Verifier::none(&provider)),
        };
        let config = match &self.client {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = read_certificates("sslcert", certificate)?;
                let mismatch =
                    |e| StoreError::driver(format!("sslcert and sslkey do not belong together: {e}"));
                builder.with_client_auth_cert(chain, read_key(key)?).map_err(mismatch)?
            }
        };
        Ok(MakeRustlsConnect::new(config))
    }
}

fn with_verifier(
    builder: ConfigBuilder<ClientConfig, tokio_rustls::rustls::WantsVerifier>,
    verifier: Verifier,
) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
}

fn read_roots(path: &Path) -> Result<RootCertStore, StoreError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates("sslrootcert", path)? {
        roots.add(certificate).map_err(|e| unreadable("sslrootcert", path, &e))?;
    }
    Ok(roots)
}

fn read_certificates(option: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    match certificates {
        Ok(certificates) if certificates.is_empty() => {
            Err(unreadable(option, path, &"it holds no certificate"))
        }
        Ok(certificates) => Ok(certificates),
        Err(e) => Err(unreadable(option, path, &e)),
    }
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, StoreError> {
    PrivateKeyDer::from_pem_file(path).map_err(|e| unreadable("sslkey", path, &e))
}

fn unreadable(option: &str, path: &Path, why: &dyn std::fmt::Display) -> StoreError {
    StoreError::driver(format!("{option}: {} cannot be used: {why}", path.display()))
}

/// Reports whether all servers are on this machine.
pub(super) fn is_local(config: &Config) -> bool {
    let addresses = config.get_hostaddrs();
    if addresses.is_empty() {
        return is_all(config, |host| match host {
            Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
            Host::Unix(_) => true,
        });
    }
    addresses.iter().all(IpAddr::is_loopback)
}

fn is_unix(host: &Host) -> bool {
    matches!(host, Host::Unix(_))
}

fn is_all(config: &Config, is: impl Fn(&Host) -> bool) -> bool {
    let hosts = config.get_hosts();
    !hosts.is_empty() && hosts.iter().all(is)
}

#[cfg(test)]
mod tests {
    use super::super::options::split;
    use super::*;

    fn mode(url: &str, remote: RemoteTls) -> Result<SslMode, StoreError> {
        let (url, options) = split(url)?;
        options.tls.resolve(&url.parse().unwrap(), remote).map(|tls| tls.mode)
    }

    #[test]
    fn only_another_machine_must_be_verified_by_default() {
        for (url, preferred, verified) in [
            ("postgres://db.internal/d", SslMode::Prefer, SslMode::VerifyFull),
            ("postgres://10.0.0.7/d", SslMode::Prefer, SslMode::VerifyFull),
            ("postgres://localhost,db.internal/d", SslMode::Prefer, SslMode::VerifyFull),
            ("postgres://localhost/d?hostaddr=10.0.0.7", SslMode::Prefer, SslMode::VerifyFull),
            ("postgres://db.internal/d?sslmode=require", SslMode::Require, SslMode::Require),
            ("postgres://db.internal/d?sslmode=disable", SslMode::Disable, SslMode::Disable),
            ("postgres://127.0.0.1,[::1],localhost/d", SslMode::Prefer, SslMode::Prefer),
            ("postgres://%2Frun%2Fpostgresql/d", SslMode::Disable, SslMode::Disable),
            ("postgres://%2Frun%2Fpostgresql/d?sslmode=verify-full", SslMode::Disable, SslMode::Disable),
        ] {
            assert_eq!(mode(url, RemoteTls::Preferred), Ok(preferred), "{url}");
            assert_eq!(mode(url, RemoteTls::Verified), Ok(verified), "{url}");
        }
    }

    #[test]
    fn a_root_certificate_makes_weak_modes_verify() {
        let mode = |options: &str| mode(&format!("postgres://h/d?{options}"), RemoteTls::Preferred);
        assert_eq!(mode("sslmode=require&sslrootcert=/ca.pem"), Ok(SslMode::VerifyCa));
        assert_eq!(mode("sslrootcert=system"), Ok(SslMode::VerifyFull));
        for refused in [
            "sslmode=verify-ca",
            "sslmode=verify-ca&sslrootcert=system",
            "sslmode=require&sslrootcert=system",
            "sslcert=/c.pem",
            "sslkey=/k.pem",
        ] {
            assert!(mode(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let (url, options) = split("postgres://h/d?sslmode=verify-full&sslrootcert=/nowhere/ca.pem").unwrap();
        let mut config: Config = url.parse().unwrap();
        let tls = options.tls.resolve(&config, RemoteTls::Preferred).unwrap();
        let refused = tls.apply(&mut config).err().unwrap().to_string();
        assert!(refused.contains("sslrootcert: /nowhere/ca.pem cannot be used"), "{refused}");
    }
}
