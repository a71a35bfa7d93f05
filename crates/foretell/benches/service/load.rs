//! A load of HTTP/1.1 requests over keep-alive connections, with one request at a time per
//! connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::process::Process;
use crate::sample::{Begun, Sample, median};

/// Default number of connections.
pub const CONNECTIONS: usize = 16;

/// A complete request.
pub type Ask = Request<Full<Bytes>>;

pub struct Connection(SendRequest<Full<Bytes>>);

impl Connection {
    pub async fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket");
        let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("a connection");
        tokio::spawn(connection);
        Self(sender)
    }

    /// Sends one request.
    pub async fn ask(&mut self, ask: Ask) -> Result<(StatusCode, Bytes), hyper::Error> {
        self.0.ready().await?;
        let answer = self.0.send_request(ask).await?;
        let status = answer.status();
        Ok((status, answer.into_body().collect().await?.to_bytes()))
    }

    /// Sends one request, asserts the response's status, and returns the latency in microseconds.
    async fn timed(&mut self, ask: Ask, wanted: StatusCode) -> f64 {
        let start = Instant::now();
        let (status, body) = self.ask(ask).await.expect("the server answers");
        let time_us = start.elapsed().as_secs_f64() * 1e6;
        assert_eq!(status, wanted, "{}", String::from_utf8_lossy(&body));
        time_us
    }
}

/// Sends one request over its own connection. Returns `None` if the server does not respond.
pub async fn ask_once(address: &str, ask: Ask) -> Option<(StatusCode, Bytes)> {
    let stream = TcpStream::connect(address).await.ok()?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    Connection(sender).ask(ask).await.ok()
}

/// The result of a load.
#[derive(Debug)]
pub struct Load {
    /// Responses with the expected status.
    pub sample: Sample,
    /// Median latency in microseconds.
    pub p50_us: f64,
    /// 99th percentile of the latency in microseconds.
    pub p99_us: f64,
}

impl Load {
    fn new(sample: Sample, mut times_us: Vec<f64>) -> Self {
        times_us.sort_by(f64::total_cmp);
        let p99_us = times_us[(times_us.len() - 1) * 99 / 100];
        Self { sample, p50_us: median(times_us), p99_us }
    }
}

/// The rounds of one load.
#[derive(Debug, Default)]
pub struct Rounds(Vec<Load>);

impl Rounds {
    pub fn push(&mut self, load: Load) {
        self.0.push(load);
    }

    /// Returns the median of a value over the rounds.
    pub fn median(&self, value: impl Fn(&Load) -> f64) -> f64 {
        median(self.0.iter().map(value))
    }

    /// Returns the CPU microseconds per request.
    pub fn cpu_each(&self) -> f64 {
        self.median(|load| load.sample.cpu_each())
    }

    /// Formats the figure of a report row.
    pub fn figure(&self) -> String {
        let (rate, p50_us) = (self.median(|load| load.sample.rate()), self.median(|load| load.p50_us));
        let (cpu_us, p99_us) = (self.cpu_each(), self.median(|load| load.p99_us));
        format!("{cpu_us:.1} us CPU; {rate:.0}/s, p50 {p50_us:.0} us, p99 {p99_us:.0} us")
    }

    /// Returns `value` for each round and the same round of `other`.
    pub fn ratios(&self, other: &Self, value: impl Fn(&Load, &Load) -> f64) -> Vec<f64> {
        self.0.iter().zip(&other.0).map(|(ours, other)| value(ours, other)).collect()
    }

    /// Returns the baseline's CPU time as a fraction of this load's, per round.
    pub fn parts_of_cpu(&self, limit: &Self) -> Vec<f64> {
        self.ratios(limit, |ours, limit| limit.sample.cpu_each() / ours.sample.cpu_each())
    }
}

/// Sends requests for `time` over `connections` connections. `make` creates the n-th request of a
/// connection. Every response must have the status `wanted`.
pub async fn run<M>(
    address: &str,
    process: Process,
    connections: usize,
    time: Duration,
    wanted: StatusCode,
    make: M,
) -> Load
where
    M: Fn(usize, u64) -> Ask + Send + Sync + 'static,
{
    let make = Arc::new(make);
    let mut open = Vec::with_capacity(connections);
    for _ in 0..connections {
        open.push(Connection::open(address).await);
    }
    let begun = Begun::now(process);
    let end = Instant::now() + time;
    let mut tasks = JoinSet::new();
    for (index, mut connection) in open.into_iter().enumerate() {
        let make = Arc::clone(&make);
        tasks.spawn(async move {
            let mut times_us = Vec::new();
            let mut number = 0;
            while Instant::now() < end {
                times_us.push(connection.timed(make(index, number), wanted).await);
                number += 1;
            }
            times_us
        });
    }
    let times_us: Vec<f64> = tasks.join_all().await.into_iter().flatten().collect();
    Load::new(begun.end(times_us.len() as u64), times_us)
}

/// Like [`run`], but sends `rate` requests per second in total, independent of the response times.
pub async fn paced<M>(
    address: &str,
    process: Process,
    rate: u32,
    time: Duration,
    wanted: StatusCode,
    make: M,
) -> Load
where
    M: Fn(usize, u64) -> Ask + Send + Sync + 'static,
{
    let make = Arc::new(make);
    let pause = Duration::from_secs(1) * CONNECTIONS as u32 / rate;
    let mut open = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        open.push(Connection::open(address).await);
    }
    let begun = Begun::now(process);
    let begin = tokio::time::Instant::now();
    let mut tasks = JoinSet::new();
    for (index, mut connection) in open.into_iter().enumerate() {
        let make = Arc::clone(&make);
        tasks.spawn(async move {
            let mut times_us = Vec::new();
            // Spread the connections over the interval, so that requests do not come in bursts.
            let mut beats =
                tokio::time::interval_at(begin + pause * index as u32 / CONNECTIONS as u32, pause);
            let mut number = 0;
            while begin.elapsed() < time {
                beats.tick().await;
                times_us.push(connection.timed(make(index, number), wanted).await);
                number += 1;
            }
            times_us
        });
    }
    let times_us: Vec<f64> = tasks.join_all().await.into_iter().flatten().collect();
    Load::new(begun.end(times_us.len() as u64), times_us)
}
