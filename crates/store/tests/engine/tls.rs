//! TLS to PostgreSQL, as libpq's options define it. The certificates were made with openssl and,
//! except for one, are valid for a hundred years.

use std::sync::Arc;

use store::testing::{self, TestDatabase};
use store::{RemoteTls, Store, StoreError};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// The folder of the certificates.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/engine/certificates");
/// The message with which a client asks for TLS: its length and its code.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// A server of a database that accepts only TLS.
struct TlsFront {
    port: u16,
    database: TestDatabase,
}

impl TlsFront {
    /// `None` if no test cluster is configured.
    async fn start(certificate: &str, asks_for_client: bool) -> Option<Self> {
        let database = TestDatabase::create().await?;
        let config: tokio_postgres::Config = database.url.parse().unwrap();
        let port = config.get_ports()[0];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap().port();
        let acceptor = acceptor(certificate, asks_for_client);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, acceptor.clone(), port));
            }
        });
        Some(Self { port: here, database })
    }

    /// The URL of the database at a host with this name, which is this machine.
    fn url(&self, host: &str, options: &str) -> String {
        let (_, name) = self.database.url.rsplit_once('/').unwrap();
        let address = format!("postgres://postgres@{host}:{}/{name}", self.port);
        format!("{address}?hostaddr=127.0.0.1&max_connections=3&{options}")
    }

    async fn open(&self, host: &str, options: &str) -> Result<(), StoreError> {
        let store = Store::open(&self.url(host, options)).await?;
        store.ping().await
    }
}

async fn carry(mut client: TcpStream, acceptor: TlsAcceptor, port: u16) -> Option<()> {
    let mut request = [0; 8];
    client.read_exact(&mut request).await.ok()?;
    // A client that begins in plaintext is rejected.
    if request != SSL_REQUEST {
        return None;
    }
    client.write_all(b"S").await.ok()?;
    let mut client = acceptor.accept(client).await.ok()?;
    let mut server = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    copy_bidirectional(&mut client, &mut server).await.ok()?;
    Some(())
}

fn acceptor(certificate: &str, asks_for_client: bool) -> TlsAcceptor {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = if asks_for_client {
        let mut roots = RootCertStore::empty();
        roots.add(certificate_of("authority")).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let key = PrivateKeyDer::from_pem_file(format!("{FOLDER}/server.key.pem")).unwrap();
    let config = builder.with_single_cert(vec![certificate_of(certificate)], key).unwrap();
    TlsAcceptor::from(Arc::new(config))
}

fn certificate_of(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(format!("{FOLDER}/{name}.pem")).unwrap()
}

/// The options of a client that verifies with the authority in this file.
fn verified(mode: &str, authority: &str) -> String {
    format!("sslmode={mode}&sslrootcert={FOLDER}/{authority}.pem")
}

fn assert_refused(answer: Result<(), StoreError>, expected: &str) {
    let refused = answer.unwrap_err().to_string();
    assert!(refused.contains(expected), "{refused}");
}

/// Runs a test with a server that has this certificate, if a test cluster is configured.
fn with_certificate<F: Future<Output = ()>>(certificate: &str, test: impl FnOnce(TlsFront) -> F) {
    testing::block_on(async {
        if let Some(front) = TlsFront::start(certificate, false).await {
            test(front).await;
        }
    });
}

#[test]
fn a_server_with_a_valid_certificate_is_accepted_in_every_mode() {
    with_certificate("server", |front| async move {
        for options in [
            String::new(),
            "sslmode=prefer".to_owned(),
            "sslmode=require".to_owned(),
            verified("verify-ca", "authority"),
            verified("verify-full", "authority"),
        ] {
            assert_eq!(front.open("db.example.com", &options).await, Ok(()), "{options}");
        }
    });
}

#[test]
fn only_verify_full_rejects_another_name() {
    with_certificate("server", |front| async move {
        assert_eq!(front.open("other.example.com", &verified("verify-ca", "authority")).await, Ok(()));
        let refused = front.open("other.example.com", &verified("verify-full", "authority")).await;
        assert_refused(refused, "is for another name than the host in the URL");
    });
}

#[test]
fn a_certificate_of_another_authority_is_rejected() {
    with_certificate("server", |front| async move {
        assert_eq!(front.open("db.example.com", "sslmode=require").await, Ok(()));
        // libpq verifies `require` too if a root certificate is given.
        for mode in ["require", "verify-ca", "verify-full"] {
            let refused = front.open("db.example.com", &verified(mode, "other_authority")).await;
            assert_refused(refused, "was not signed by a trusted authority: check sslrootcert");
        }
    });
}

#[test]
fn an_expired_certificate_is_rejected() {
    with_certificate("expired", |front| async move {
        for mode in ["verify-ca", "verify-full"] {
            let refused = front.open("db.example.com", &verified(mode, "authority")).await;
            assert_refused(refused, "the server's certificate has expired");
        }
    });
}

#[test]
fn a_server_without_tls_gets_nothing_in_plaintext() {
    testing::block_on(async {
        // The server answers the request for TLS with "no", and reads whatever follows.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut request = [0; 8];
            client.read_exact(&mut request).await.unwrap();
            client.write_all(b"N").await.unwrap();
            let mut rest = Vec::new();
            client.read_to_end(&mut rest).await.unwrap();
            (request, rest)
        });
        let url = format!("postgres://ada:hunter2@127.0.0.1:{port}/d?sslmode=require");
        let refused = Store::open(&url).await.map(|_| ());
        assert_refused(refused, "the database server does not offer TLS");
        assert_eq!(server.await.unwrap(), (SSL_REQUEST, Vec::new()));
    });
}

#[test]
fn another_machine_is_verified_by_default_if_the_caller_asks_for_it() {
    with_certificate("server", |front| async move {
        // The machine's own authorities did not sign this certificate. A machine without any gives
        // another error.
        let url = front.url("db.example.com", "").replace("hostaddr=127.0.0.1&", "");
        let remote = store::transport(&url, RemoteTls::Verified);
        assert_eq!(remote, Ok(Some(store::SslMode::VerifyFull)));
        assert_eq!(store::transport(&url, RemoteTls::Preferred), Ok(Some(store::SslMode::Prefer)));
        let url = front.url("db.example.com", "sslmode=verify-full");
        assert!(Store::open_over(&url, RemoteTls::Verified).await.is_err());
        // This machine needs no certificate.
        let local = Store::open_over(&front.database.url, RemoteTls::Verified).await.unwrap();
        assert_eq!(local.ping().await, Ok(()));
    });
}

#[test]
fn a_client_certificate_is_sent_if_it_is_configured() {
    testing::block_on(async {
        let Some(front) = TlsFront::start("server", true).await else { return };
        let options = verified("verify-full", "authority");
        assert_refused(front.open("db.example.com", &options).await, "check sslcert and sslkey");
        let certificate =
            |name: &str| format!("{options}&sslcert={FOLDER}/{name}.pem&sslkey={FOLDER}/{name}.key.pem");
        assert_eq!(front.open("db.example.com", &certificate("client")).await, Ok(()));
        // The server's own certificate is not one of a client.
        assert_refused(
            front.open("db.example.com", &certificate("server")).await,
            "check sslcert and sslkey",
        );
        let mixed = format!("{options}&sslcert={FOLDER}/client.pem&sslkey={FOLDER}/server.key.pem");
        assert_refused(
            front.open("db.example.com", &mixed).await,
            "sslcert and sslkey do not belong together",
        );
    });
}

#[test]
fn the_next_host_is_used_if_the_first_is_down_or_read_only() {
    with_certificate("server", |front| async move {
        let (_, name) = front.database.url.rsplit_once('/').unwrap();
        let hosts = format!("postgres://postgres@127.0.0.1:1,localhost:{}/{name}", front.port);
        let options = verified("verify-full", "authority");
        let url = format!("{hosts}?max_connections=3&target_session_attrs=primary&{options}");
        assert_eq!(Store::open(&url).await.unwrap().ping().await, Ok(()));
        let url = format!("{hosts}?max_connections=3&target_session_attrs=standby&{options}");
        assert!(Store::open(&url).await.is_err(), "a primary is no standby");
    });
}
