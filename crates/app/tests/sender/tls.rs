//! Trust in certificates. They were made with openssl and, except for one, are valid for a hundred
//! years.

use std::sync::Arc;

use app::webhooks::sender::{NetworkFault, PostOutcome, SystemResolver, WebhookSender};
use domain::webhook::target::{Target, TargetPolicy};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::receiver::Receiver;
use crate::{Names, answered, local_target, post, trusting};

const AUTHORITY: &str = include_str!("certificates/authority.pem");
const RECEIVER: &str = include_str!("certificates/receiver.pem");
const RECEIVER_KEY: &str = include_str!("certificates/receiver.key.pem");
const EXPIRED: &str = include_str!("certificates/expired.pem");
const SELF_SIGNED: &str = include_str!("certificates/self_signed.pem");

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const NO_TLS: PostOutcome = PostOutcome::Unreachable(NetworkFault::Tls);

/// The names and protocols that clients requested.
type Asked = Arc<Mutex<Vec<(Option<String>, Option<Vec<u8>>)>>>;

/// Starts a receiver with this certificate that prefers HTTP/2. After an HTTP/1.0 response it just
/// closes.
async fn receiver(certificate: &str, answer: &'static str) -> (Receiver, Asked) {
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(RECEIVER_KEY.as_bytes()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let (acceptor, asked) = (TlsAcceptor::from(Arc::new(config)), Asked::default());
    let kept = Arc::clone(&asked);
    let receiver = Receiver::at("0.0.0.0:0", move |stream, _, seen| {
        let (acceptor, asked) = (acceptor.clone(), Arc::clone(&kept));
        async move {
            let Ok(mut stream) = acceptor.accept(stream).await else { return };
            let (_, tls) = stream.get_ref();
            asked
                .lock()
                .push((tls.server_name().map(str::to_owned), tls.alpn_protocol().map(<[u8]>::to_vec)));
            while seen.read(&mut stream).await {
                stream.write_all(answer.as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
                if answer.starts_with("HTTP/1.0") {
                    return;
                }
            }
        }
    })
    .await;
    (receiver, asked)
}

/// Returns a sender that trusts the authority, and knows two names of this machine.
fn believer() -> WebhookSender {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(AUTHORITY.as_bytes()).unwrap()).unwrap();
    let names = Names::default()
        .with("hooks.example.com", &[&["127.0.0.1"]])
        .with("other.example.com", &[&["127.0.0.1"]]);
    WebhookSender::with_tls(TargetPolicy::development(), Arc::new(names), trusting(roots))
}

fn target(receiver: &Receiver, host: &str) -> Target {
    local_target(&format!("https://{host}:{}/", receiver.address.port()))
}

#[tokio::test]
async fn a_trusted_certificate_of_the_targets_name_is_accepted() {
    let (receiver, asked) = receiver(RECEIVER, OK).await;
    let sender = believer();
    for _ in 0..2 {
        let attempt = post(&sender, &target(&receiver, "hooks.example.com")).await;
        assert_eq!((attempt.outcome, attempt.answer_head.as_deref()), (answered(200), Some("ok")));
    }
    let expected = (Some("hooks.example.com".to_owned()), Some(b"http/1.1".to_vec()));
    assert_eq!(*asked.lock(), [expected]);
    let host = format!("host: hooks.example.com:{}\r\n", receiver.address.port());
    assert!(receiver.seen.requests().iter().all(|request| request.contains(&host)));
}

#[tokio::test]
async fn a_certificate_may_name_an_address() {
    let (receiver, _) = receiver(RECEIVER, OK).await;
    assert_eq!(post(&believer(), &target(&receiver, "127.0.0.1")).await.outcome, answered(200));
}

#[tokio::test]
async fn an_invalid_certificate_is_rejected_before_anything_is_sent() {
    for (certificate, host) in [
        (SELF_SIGNED, "hooks.example.com"),
        (EXPIRED, "hooks.example.com"),
        (RECEIVER, "other.example.com"),
        (RECEIVER, "127.0.0.2"),
    ] {
        let (receiver, _) = receiver(certificate, OK).await;
        assert_eq!(post(&believer(), &target(&receiver, host)).await.outcome, NO_TLS);
        assert_eq!((receiver.seen.connections(), receiver.seen.requests().len()), (1, 0));
    }
}

#[tokio::test]
async fn an_unknown_certificate_authority_is_rejected() {
    // A machine without any trusted authority cannot create such a sender.
    let resolver = Arc::<SystemResolver>::default();
    let Ok(sender) = WebhookSender::new(TargetPolicy::development(), resolver) else { return };
    let (receiver, _) = receiver(RECEIVER, OK).await;
    for host in ["127.0.0.1", "localhost"] {
        assert_eq!(post(&sender, &target(&receiver, host)).await.outcome, NO_TLS);
    }
    assert_eq!((receiver.seen.connections(), receiver.seen.requests().len()), (2, 0));
}

#[tokio::test]
async fn a_receiver_without_tls_gets_nothing_in_plaintext() {
    let receiver = Receiver::scripted(|mut stream, _, _| async move {
        let mut hello = [0; 3];
        stream.read_exact(&mut hello).await.unwrap();
        assert_eq!(hello[..2], [0x16, 0x03]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    })
    .await;
    let attempt = post(&believer(), &target(&receiver, "hooks.example.com")).await;
    assert_eq!(attempt.outcome, NO_TLS);
}

/// Many servers close without a TLS close notification.
#[tokio::test]
async fn a_connection_closed_without_tls_notice_ends_the_body() {
    let (receiver, _) = receiver(RECEIVER, "HTTP/1.0 200 OK\r\n\r\nok").await;
    let attempt = post(&believer(), &target(&receiver, "hooks.example.com")).await;
    assert_eq!((attempt.outcome, attempt.answer_head.as_deref()), (answered(200), Some("ok")));
}
