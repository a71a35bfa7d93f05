//! TLS of the connection to NATS.

use std::path::Path;
use std::sync::Arc;

use rustls_platform_verifier::BuilderVerifierExt;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// The file of `nats-ca` cannot be used, or this machine has no certificate authorities.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("nats-ca: {0} cannot be used: {1}")]
    Authorities(String, String),
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// Returns a configuration that trusts the authorities of the file, or those of this machine.
pub(super) fn config(authorities: Option<&Path>) -> Result<ClientConfig, TlsError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?;
    let Some(path) = authorities else { return Ok(builder.with_platform_verifier()?.with_no_client_auth()) };
    let unusable = |error: String| TlsError::Authorities(path.display().to_string(), error);
    let mut roots = RootCertStore::empty();
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    for certificate in certificates.map_err(|error| unusable(error.to_string()))? {
        roots.add(certificate)?;
    }
    if roots.is_empty() {
        return Err(unusable("it has no certificate".to_owned()));
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
