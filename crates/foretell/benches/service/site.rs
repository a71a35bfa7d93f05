//! The pages of the site: the cost of an anonymous page compared with a plain response of the same
//! length, and the time until a trade's price is in a thousand browsers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::handshake;
use hyper::header::HOST;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{Barrier, mpsc};

use crate::Times;
use crate::bare::Bare;
use crate::load::{self, Ask, CONNECTIONS, Load, Rounds, ask_once};
use crate::public::{FORWARDED, NEXT, from_everywhere};
use crate::report::{Goal, Report, Row};
use crate::sample::median;
use crate::service::{Service, post};

const STREAMS: usize = 1_000;
const TRADES: usize = 20;
/// Far longer than a price may take, so that each trade's events are over before the next trade.
const BETWEEN_TRADES: Duration = Duration::from_secs(1);
const LIVE_GOAL_MS: f64 = 250.0;

/// Measures the pages and the live prices of a service that reports its clients' addresses.
pub async fn measure(service: &Service, times: Times, report: &mut Report) {
    pages(service, times, report).await;
    live(service, report).await;
}

/// Creates requests for a page under the site's own host, each few from a new address.
fn page_requests(service: &Service, path: &str) -> impl Fn(usize, u64) -> Ask + use<> {
    let make = from_everywhere(service, &[path.to_owned()]);
    let host = own_host(service);
    move |connection, number| {
        let mut ask = make(connection, number);
        ask.headers_mut().insert(HOST, host.parse().expect("a host"));
        ask
    }
}

fn own_host(service: &Service) -> String {
    let (_, port) = service.address().rsplit_once(':').expect("a port");
    format!("localhost:{port}")
}

async fn pages(service: &Service, times: Times, report: &mut Report) {
    let (market, _) = &service.demonstration().markets[0];
    let bare = Bare::start().await;
    for (what, path) in [
        ("home", "/".to_owned()),
        ("markets", "/markets".to_owned()),
        ("a market", format!("/markets/{market}")),
    ] {
        let first = ask_once(service.address(), page_requests(service, &path)(0, 0)).await;
        let (status, body) = first.expect("the service answers");
        assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
        let bytes = body.len();
        let same = format!("/bytes/{bytes}");
        let (mut bares, mut ours) = (Rounds::default(), Rounds::default());
        // The first round is a warm-up.
        for round in 0..=times.rounds {
            let plain = from_everywhere(service, std::slice::from_ref(&same));
            let (address, process) = (bare.address(), bare.process());
            let plain: Load =
                load::run(address, process, CONNECTIONS, times.reads, StatusCode::OK, plain).await;
            let make = page_requests(service, &path);
            let (address, process) = (service.address(), service.process());
            let page = load::run(address, process, CONNECTIONS, times.reads, StatusCode::OK, make).await;
            if round > 0 {
                bares.push(plain);
                ours.push(page);
            }
        }
        let ratios = ours.ratios(&bares, |ours, bare| ours.sample.cpu_each() / bare.sample.cpu_each());
        let row = Row::new(format!("R20: page, {what}, {bytes} bytes"), ours.figure());
        report.row(row.against(format!("bare axum {}", bares.figure()), ratios).goal(Goal::AtMost(3.0)));
    }
}

/// Opens a stream of a market and sends the time of each event after the first one.
async fn follow(
    service: &Service,
    market: &str,
    opened: Arc<Barrier>,
    arrivals: mpsc::UnboundedSender<Instant>,
) {
    let (address, host, path) =
        (service.address().to_owned(), own_host(service), format!("/app/live?topics=m:{market}"));
    let client = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed) as u32;
    tokio::spawn(async move {
        let [_, b, c, d] = (client * 256).to_be_bytes();
        let request = Request::get(path).header(HOST, host).header(FORWARDED, format!("11.{b}.{c}.{d}"));
        let request: Ask = request.body(Full::default()).expect("a request");
        let stream = TcpStream::connect(address).await.expect("the service listens");
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.expect("a connection");
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
            if is_open {
                if arrivals.send(Instant::now()).is_err() {
                    return;
                }
            } else {
                is_open = true;
                opened.wait().await;
            }
        }
    });
}

/// Measures the time from a request to trade until the new price is in every open stream.
async fn live(service: &Service, report: &mut Report) {
    let demonstration = service.demonstration();
    let (market, _) = &demonstration.markets[0];
    let opened = Arc::new(Barrier::new(STREAMS + 1));
    let (send, mut arrivals) = mpsc::unbounded_channel();
    for _ in 0..STREAMS {
        follow(service, market, Arc::clone(&opened), send.clone()).await;
    }
    opened.wait().await;
    let mut times_ms = Vec::new();
    for number in 0..TRADES {
        while arrivals.try_recv().is_ok() {}
        let body =
            format!("{{\"marketId\":\"{market}\",\"outcomeIndex\":0,\"side\":\"buy\",\"amount\":\"5.00\"}}");
        let key = &demonstration.keys[number % demonstration.keys.len()];
        let ask = post(service.address(), "/v1/trades", key, &format!("live-{number}"), body);
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
    }
    times_ms.sort_by(f64::total_cmp);
    let p95 = times_ms[times_ms.len() * 95 / 100];
    let figure = format!("p50 {:.0} ms, p95 {p95:.0} ms", median(times_ms.iter().copied()));
    let what = format!("R21: from a request to trade to {STREAMS} open streams");
    let row = Row::new(what, figure).against(format!("{LIVE_GOAL_MS:.0} ms"), [p95 / LIVE_GOAL_MS]);
    report.row(row.goal(Goal::AtMost(1.0)));
}
