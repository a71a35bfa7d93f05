//! Protection against untrusted clients: the separate listener of the chain's JSON-RPC, connection
//! limits, strict HTTP parsing, and log messages about proxies.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::clients::Trader;
use crate::service::{Service, read_json};

/// Number of callers that repeatedly request endless calls.
const CALLERS: usize = 8;
/// Number of connections of one address that send nothing.
const HALF_OPEN: usize = 600;

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap()
}

async fn rpc(http: &reqwest::Client, url: &str, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    http.post(url).json(&body).send().await.unwrap().json().await.unwrap()
}

/// Requests calls to code that uses all its gas, until the future is dropped.
async fn ask_for_endless_calls(url: String) {
    let (http, at) = (client(), "0x00000000000000000000000000000000000000e0");
    let params = json!([{ "to": at }, "latest", { at: { "code": "0x5b5f56" } }]);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": params });
    loop {
        drop(http.post(&url).json(&body).send().await);
    }
}

/// Number of the next trade, for idempotency keys.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Creates a trade and waits until it ends. Returns the duration.
async fn trade(http: &reqwest::Client, base_url: &str, trader: &Trader) -> Duration {
    let began = Instant::now();
    let body = json!({ "marketId": trader.markets[0], "outcomeIndex": 0, "side": "buy", "amount": "1.00" });
    let idempotency_key = format!("door-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let request = http.post(format!("{base_url}/v1/trades")).header("X-API-Key", &trader.key);
    let request = request.header("Idempotency-Key", idempotency_key).json(&body);
    let made: Value = request.send().await.unwrap().json().await.unwrap();
    let id = made["trade"]["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    let mut polls = tokio::time::interval(Duration::from_millis(20));
    for _ in 0..1_000 {
        polls.tick().await;
        let request = http.get(format!("{base_url}/v1/trades/{id}")).header("X-API-Key", &trader.key);
        let found: Value = request.send().await.unwrap().json().await.unwrap();
        if found["trade"]["status"] == "completed" {
            return began.elapsed();
        }
    }
    panic!("the trade does not end");
}

#[tokio::test(flavor = "multi_thread")]
async fn json_rpc_has_its_own_listener_and_endless_calls_do_not_delay_trading() {
    let mut service = Service::on_sqlite().await;
    let trader = Trader::of_demonstration(&service.demonstration().await, 1).remove(0);
    service.start().await;
    let base_url = service.base_url().to_owned();
    let url = read_json(&service.file("dev.json")).unwrap()["rpcUrl"].as_str().unwrap().to_owned();
    let http = client();
    let public = http.post(format!("{base_url}/rpc")).json(&json!({})).send().await.unwrap();
    assert_eq!(public.status(), 404);
    assert_eq!(rpc(&http, &url, "eth_chainId", json!([])).await["result"], "0x7a69");
    assert_eq!(rpc(&http, &url, "evm_mine", json!([])).await["error"]["code"], -32601);
    let simple = http.post(&url).body("{}").send().await.unwrap();
    assert_eq!(simple.status(), 415, "what a page of another origin can send is rejected");
    let large = http.post(&url).header("content-type", "application/json").body(vec![b' '; 2 << 20]);
    assert_eq!(large.send().await.unwrap().status(), 413);

    let slowest_of_5 = async || {
        let mut slowest = Duration::ZERO;
        for _ in 0..5 {
            slowest = slowest.max(trade(&http, &base_url, &trader).await);
        }
        slowest
    };
    let quiet = slowest_of_5().await;
    let callers: Vec<_> = (0..CALLERS).map(|_| tokio::spawn(ask_for_endless_calls(url.clone()))).collect();
    let slowest = slowest_of_5().await;
    callers.iter().for_each(tokio::task::JoinHandle::abort);
    eprintln!("the slowest of 5 trades: {quiet:?}, beside {CALLERS} callers of endless calls: {slowest:?}");
    assert!(slowest < 2 * quiet + Duration::from_secs(1), "{slowest:?}, without callers {quiet:?}");

    service.kill().await;
    service.start_with(&["--rpc-test-methods", "--rpc-listen", "127.0.0.1:0"]).await;
    let url = read_json(&service.file("dev.json")).unwrap()["rpcUrl"].as_str().unwrap().to_owned();
    assert_eq!(rpc(&http, &url, "evm_mine", json!([])).await["result"], "0x0");
    service.kill().await;
    service.start_with(&["--rpc-listen", "off"]).await;
    let dev = read_json(&service.file("dev.json")).unwrap();
    assert!(dev["rpcUrl"].as_str().unwrap().starts_with("unix:"), "{dev}");
    // The operator's commands use the socket, not the listener.
    assert!(service.admin(&["sync", "status"]).await.is_object());
    service.chain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listeners_without_authentication_answer_only_to_names_of_this_machine() {
    let mut service = Service::on_sqlite().await;
    let own = "metrics.foretell.example";
    let settings = ["--rpc-listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--private-hosts", own];
    service.start_with(&settings).await;
    let ops = read_json(&service.file("service.json")).unwrap()["opsUrl"].as_str().unwrap().to_owned();
    let chain = read_json(&service.file("dev.json")).unwrap()["rpcUrl"].as_str().unwrap().to_owned();
    let http = client();
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": [] });
    let mut faults = Vec::new();
    for (host, status) in [
        ("127.0.0.1", 200),
        ("localhost:9464", 200),
        ("foretell:9464", 200),
        (own, 200),
        ("attacker.test", 421),
    ] {
        for path in ["/metrics", "/livez", "/readyz"] {
            let answer = http.get(format!("{ops}{path}")).header("host", host).send().await.unwrap();
            if answer.status() != status {
                faults.push(format!("{path} at {host}: {}", answer.status()));
            }
        }
        let answer = http.post(&chain).header("host", host).json(&body).send().await.unwrap();
        if answer.status() != status {
            faults.push(format!("JSON-RPC at {host}: {}", answer.status()));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

async fn connect_from(source: [u8; 4], to: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((source, 0).into()).unwrap();
    socket.connect(to.parse().unwrap()).await.unwrap()
}

/// Returns everything that the service sends before it closes the connection.
async fn answer(address: &str, request: &str) -> String {
    let mut stream = connect_from([127, 0, 0, 1], address).await;
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    // The stream ends or is reset; the connection is closed in both cases.
    drop(tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut bytes)).await.unwrap());
    String::from_utf8(bytes).unwrap()
}

async fn assert_strict(address: &str) {
    let long = format!("Host: a\r\nCookie: {}\r\n", "x".repeat(100_000));
    for (headers, status, code) in [
        ("Host: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n", 400, "VALIDATION_FAILED"),
        ("Host: a\r\nHost: b\r\n", 400, "VALIDATION_FAILED"),
        ("Accept: */*\r\n", 400, "VALIDATION_FAILED"),
        ("Host: a\nAccept: */*\r\n", 400, "VALIDATION_FAILED"),
        (long.as_str(), 431, "HEADERS_TOO_LARGE"),
    ] {
        let text = answer(address, &format!("GET /v1/health HTTP/1.1\r\n{headers}\r\n")).await;
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
        assert!(text.contains(&format!("\"code\":\"{code}\"")), "{text}");
        assert!(text.contains("\"instance\":\"/v1/health\""), "{text}");
    }
    let port = address.rsplit(':').next().unwrap();
    let chunk = format!(
        "POST /preferences/theme HTTP/1.1\r\nHost: localhost:{port}\r\nTransfer-Encoding: chunked\r\n\r\n\
         ffffffffffffffff\r\ntheme=dark"
    );
    let began = Instant::now();
    let text = answer(address, &chunk).await;
    assert!(text.starts_with("HTTP/1.1 400 "), "{text}");
    assert!(began.elapsed() < Duration::from_secs(5), "nobody waits for such a chunk");
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_without_keys_are_limited_and_untrusted_proxies_are_logged() {
    let mut service = Service::on_sqlite().await;
    service.demonstration().await;
    let folder = service.file("secrets.json").parent().unwrap().to_owned();
    for (path, mode) in [(folder.clone(), 0o755), (service.file("secrets.json"), 0o644)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    service.start_with(&["--max-connections", "80", "--max-connections-per-address", "64"]).await;
    assert_eq!((mode(&folder), mode(&service.file("secrets.json"))), (0o700, 0o600));
    let address = service.base_url().trim_start_matches("http://").to_owned();
    assert_strict(&address).await;

    let flood = join_all((0..HALF_OPEN).map(|_| connect_from([127, 0, 0, 2], &address))).await;
    let (http, began) = (client(), Instant::now());
    for _ in 0..10 {
        let request = http.get(format!("http://{address}/v1/health")).header("X-Forwarded-For", "192.0.2.1");
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    let took = began.elapsed();
    drop(flood);
    eprintln!("10 probes beside {HALF_OPEN} half-open connections of another address: {took:?}");
    // Less than the 5 s after which the service closes half-open connections anyway.
    assert!(took < Duration::from_secs(3), "{took:?}");
    let log = std::fs::read_to_string(service.file("log")).unwrap();
    let lines = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    assert_eq!(lines("ignored Forwarded or X-Forwarded-For"), 1, "{log}");
    assert_eq!(lines("closed connections: "), 1, "{log}");
    assert_eq!(lines("was open to other users"), 2, "{log}");
}
