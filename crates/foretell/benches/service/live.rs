//! Live prices: the time until a trade's price is in a thousand browsers, and what their streams cost
//! while many trades happen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::handshake;
use hyper::header::HOST;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use store::{Store, StoreError};
use tokio::net::TcpStream;
use tokio::sync::{Barrier, mpsc};
use tokio::task::JoinHandle;

use crate::Times;
use crate::load::{self, Ask, ask_once};
use crate::public::{FORWARDED, NEXT};
use crate::report::{Goal, Report, Row};
use crate::sample::{Begun, Sample, median};
use crate::service::{Service, post, settle};
use crate::site::own_host;

const STREAMS: usize = 1_000;
const TRADES: usize = 20;
/// Far longer than a price may take, so that each trade's events are over before the next trade.
const BETWEEN_TRADES: Duration = Duration::from_secs(1);
const LIVE_GOAL_MS: f64 = 250.0;

const TRADES_A_SECOND: u32 = 100;
/// Topics of a stream that repeats its market.
const REPEATED: usize = 100;
const STREAM_GOAL_US: f64 = 10.0;

/// Measures the live prices of a service that reports its clients' addresses.
pub async fn measure(service: &Service, times: Times, report: &mut Report) {
    latency(service, report).await;
    cost(service, times, report).await;
}

/// Opens a stream whose client reads all its events, and sends the time of each event after the first
/// one.
async fn follow(
    service: &Service,
    topics: &str,
    opened: Arc<Barrier>,
    arrivals: Option<mpsc::UnboundedSender<Instant>>,
) -> JoinHandle<()> {
    let (address, host, path) =
        (service.address().to_owned(), own_host(service), format!("/app/live?topics={topics}"));
    let client = NEXT.fetch_add(1, Ordering::Relaxed) as u32;
    tokio::spawn(async move {
        // Each client is in a network of its own.
        let [_, b, c, d] = (client * 256).to_be_bytes();
        let request = Request::get(path).header(HOST, host).header(FORWARDED, format!("11.{b}.{c}.{d}"));
        let request: Ask = request.body(Full::default()).expect("a request");
        let stream = TcpStream::connect(address).await.expect("the service listens");
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.expect("a connection");
        // It ends with the sender, and so with this task.
        tokio::spawn(connection);
        let answer = sender.send_request(request).await.expect("the service answers");
        assert_eq!(answer.status(), StatusCode::OK);
        let mut body = answer.into_body();
        let mut is_open = false;
        while let Some(Ok(frame)) = body.frame().await {
            let Ok(bytes) = frame.into_data() else { continue };
            // Comments keep the connection open.
            if !bytes.windows(5).any(|window| window == b"data:") {
                continue;
            }
            if !is_open {
                is_open = true;
                opened.wait().await;
            } else if let Some(arrivals) = &arrivals
                && arrivals.send(Instant::now()).is_err()
            {
                return;
            }
        }
    })
}

/// Opens a thousand streams of these topics, and returns once each has got its first event.
async fn open(
    service: &Service,
    topics: &str,
    arrivals: Option<&mpsc::UnboundedSender<Instant>>,
) -> Vec<JoinHandle<()>> {
    let opened = Arc::new(Barrier::new(STREAMS + 1));
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        streams.push(follow(service, topics, Arc::clone(&opened), arrivals.cloned()).await);
    }
    opened.wait().await;
    streams
}

/// Measures the time from a request to trade until the new price is in every open stream.
async fn latency(service: &Service, report: &mut Report) {
    let demonstration = service.demonstration();
    let (market, _) = &demonstration.markets[0];
    let (send, mut arrivals) = mpsc::unbounded_channel();
    let streams = open(service, &format!("m:{market}"), Some(&send)).await;
    let mut times_ms = Vec::new();
    for number in 0..TRADES {
        while arrivals.try_recv().is_ok() {}
        let key = &demonstration.keys[number % demonstration.keys.len()];
        let ask = buy(service, market, key, &format!("live-{number}"), "5.00");
        let sent = Instant::now();
        let (status, answer) = ask_once(service.address(), ask).await.expect("the service answers");
        assert_eq!(status, StatusCode::CREATED, "{}", String::from_utf8_lossy(&answer));
        let end = tokio::time::Instant::from_std(sent + BETWEEN_TRADES);
        let mut arrived = 0;
        while let Ok(Some(at)) = tokio::time::timeout_at(end, arrivals.recv()).await {
            times_ms.push((at - sent).as_secs_f64() * 1e3);
            arrived += 1;
            if arrived == STREAMS {
                break;
            }
        }
        assert_eq!(arrived, STREAMS, "streams that got the price of trade {number}");
        tokio::time::sleep_until(end).await;
    }
    streams.iter().for_each(JoinHandle::abort);
    times_ms.sort_by(f64::total_cmp);
    let p95 = times_ms[times_ms.len() * 95 / 100];
    let figure = format!("p50 {:.0} ms, p95 {p95:.0} ms", median(times_ms.iter().copied()));
    let what = format!("R21: from a request to trade to {STREAMS} open streams");
    let row = Row::new(what, figure).against(format!("{LIVE_GOAL_MS:.0} ms"), [p95 / LIVE_GOAL_MS]);
    report.row(row.goal(Goal::AtMost(1.0)));
}

fn buy(service: &Service, market: &str, key: &str, name: &str, amount: &str) -> Ask {
    let body = format!(r#"{{"marketId":"{market}","outcomeIndex":0,"side":"buy","amount":"{amount}"}}"#);
    post(service.address(), "/v1/trades", key, name, body)
}

/// A load of trades in one market, with what it changed.
struct Round {
    sample: Sample,
    /// Blocks with trades in the market.
    blocks: u64,
}

/// Measures what streams cost the service while trades change their market: repeated topics against one
/// topic, and a stream for each block.
async fn cost(service: &Service, times: Times, report: &mut Report) {
    let (market, _) = service.demonstration().markets[0].clone();
    let store = service.store().await;
    let one = format!("m:{market}");
    let repeated = vec![one.as_str(); REPEATED].join(",");
    let [mut without, mut with_one, mut with_repeated] = [(); 3].map(|()| Vec::new());
    // The first round is a warm-up.
    for round in 0..=times.rounds {
        let quiet = trades(service, &store, &market, times).await;
        let mut beside = Vec::new();
        for topics in [&one, &repeated] {
            let streams = open(service, topics, None).await;
            beside.push(trades(service, &store, &market, times).await);
            streams.iter().for_each(JoinHandle::abort);
        }
        let (Some(of_repeated), Some(of_one)) = (beside.pop(), beside.pop()) else { continue };
        if round > 0 {
            without.push(quiet);
            with_one.push(of_one);
            with_repeated.push(of_repeated);
        }
    }
    store.close().await;
    let cpu_each = |rounds: &[Round]| median(rounds.iter().map(|round| round.sample.cpu_each()));
    let figure = |rounds: &[Round]| format!("{:.0} us CPU a trade", cpu_each(rounds));
    let ratios: Vec<f64> = with_repeated
        .iter()
        .zip(&with_one)
        .map(|(repeated, one)| repeated.sample.cpu_each() / one.sample.cpu_each())
        .collect();
    let what = format!(
        "R25: {TRADES_A_SECOND} trades a second, {STREAMS} streams with {REPEATED} repeated topics each"
    );
    let row = Row::new(what, figure(&with_repeated));
    report.row(row.against(format!("one topic each {}", figure(&with_one)), ratios).goal(Goal::AtMost(1.5)));
    let stream_us: Vec<f64> = with_one
        .iter()
        .zip(&without)
        .map(|(with, without)| {
            let extra_us = with.sample.cpu_us - without.sample.cpu_each() * with.sample.operations as f64;
            extra_us / (with.blocks as f64 * STREAMS as f64)
        })
        .collect();
    let what = "R25: a stream, for each block that changes its market".to_owned();
    let row = Row::new(what, format!("{:.1} us CPU", median(stream_us.iter().copied())));
    let limit = format!("{STREAM_GOAL_US:.0} us; without streams {}", figure(&without));
    report.row(row.against(limit, stream_us.iter().map(|us| us / STREAM_GOAL_US)).goal(Goal::AtMost(1.0)));
}

/// Number of the next trade, so that all requests of a run differ.
static NEXT_TRADE: AtomicU64 = AtomicU64::new(0);

/// Trades in the market until all trades have ended.
async fn trades(service: &Service, store: &Store, market: &str, times: Times) -> Round {
    let (keys, market) = (service.demonstration().keys, market.to_owned());
    let (address, run) = (service.address().to_owned(), std::process::id());
    let make = {
        let (address, market) = (address.clone(), market.clone());
        move |connection: usize, _: u64| {
            let number = NEXT_TRADE.fetch_add(1, Ordering::Relaxed);
            let key = &keys[(connection + number as usize) % keys.len()];
            let body = format!(r#"{{"marketId":"{market}","outcomeIndex":0,"side":"buy","amount":"0.05"}}"#);
            post(&address, "/v1/trades", key, &format!("live-{run}-{number}"), body)
        }
    };
    let before = blocks(store, &market).await;
    let begun = Begun::now(service.process());
    let time = times.trades * 2;
    let process = service.process();
    let load = load::paced(&address, process, TRADES_A_SECOND, time, StatusCode::CREATED, make).await;
    settle(store).await;
    let sample = begun.end(load.sample.operations);
    Round { sample, blocks: blocks(store, &market).await - before }
}

/// Returns the number of blocks with trades in the market.
async fn blocks(store: &Store, market: &str) -> u64 {
    const SQL: &str = "SELECT COUNT(DISTINCT block_number) FROM movements WHERE market_id = $1";
    let read: Result<Option<i64>, StoreError> = store
        .read(market.to_owned(), |tx, market| {
            Box::pin(async move { tx.find(SQL, &store::params![market.as_str()], |row| row.only()).await })
        })
        .await;
    read.expect("the database answers").map_or(0, i64::unsigned_abs)
}
