//! Slow clients: slow heads, slow bodies and a thousand idle connections are closed in time, and do
//! not affect other clients while they are open.

use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::clients::Trader;
use crate::service::Service;

const IDLE: usize = 1_000;
const SLOW: usize = 100;
/// The service allows 10 s for a head and 8 s for a body. The rest is for a busy test machine.
const CLOSED_WITHIN: Duration = Duration::from_secs(20);

async fn connected(address: &str, begin: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(begin).await.unwrap();
    stream
}

/// Returns the response before the service closes the connection, which must happen in time.
async fn until_closed(mut stream: TcpStream, began: Instant) -> String {
    let mut text = Vec::new();
    let left = CLOSED_WITHIN.saturating_sub(began.elapsed());
    // The stream ends or is reset; the connection is closed in both cases.
    drop(tokio::time::timeout(left, stream.read_to_end(&mut text)).await.expect("closed in time"));
    String::from_utf8(text).unwrap()
}

/// Sends requests one after the other until `done`. Returns their number and the longest latency.
async fn probe(base_url: &str, key: &str, done: &tokio::sync::Notify) -> (usize, Duration) {
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build().unwrap();
    let mut ended = std::pin::pin!(done.notified());
    let (mut asked, mut slowest) = (0, Duration::ZERO);
    // Slow enough for the key's rate limit.
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    loop {
        tokio::select! {
            () = &mut ended => return (asked, slowest),
            _ = ticks.tick() => {}
        }
        let began = Instant::now();
        let answer = http.get(format!("{base_url}/v1/markets?limit=1")).header("X-API-Key", key).send().await;
        assert_eq!(answer.expect("the probe is served").status(), 200);
        slowest = slowest.max(began.elapsed());
        asked += 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_and_idle_clients_are_disconnected_and_delay_no_others() {
    let mut service = Service::on_sqlite().await;
    let trader = Trader::of_demonstration(&service.demonstration().await, 1).remove(0);
    service.start_with(&["--max-connections-per-address", "4096"]).await;
    let base_url = service.base_url().to_owned();
    let address = base_url.trim_start_matches("http://").to_owned();

    let done = tokio::sync::Notify::new();
    let slow = async {
        let began = Instant::now();
        let body = format!(
            "POST /v1/trades HTTP/1.1\r\nHost: foretell\r\nX-API-Key: {}\r\nContent-Type: application/json\r\n\
             Content-Length: 100\r\n\r\n{{\"marketId\":",
            trader.key
        );
        let idle = join_all((0..IDLE).map(|_| connected(&address, b""))).await;
        let heads =
            join_all((0..SLOW).map(|_| connected(&address, b"GET /v1/health HTTP/1.1\r\nX-A: "))).await;
        let bodies = join_all((0..SLOW).map(|_| connected(&address, body.as_bytes()))).await;
        let closed =
            |streams: Vec<TcpStream>| join_all(streams.into_iter().map(|stream| until_closed(stream, began)));
        let answers = futures::future::join3(closed(idle), closed(heads), closed(bodies)).await;
        done.notify_one();
        answers
    };
    let ((idle, heads, bodies), (asked, slowest)) = tokio::join!(slow, probe(&base_url, &trader.key, &done));
    for answer in idle.iter().chain(&heads) {
        assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    }
    for answer in bodies {
        assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
        assert!(answer.contains("\"submission\":\"not_submitted\""), "{answer}");
    }
    let nonsense = connected(&address, b"no such thing\r\n\r\n").await;
    let answer = until_closed(nonsense, Instant::now()).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    for part in ["x-request-id: req_", "x-ratelimit-limit: 300", "\"code\":\"VALIDATION_FAILED\""] {
        assert!(answer.contains(part), "a request that cannot be read is answered like any other: {answer}");
    }
    eprintln!("{asked} probes beside {} slow connections, the slowest {slowest:?}", IDLE + 2 * SLOW);
    assert!(asked > 20, "the probe was held up: {asked}");
}
