//! TLS to Redis: the server's certificate is always verified.

use std::sync::Arc;

use app::limits::{Limits, Unavailable};
use testkit::REDIS_URL;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The folder of the certificates. They are valid for 127.0.0.1.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sender/certificates");

/// Starts a server with this certificate in front of the tests' Redis, and returns its port. `None`
/// if there is no Redis.
async fn front(certificate: &str) -> Option<u16> {
    let redis = std::env::var(REDIS_URL).ok().filter(|url| !url.is_empty())?;
    let redis = redis.trim_start_matches("redis://").trim_end_matches('/').to_owned();
    let key = PrivateKeyDer::from_pem_file(format!("{FOLDER}/receiver.key.pem")).unwrap();
    let chain = vec![CertificateDer::from_pem_file(format!("{FOLDER}/{certificate}.pem")).unwrap()];
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(mut client) = acceptor.accept(client).await else { continue };
            let mut server = TcpStream::connect(&redis).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
        }
    });
    Some(port)
}

async fn ping(host: &str, port: u16, authority: &str) -> Result<(), String> {
    let url = format!("rediss://{host}:{port}/0?sslrootcert={FOLDER}/{authority}.pem");
    let limits = Limits::redis(&url, "foretell-test-tls").unwrap();
    // On a busy machine, a handshake can take longer than a request waits for Redis.
    for _ in 0..100 {
        match limits.ping().await {
            Err(Unavailable::Timeout) => {}
            Err(Unavailable::Redis(error)) if error.is_timeout() => {}
            answer => return answer.map_err(|error| error.to_string()),
        }
    }
    Err("Redis does not answer".to_owned())
}

fn assert_refused(answer: Result<(), String>, expected: &str) {
    let refused = answer.expect_err("the connection is rejected");
    assert!(refused.contains(expected), "{refused}");
}

#[tokio::test]
async fn a_valid_certificate_of_a_trusted_authority_is_accepted() {
    let Some(port) = front("receiver").await else { return };
    assert_eq!(ping("127.0.0.1", port, "authority").await, Ok(()));
}

#[tokio::test]
async fn an_invalid_certificate_is_rejected_with_its_fault() {
    let Some(port) = front("receiver").await else { return };
    assert_refused(ping("localhost", port, "authority").await, "not valid for name");
    assert_refused(ping("127.0.0.1", port, "self_signed").await, "UnknownIssuer");
    let Some(port) = front("expired").await else { return };
    assert_refused(ping("127.0.0.1", port, "authority").await, "expired");
}

#[tokio::test]
async fn a_server_without_tls_is_rejected() {
    let Some(redis) = std::env::var(REDIS_URL).ok().filter(|url| !url.is_empty()) else { return };
    let limits = Limits::redis(&redis.replace("redis://", "rediss://"), "foretell-test-tls").unwrap();
    assert!(limits.ping().await.is_err());
}

#[test]
fn options_that_cannot_be_used_are_rejected_with_their_name() {
    for (url, expected) in [
        ("rediss://h?sslrootcert=/nowhere.pem", "sslrootcert: /nowhere.pem cannot be read"),
        ("rediss://h/#insecure", "#insecure is not supported"),
        ("redis://h?sslmode=verify-full", "sslmode is not supported"),
        (&format!("redis://h?sslrootcert={FOLDER}/authority.pem"), "certificates require rediss://"),
        (&format!("rediss://h?sslcert={FOLDER}/receiver.pem"), "must be set together"),
        (
            &format!(
                "rediss://h?sslrootcert={FOLDER}/receiver.key.pem&sslcert={FOLDER}/receiver.key.pem&sslkey={FOLDER}/receiver.pem"
            ),
            "does not contain",
        ),
    ] {
        let refused = Limits::redis(url, "foretell-test-tls").unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
}
