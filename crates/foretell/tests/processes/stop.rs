//! A graceful stop of the service, and `foretell listen` across a restart.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use app::keys::{IssueKey, IssuedKey, issue};
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use chain::Signer;
use domain::event::{self, EventKind, TestData};
use domain::ids::{EventId, KeyId};
use domain::key::{IpAllowlist, LimitOverrides, Scopes, Tier};
use domain::time::SystemClock;
use domain::webhook::{WebhookSecret, verify};
use foretell::config::{ResolvedConfig, Settings};
use foretell::entropy::SystemEntropy;
use foretell::logging;
use foretell::reload::{ConfigSource, Reload};
use foretell::run::{Parts, PublicEndpoint, Running, STOP, listen};
use foretell::secrets::Secrets;
use secrecy::{ExposeSecret, SecretString};
use store::events::NewEvent;
use store::testing::{Link, PostgresProxy, TestDatabase, TestFolder};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::{oracle, service};

const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A service in its own folder, with one user and a key.
struct Small {
    folder: TestFolder,
    config: ResolvedConfig,
    parts: Parts,
    key: IssuedKey,
}

impl Small {
    /// On SQLite.
    async fn new() -> Self {
        Self::on(None).await
    }

    async fn on(database_url: Option<String>) -> Self {
        let folder = TestFolder::create();
        let options = Settings {
            data_dir: Some(folder.path().to_owned()),
            listen: Some("127.0.0.1:0".parse().unwrap()),
            database_url: database_url.map(SecretString::from),
            ..Settings::default()
        };
        let config = options.decide().unwrap();
        let secrets = Secrets::load_or_generate(&config.secrets_file, &SystemEntropy::default(), 1).unwrap();
        let clock = Arc::new(SystemClock::default());
        let parts = Parts::open(&config, secrets, clock, Arc::new(SystemEntropy::default())).await.unwrap();
        let owner = Signer::random(parts.ctx.random()).unwrap();
        let (user, _) = app::accounts::create_user(&parts.ctx, "ada", &owner.owner()).await.unwrap();
        let wanted = IssueKey {
            user_id: user.id,
            name: "key".to_owned(),
            tier: Tier::Mm,
            scopes: Some(Scopes::all()),
            expires_at: None,
            ip_allowlist: IpAllowlist::default(),
            webhook_url: None,
            api_version: None,
            is_agent: false,
            overrides: LimitOverrides::default(),
        };
        let key = issue(&parts.ctx, wanted).await.unwrap();
        Self { folder, config, parts, key }
    }

    /// Starts serving and returns the base URL.
    fn serve(&self) -> (Running, String) {
        let (listener, address) = listen(self.config.listen).unwrap();
        let base_url = format!("http://{address}");
        let state = self.parts.state(&self.config, &base_url).unwrap();
        let endpoint = PublicEndpoint { state, listener };
        (Running::start(&self.parts, Some(endpoint), 0).unwrap(), base_url)
    }

    /// Writes events of the user that are posted to webhooks.
    async fn create_events(&self, count: u64) {
        let user_id = self.key.key.user_id;
        let input = (0..count).map(|_| EventId::of_test(self.parts.ctx.uuid())).collect::<Vec<_>>();
        let at = self.parts.ctx.now();
        let written = self
            .parts
            .ctx
            .store
            .write((user_id, input, at), |tx, (user_id, ids, at)| {
                Box::pin(async move {
                    for id in ids {
                        let (kind, at, user_id) = (EventKind::Test, *at, *user_id);
                        let data = TestData { test: true, api_key_id: KeyId(id.0) };
                        let body = event::body(*id, kind, at, &data).unwrap();
                        let (key_id, trade_id) = (None, None);
                        let event = NewEvent { id: *id, user_id, kind, key_id, trade_id, body, at };
                        store::events::emit(tx, event);
                    }
                    Ok(())
                })
            })
            .await;
        written.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_counted_before_a_stop_is_stored() {
    let small = Small::new().await;
    let (running, base_url) = small.serve();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for _ in 0..3 {
        let request =
            http.get(format!("{base_url}/v1/key")).header("x-api-key", small.key.plaintext.expose());
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    drop(http);
    running.stop().await;

    let store = store::Store::open(small.config.database_url.expose_secret()).await.unwrap();
    let counted =
        "SELECT CAST(SUM(n0 + n1 + n2 + n3 + n4 + n5 + n6 + n7 + n8 + n9 + n10 + n11 + n12 + n13 + n14 + n15)
        AS BIGINT) FROM usage_latency";
    assert_eq!(oracle::number(&store, counted).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_in_time_while_the_database_does_not_answer() {
    let Some(database) = TestDatabase::create().await else { return };
    let proxy = PostgresProxy::start(&database).await;
    let small = Small::on(Some(proxy.url.clone())).await;
    let (running, base_url) = small.serve();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = http.get(format!("{base_url}/v1/key")).header("x-api-key", small.key.plaintext.expose());
    assert_eq!(request.send().await.unwrap().status(), 200);
    // The counts of the request wait for the stop.
    proxy.set_link(Link::Silent);
    drop(http);
    let began = Instant::now();
    running.stop().await;
    let took = began.elapsed();
    assert!(took < STOP + Duration::from_secs(2), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_every_stream_with_a_closing_event() {
    let small = Small::new().await;
    let (running, base_url) = small.serve();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut streams = Vec::new();
    for _ in 0..5 {
        let request = http.get(format!("{base_url}/v1/events?types=*"));
        let request = request.header("x-api-key", small.key.plaintext.expose());
        streams.push(request.header("accept", "text/event-stream").send().await.unwrap());
    }
    assert!(streams.iter().all(|stream| stream.status() == 200));
    small.create_events(1).await;
    let began = Instant::now();
    running.stop().await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    for stream in streams {
        // The body is complete, so the connection was not cut.
        let text = stream.text().await.unwrap();
        let (event, closing) = (text.find("event: webhook.test"), text.find("event: closing"));
        assert!(event.is_some() || closing.is_some(), "{text}");
        assert!(text.contains("\"reason\":\"STOPPING\"") && text.ends_with("\n\n"), "{text}");
    }
}

/// A local program that receives events at an address, and its URL.
fn receiver(address: SocketAddr) -> (mpsc::UnboundedReceiver<(HeaderMap, Vec<u8>)>, String) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let take = move |headers: HeaderMap, body: Bytes| {
        drop(sender.send((headers, body.to_vec())));
        std::future::ready(StatusCode::NO_CONTENT)
    };
    let (listener, address) = listen(address).unwrap();
    let routes = axum::Router::new().route("/hooks", axum::routing::post(take));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (receiver, format!("http://{address}/hooks"))
}

#[tokio::test(flavor = "multi_thread")]
async fn listen_posts_every_event_once_in_order_despite_a_restart() {
    const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let mut small = Small::new().await;
    let (running, base_url) = small.serve();
    // The next run must have the same address.
    small.config.listen = base_url.trim_start_matches("http://").parse().unwrap();
    let (mut received, url) = receiver(ANY_PORT);
    small.create_events(3).await;
    let mut command = service::foretell(small.folder.path());
    command.args([
        "listen",
        "--forward-to",
        &url,
        "--base-url",
        &base_url,
        "--since",
        "1",
        "--secret",
        SECRET,
    ]);
    command.env("FORETELL_API_KEY", small.key.plaintext.expose()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let secret: WebhookSecret = SECRET.parse().unwrap();
    let mut take = async |count: usize| {
        let mut bodies = Vec::new();
        for _ in 0..count {
            let (headers, body) =
                tokio::time::timeout(Duration::from_secs(60), received.recv()).await.unwrap().unwrap();
            let header = |name: &str| headers[name].to_str().unwrap().to_owned();
            let now = small.parts.ctx.now();
            assert_eq!(verify(&header("x-service-signature"), &body, &secret, now), Ok(()));
            let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(json["id"], header("x-service-event-id"));
            bodies.push(String::from_utf8(body).unwrap());
        }
        bodies
    };
    let mut posted = take(2).await;
    small.create_events(2).await;
    posted.extend(take(2).await);
    running.stop().await;

    // A second run of the service on the same folder. Events from before it started are delivered
    // too.
    let Small { folder, config, parts, key } = small;
    drop(parts);
    let secrets = Secrets::load_or_generate(&config.secrets_file, &SystemEntropy::default(), 1).unwrap();
    let clock = Arc::new(SystemClock::default());
    let parts = Parts::open(&config, secrets, clock, Arc::new(SystemEntropy::default())).await.unwrap();
    let small = Small { folder, config, parts, key };
    small.create_events(2).await;
    let (running, _) = small.serve();
    for _ in 0..2 {
        let next = tokio::time::timeout(Duration::from_secs(60), received.recv()).await.unwrap().unwrap();
        posted.push(String::from_utf8(next.1).unwrap());
    }
    let kept: Result<Vec<String>, store::StoreError> =
        small
            .parts
            .ctx
            .store
            .read((), |tx, ()| {
                Box::pin(tx.list("SELECT body FROM events WHERE seq > 1 ORDER BY seq", &[], |row| {
                    row.only::<String>()
                }))
            })
            .await;
    assert_eq!(posted, kept.unwrap(), "the bodies are those that webhooks receive, to the byte");
    assert!(received.try_recv().is_err(), "nothing was posted twice");
    drop(child);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listen_waits_for_a_receiver_that_does_not_run() {
    let small = Small::new().await;
    let (running, base_url) = small.serve();
    small.create_events(3).await;
    let (listener, address) = listen(ANY_PORT).unwrap();
    drop(listener);
    let url = format!("http://{address}/hooks");
    let mut command = service::foretell(small.folder.path());
    command.args(["listen", "--forward-to", &url, "--base-url", &base_url, "--since", "1"]);
    command.env("FORETELL_API_KEY", small.key.plaintext.expose()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = tokio::time::timeout(Duration::from_secs(60), lines.next_line()).await.unwrap();
    assert!(line.unwrap().unwrap().contains("waiting for the receiver"));
    let (mut received, _) = receiver(address);
    for _ in 0..2 {
        tokio::time::timeout(Duration::from_secs(60), received.recv()).await.unwrap().unwrap();
    }
    drop(child);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_replaces_proxies_and_sealing_keys_or_changes_nothing() {
    let small = Small::new().await;
    let file = small.folder.path().join("foretell.toml");
    std::fs::write(&file, "trusted-proxies = [\"10.0.0.0/8\"]\n").unwrap();
    let flags = Settings { data_dir: Some(small.folder.path().to_owned()), ..Settings::default() };
    let reload = Reload {
        source: ConfigSource { flags, file: Some(file.clone()) },
        log_level: logging::start("error"),
        trusted_proxies: small
            .parts
            .state(&small.config, "http://localhost")
            .unwrap()
            .trusted_proxies
            .clone(),
        sealing_keys: small.parts.ctx.config.sealing_keys.clone(),
    };
    let mut secrets = Secrets::load(&small.config.secrets_file).unwrap();
    let new = Secrets::generate(&SystemEntropy::default(), 1).sealing_key;
    secrets.other_sealing_keys.extend(std::mem::replace(&mut secrets.sealing_key, new));
    secrets.save(&small.config.secrets_file).unwrap();
    let sealed_with = || small.parts.ctx.config.sealing_keys.current_prefix();
    let before = sealed_with();

    // A wrong setting beside a right one: neither is changed.
    std::fs::write(&file, "trusted-proxies = [\"10.0.0.0/8\"]\nconfirmations = 0\n").unwrap();
    assert!(reload.apply("error").is_err());
    assert_eq!((sealed_with(), reload.trusted_proxies.networks().len()), (before.clone(), 0));

    std::fs::write(&file, "trusted-proxies = [\"10.0.0.0/8\"]\n").unwrap();
    reload.apply("error").unwrap();
    assert_ne!(sealed_with(), before);
    assert_eq!(*reload.trusted_proxies.networks(), ["10.0.0.0/8".parse().unwrap()]);
}

/// How a request on a new connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ended {
    Answered,
    /// No connection was made.
    Refused,
    /// The connection was made and then reset or closed.
    Lost(String),
}

async fn request_once(address: &str) -> Ended {
    let lost = |error: std::io::Error| Ended::Lost(error.to_string());
    let mut stream = match TcpStream::connect(address).await {
        Ok(stream) => stream,
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => return Ended::Refused,
        Err(error) => return lost(error),
    };
    let request = b"GET /v1/health HTTP/1.1\r\nhost: foretell\r\n\r\n";
    if let Err(error) = stream.write_all(request).await {
        return lost(error);
    }
    let mut answer = Vec::new();
    let mut some = [0; 4_096];
    loop {
        match stream.read(&mut some).await {
            Ok(0) => return Ended::Lost(format!("{} bytes of an answer", answer.len())),
            Ok(count) => answer.extend_from_slice(&some[..count]),
            Err(error) => return lost(error),
        }
        // Also an answer that the address has sent too many requests is one.
        let text = String::from_utf8_lossy(&answer);
        if text.starts_with("HTTP/1.1 ") && text.ends_with('}') {
            return Ended::Answered;
        }
    }
}

/// Sends requests on new connections until none is made any more. Returns the number of answers.
async fn requests_until_refused(address: String, answered: Arc<AtomicUsize>) -> Result<(), String> {
    loop {
        match request_once(&address).await {
            Ended::Answered => {
                answered.fetch_add(1, Ordering::Relaxed);
            }
            Ended::Refused => return Ok(()),
            Ended::Lost(why) => return Err(why),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twelve_stops_under_24_clients_answer_every_connection_that_was_made() {
    const STOPS: usize = 12;
    const CLIENTS: usize = 24;
    let mut service = service::Service::on_sqlite().await;
    let mut total = 0;
    for stop in 0..STOPS {
        service.start().await;
        let address = service.base_url().trim_start_matches("http://").to_owned();
        let answered = Arc::<AtomicUsize>::default();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| tokio::spawn(requests_until_refused(address.clone(), Arc::clone(&answered))))
            .collect();
        while answered.load(Ordering::Relaxed) < 10 * CLIENTS {
            tokio::task::yield_now().await;
        }
        service.terminate().await;
        for client in clients {
            assert_eq!(client.await.unwrap(), Ok(()), "stop {stop}");
        }
        total += answered.load(Ordering::Relaxed);
    }
    eprintln!("{STOPS} stops under {CLIENTS} clients: {total} requests answered, none lost");
}
