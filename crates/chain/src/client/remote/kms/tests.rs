//! Both clients against a local service that can lie, be slow or fail.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Address, B256, Signature};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use k256::ecdsa::signature::hazmat::PrehashSigner;
use k256::ecdsa::{Signature as K256Signature, SigningKey};
use parking_lot::Mutex;
use reqsign_core::StaticEnv;
use reqsign_core::hash::{base64_decode, base64_encode, hex_sha256};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::aws::AwsKey;
use super::gcp::GcpKey;
use crate::client::lane_signer::RemoteKey;
use crate::client::signer::Signer;

const ARN: &str = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab";
const VERSION: &str = "projects/p/locations/europe-west3/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1";
/// Never a part of an error.
const SECRET: &str = "s3cret";
const HASH: B256 = B256::repeat_byte(0x5a);

/// The behavior of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mode {
    Honest,
    /// It returns the higher s.
    HighS,
    /// It signs with another key.
    OtherKey,
    /// It has a key of another curve.
    OtherCurve,
    /// It returns these bytes as the signature.
    Bytes(Vec<u8>),
    /// It does not answer.
    Silent,
    /// It answers with this status and text.
    Answer(u16, String),
    /// Its answer is longer than the limit.
    Endless,
}

struct Shared {
    mode: Mutex<Mode>,
    /// The requests for credentials, and those to the key service.
    asked: Mutex<Vec<(String, HeaderMap)>>,
    expires_in_s: u64,
}

/// The APIs of both clouds, with one key, and their servers of credentials.
struct Service {
    url: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Service {
    async fn start() -> Self {
        Self::with_credentials_for(3_600).await
    }

    async fn with_credentials_for(expires_in_s: u64) -> Self {
        let shared = Shared { mode: Mutex::new(Mode::Honest), asked: Mutex::default(), expires_in_s };
        let shared = Arc::new(shared);
        let routes = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let task = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { url, shared, task }
    }

    fn becomes(&self, mode: Mode) {
        *self.shared.mode.lock() = mode;
    }

    fn count(&self, path: &str) -> usize {
        self.shared.asked.lock().iter().filter(|(asked, _)| asked.starts_with(path)).count()
    }

    fn aws_with(&self, vars: &[(&str, &str)]) -> AwsKey {
        AwsKey::open(ARN, None, Some(&self.url), env(vars)).unwrap()
    }

    fn aws(&self) -> AwsKey {
        self.aws_with(&[("AWS_ACCESS_KEY_ID", "AKID"), ("AWS_SECRET_ACCESS_KEY", SECRET)])
    }

    fn gcp(&self) -> GcpKey {
        let host = self.url.trim_start_matches("http://");
        GcpKey::open(VERSION, &self.url, env(&[("GCE_METADATA_HOST", host)])).unwrap()
    }

    fn both(&self) -> [Box<dyn RemoteKey>; 2] {
        [Box::new(self.aws()), Box::new(self.gcp())]
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn env(vars: &[(&str, &str)]) -> StaticEnv {
    let envs = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    StaticEnv { home_dir: None, envs: HashMap::from_iter(envs) }
}

fn key(byte: u8) -> SigningKey {
    SigningKey::from_slice(&[byte; 32]).unwrap()
}

fn executor() -> Address {
    Signer::random([7; 32]).unwrap().address()
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    shared.asked.lock().push((uri.path().to_owned(), headers.clone()));
    if let Some(credentials) = credentials(&shared, uri.path(), &headers) {
        return credentials;
    }
    let mode = shared.mode.lock().clone();
    match mode {
        Mode::Silent => std::future::pending().await,
        Mode::Answer(status, text) => {
            let location = [("location", "/elsewhere")];
            return (StatusCode::from_u16(status).unwrap(), location, text).into_response();
        }
        Mode::Endless => return vec![b' '; 2 << 20].into_response(),
        _ => {}
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let is_aws = uri.path() == "/";
    let digest = match is_aws {
        true => body["Message"].as_str(),
        false => body["digest"]["sha256"].as_str(),
    };
    if is_aws {
        assert_eq!(body["KeyId"], ARN);
    } else {
        assert_eq!(headers["authorization"], "Bearer token");
        assert!(uri.path().starts_with(&format!("/v1/{VERSION}")), "{uri}");
    }
    match digest {
        None if is_aws => {
            assert_eq!(headers["x-amz-target"], "TrentService.GetPublicKey");
            json!({ "KeyId": ARN, "PublicKey": base64_encode(&public_key(&mode)) }).to_string()
        }
        None => {
            assert_eq!((&method, uri.path().ends_with("/publicKey")), (&Method::GET, true));
            json!({ "pem": pem(&public_key(&mode)), "algorithm": "EC_SIGN_SECP256K1_SHA256" }).to_string()
        }
        Some(digest) => {
            let signature = base64_encode(&signature(&mode, &base64_decode(digest).unwrap()));
            if is_aws {
                assert_eq!(headers["x-amz-target"], "TrentService.Sign");
                assert_eq!(body["MessageType"], "DIGEST");
                json!({ "KeyId": ARN, "Signature": signature, "SigningAlgorithm": "ECDSA_SHA_256" })
            } else {
                assert!(uri.path().ends_with(":asymmetricSign"), "{uri}");
                json!({ "signature": signature })
            }
            .to_string()
        }
    }
    .into_response()
}

/// Answers as the servers of credentials of the clouds.
fn credentials(shared: &Shared, path: &str, headers: &HeaderMap) -> Option<Response> {
    let expiration = reqsign_core::time::Timestamp::now() + Duration::from_secs(shared.expires_in_s);
    let keys = json!({
        "Code": "Success", "AccessKeyId": "AKID", "SecretAccessKey": SECRET, "Token": "session",
        "Expiration": expiration.format_rfc3339_zulu(),
    });
    let answer = match path {
        "/latest/api/token" => "token".to_owned(),
        "/latest/meta-data/iam/security-credentials/" => "role".to_owned(),
        "/latest/meta-data/iam/security-credentials/role" | "/container" => keys.to_string(),
        "/computeMetadata/v1/instance/service-accounts/default/token" => {
            assert_eq!(headers["metadata-flavor"], "Google");
            json!({ "access_token": "token", "expires_in": shared.expires_in_s }).to_string()
        }
        _ => return None,
    };
    Some(answer.into_response())
}

/// Returns SubjectPublicKeyInfo in DER.
fn public_key(mode: &Mode) -> Vec<u8> {
    let (prefix, point) = match mode {
        Mode::OtherCurve => {
            let key = p256::ecdsa::SigningKey::from_slice(&[7; 32]).unwrap();
            let point = key.verifying_key().to_encoded_point(false).as_bytes().to_vec();
            ("3059301306072a8648ce3d020106082a8648ce3d030107034200", point)
        }
        mode => {
            let key = key(if *mode == Mode::OtherKey { 8 } else { 7 });
            let point = key.verifying_key().to_encoded_point(false).as_bytes().to_vec();
            ("3056301006072a8648ce3d020106052b8104000a034200", point)
        }
    };
    [hex::decode(prefix).unwrap(), point].concat()
}

fn pem(der: &[u8]) -> String {
    let text = base64_encode(der);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", lines.join("\n"))
}

fn signature(mode: &Mode, digest: &[u8]) -> Vec<u8> {
    let signed: K256Signature = match mode {
        Mode::Bytes(bytes) => return bytes.clone(),
        Mode::OtherCurve => {
            let key = p256::ecdsa::SigningKey::from_slice(&[7; 32]).unwrap();
            let signed: p256::ecdsa::Signature = key.sign_prehash(digest).unwrap();
            return signed.to_der().as_bytes().to_vec();
        }
        Mode::OtherKey => key(8).sign_prehash(digest).unwrap(),
        _ => key(7).sign_prehash(digest).unwrap(),
    };
    if *mode == Mode::HighS {
        let (r, s) = signed.split_scalars();
        return K256Signature::from_scalars(r, -s).unwrap().to_der().as_bytes().to_vec();
    }
    signed.to_der().as_bytes().to_vec()
}

async fn sign(key: &dyn RemoteKey) -> Result<Signature, String> {
    key.sign(b"unsigned", HASH).await
}

/// The signature of the executor, with r and s.
fn expected() -> Signature {
    Signer::random([7; 32]).unwrap().signature(HASH).unwrap()
}

#[tokio::test]
async fn a_key_service_returns_the_address_and_signatures_of_its_key() {
    let service = Service::start().await;
    for key in service.both() {
        assert_eq!(key.address().await, Ok(executor()));
        let signed = sign(&*key).await.unwrap();
        assert_eq!((signed.r(), signed.s()), (expected().r(), expected().s()));
        service.becomes(Mode::HighS);
        let signed = sign(&*key).await.unwrap();
        assert_eq!((signed.r(), signed.normalized_s().s()), (expected().r(), expected().s()));
        assert_ne!(signed.s(), expected().s());
        service.becomes(Mode::Honest);
    }
}

#[tokio::test]
async fn requests_to_aws_are_signed_for_the_region_of_the_key_and_with_their_body() {
    let service = Service::start().await;
    sign(&service.aws()).await.unwrap();
    let asked = service.shared.asked.lock().clone();
    let headers = &asked.last().unwrap().1;
    let text = |name: &str| headers[name].to_str().unwrap();
    let body = json!({
        "KeyId": ARN, "Message": base64_encode(HASH.as_slice()), "MessageType": "DIGEST",
        "SigningAlgorithm": "ECDSA_SHA_256",
    });
    assert_eq!(text("x-amz-content-sha256"), hex_sha256(body.to_string().as_bytes()));
    let authorization = text("authorization");
    assert!(authorization.starts_with("AWS4-HMAC-SHA256 Credential=AKID/"), "{authorization}");
    assert!(authorization.contains("/eu-central-1/kms/aws4_request, "), "{authorization}");
    for name in ["content-type", "host", "x-amz-content-sha256", "x-amz-date", "x-amz-target"] {
        assert!(authorization.contains(name), "{name} is not signed: {authorization}");
    }
}

#[tokio::test]
async fn answers_that_are_not_signatures_are_rejected() {
    let service = Service::start().await;
    let valid = signature(&Mode::Honest, HASH.as_slice());
    let (r, s) = valid[2..].split_at(2 + usize::from(valid[3]));
    let with_values = |values: &[u8]| [&[0x30, u8::try_from(values.len()).unwrap()][..], values].concat();
    let order =
        hex::decode("022100fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141").unwrap();
    let malformed = [
        Vec::new(),
        vec![0x30, 0x00],
        valid[..valid.len() - 1].to_vec(),
        [&valid[..], &[0]].concat(),
        // A length that is longer than necessary.
        [&[0x30, 0x81][..], &valid[1..]].concat(),
        // A third value.
        with_values(&[r, s, &[2, 1, 1]].concat()),
        // A zero before a value that needs none, zero, and a value that is not below the order.
        with_values(&[&[2, 2, 0, 1][..], s].concat()),
        with_values(&[&[2, 1, 0][..], s].concat()),
        with_values(&[&order[..], s].concat()),
        // A negative value.
        with_values(&[&[2, 1, 0xff][..], s].concat()),
        // r and s without DER.
        [expected().r().to_be_bytes::<32>(), expected().s().to_be_bytes::<32>()].concat(),
    ];
    for key in service.both() {
        for bytes in &malformed {
            service.becomes(Mode::Bytes(bytes.clone()));
            let error = sign(&*key).await.unwrap_err();
            assert_eq!(error, "its answer is not a signature", "{}", hex::encode(bytes));
        }
    }
}

#[tokio::test]
async fn keys_of_other_curves_and_other_keys_are_noticed() {
    let service = Service::start().await;
    for key in service.both() {
        service.becomes(Mode::OtherCurve);
        let error = key.address().await.unwrap_err();
        assert_eq!(error, "its public key is not one of the curve secp256k1");
        service.becomes(Mode::OtherKey);
        assert_ne!(key.address().await.unwrap(), executor());
        let other = sign(&*key).await.unwrap();
        for parity in [false, true] {
            let recovered = other.with_parity(parity).recover_address_from_prehash(&HASH);
            assert_ne!(recovered.ok(), Some(executor()));
        }
    }
}

#[tokio::test]
async fn an_error_names_only_the_kind_of_the_failure() {
    let service = Service::start().await;
    let [aws, gcp] = service.both();
    let kind = |name: &str| json!({ "__type": name, "message": SECRET }).to_string();
    let status = |name: &str| json!({ "error": { "status": name, "message": SECRET } }).to_string();
    let cases = [
        (&aws, 400, kind("AccessDeniedException"), "it answered HTTP status 400 (AccessDeniedException)"),
        (&aws, 400, kind("prefix#NotFoundException"), "it answered HTTP status 400 (NotFoundException)"),
        (&aws, 403, kind("s3cret in words"), "it answered HTTP status 403"),
        (&aws, 403, kind(&"s3cret".repeat(20)), "it answered HTTP status 403"),
        (&aws, 500, SECRET.to_owned(), "it answered HTTP status 500"),
        (&aws, 307, SECRET.to_owned(), "it answered HTTP status 307"),
        (&gcp, 403, status("PERMISSION_DENIED"), "it answered HTTP status 403 (PERMISSION_DENIED)"),
        (&gcp, 500, format!("<p>{SECRET}</p>"), "it answered HTTP status 500"),
        (&aws, 200, SECRET.to_owned(), "its answer is not readable"),
        (&gcp, 200, json!({ "signature": SECRET, "pem": 1 }).to_string(), "its answer is not readable"),
    ];
    for (key, status, text, expected) in cases {
        service.becomes(Mode::Answer(status, text));
        assert_eq!(sign(&**key).await.unwrap_err(), expected);
        assert_eq!(key.address().await.unwrap_err(), expected);
    }
    service.becomes(Mode::Endless);
    for key in [&aws, &gcp] {
        assert_eq!(sign(&**key).await.unwrap_err(), "its answer is longer than 1 MiB");
    }
}

#[tokio::test]
async fn a_slow_service_is_not_waited_for() {
    let service = Service::start().await;
    service.becomes(Mode::Silent);
    let (mut aws, mut gcp) = (service.aws(), service.gcp());
    aws.set_timeout(Duration::from_millis(100));
    gcp.set_timeout(Duration::from_millis(100));
    for key in [&aws as &dyn RemoteKey, &gcp] {
        assert_eq!(sign(key).await.unwrap_err(), "no answer within 0 s");
    }
    let stopped = AwsKey::open(
        ARN,
        None,
        Some("http://127.0.0.1:1"),
        env(&[("AWS_ACCESS_KEY_ID", "AKID"), ("AWS_SECRET_ACCESS_KEY", SECRET)]),
    );
    let error = sign(&stopped.unwrap()).await.unwrap_err();
    assert!(error.contains("error sending request") && !error.contains("127.0.0.1"), "{error}");
}

#[tokio::test]
async fn temporary_credentials_are_requested_once_until_they_expire() {
    for (seconds, requests) in [(3_600, 1), (60, 2)] {
        let service = Service::with_credentials_for(seconds).await;
        let container = format!("{}/container", service.url);
        let from_container = service.aws_with(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &container)]);
        let from_instance = service.aws_with(&[("AWS_EC2_METADATA_SERVICE_ENDPOINT", &service.url)]);
        let from_server = service.gcp();
        let keys: [(&dyn RemoteKey, &str); 3] = [
            (&from_container, "/container"),
            (&from_instance, "/latest/meta-data/iam/security-credentials/role"),
            (&from_server, "/computeMetadata"),
        ];
        for (key, path) in keys {
            for _ in 0..2 {
                sign(key).await.unwrap();
            }
            assert_eq!(service.count(path), requests, "{path} {seconds}");
            if path != "/computeMetadata" {
                let asked = service.shared.asked.lock().clone();
                assert_eq!(asked.last().unwrap().1["x-amz-security-token"], "session");
            }
        }
    }
}

#[tokio::test]
async fn a_machine_without_credentials_reports_the_sources_that_failed() {
    let service = Service::start().await;
    let none = service.aws_with(&[("AWS_EC2_METADATA_DISABLED", "true")]);
    let error = sign(&none).await.unwrap_err();
    assert_eq!(error, "this machine has no credentials for it: no source has any");
    service.becomes(Mode::Answer(500, SECRET.to_owned()));
    let broken = format!("{}/broken", service.url);
    let aws = service
        .aws_with(&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", &broken), ("AWS_EC2_METADATA_DISABLED", "true")]);
    let error = sign(&aws).await.unwrap_err();
    assert!(
        error.starts_with("this machine has no credentials for it: failed sources: container ("),
        "{error}"
    );
    assert!(!error.contains(SECRET), "{error}");
    assert_eq!(service.count("/") - service.count("/broken"), 0, "nothing is asked without credentials");
}

#[tokio::test]
async fn a_service_account_that_gets_no_token_is_reported_without_its_key() {
    let folder = std::env::temp_dir().join(format!("foretell-kms-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("account.json");
    let account = json!({
        "type": "service_account", "client_email": "a@p.iam.gserviceaccount.com", "private_key": SECRET,
    });
    std::fs::write(&path, account.to_string()).unwrap();
    let vars = [("GOOGLE_APPLICATION_CREDENTIALS", path.to_str().unwrap())];
    let key = GcpKey::open(VERSION, "http://127.0.0.1:1", env(&vars)).unwrap();
    let error = sign(&key).await.unwrap_err();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(error.starts_with("no token for the service account: "), "{error}");
    assert!(!error.contains(SECRET), "{error}");
}

#[test]
fn keys_of_aws_have_a_region() {
    let open = |key: &str, region: Option<&str>| AwsKey::open(key, region, None, env(&[]));
    for (key, region) in [
        (ARN, None),
        (ARN, Some("eu-central-1")),
        ("arn:aws-cn:kms:cn-north-1:1:alias/executor", None),
        ("1234abcd-12ab-34cd-56ef-1234567890ab", Some("us-east-1")),
        ("alias/executor_1", Some("eusc-de-east-1")),
    ] {
        assert!(open(key, region).is_ok(), "{key} {region:?}");
    }
    for (key, region) in [
        (ARN, Some("us-east-1")),
        ("alias/executor", None),
        ("", Some("us-east-1")),
        ("alias/executor", Some("evil.example/")),
        ("alias/executor", Some("")),
        ("arn:aws:s3:eu-central-1:1:bucket", None),
        ("arn:aws:kms:eu-central-1:1", None),
        ("alias/a b", Some("us-east-1")),
    ] {
        assert!(open(key, region).is_err(), "{key} {region:?}");
    }
    let url = |url: &str| AwsKey::open(ARN, None, Some(url), env(&[]));
    assert!(url("https://vpce-1.kms.eu-central-1.vpce.amazonaws.com").is_ok());
    let error = url("https://dara:s3cret@kms").unwrap_err().to_string();
    assert!(!error.contains(SECRET), "{error}");
}

#[test]
fn keys_of_gcp_are_names_of_versions() {
    let open = |version: &str| GcpKey::new(version);
    assert!(open(VERSION).is_ok());
    assert!(open(&VERSION.replace("projects/p", "projects/example.com:p-1")).is_ok());
    for version in [
        "",
        "projects/p/locations/l/keyRings/r/cryptoKeys/k",
        &VERSION.replace("/1", "/1/publicKey"),
        &VERSION.replace("/k/", "/../"),
        &VERSION.replace("/k/", "/k?x=/"),
        &VERSION.replace("/k/", "//"),
        &format!("/{VERSION}"),
        &VERSION.replace("keyRings", "keyrings"),
    ] {
        assert!(open(version).is_err(), "{version}");
    }
}
