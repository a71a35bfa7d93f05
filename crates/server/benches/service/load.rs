//! A load of HTTP/1.1 requests over connections that are kept alive, each with one request at a time on its way.

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

/// A request whole.
pub type Ask = Request<Full<Bytes>>;

/// One connection.
pub struct Connection(SendRequest<Full<Bytes>>);

impl Connection {
    /// Opens it.
    pub async fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket");
        let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("a connection");
        tokio::spawn(connection);
        Self(sender)
    }

    /// Asks once.
    pub async fn ask(&mut self, ask: Ask) -> Result<(StatusCode, Bytes), hyper::Error> {
        self.0.ready().await?;
        let answer = self.0.send_request(ask).await?;
        let status = answer.status();
        Ok((status, answer.into_body().collect().await?.to_bytes()))
    }
}

/// Asks once, over a connection of its own; `None` where nobody answers.
pub async fn ask_once(address: &str, ask: Ask) -> Option<(StatusCode, Bytes)> {
    let stream = TcpStream::connect(address).await.ok()?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    Connection(sender).ask(ask).await.ok()
}

/// What a load gave.
#[derive(Debug)]
pub struct Load {
    /// Answers with the status that was wanted.
    pub sample: Sample,
    /// The median of their times, in microseconds.
    pub p50_us: f64,
    /// The times of which one in a hundred takes longer.
    pub p99_us: f64,
}

/// What one connection saw.
#[derive(Default)]
struct Seen {
    times_us: Vec<f64>,
}

/// Asks for `time` over `connections` connections. `make` makes the n-th request of a connection, and every answer must
/// have the status `wanted`.
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
            let mut seen = Seen::default();
            let mut number = 0;
            while Instant::now() < end {
                let ask = make(index, number);
                let start = Instant::now();
                let (status, body) = connection.ask(ask).await.expect("the server answers");
                seen.times_us.push(start.elapsed().as_secs_f64() * 1e6);
                assert_eq!(status, wanted, "{}", String::from_utf8_lossy(&body));
                number += 1;
            }
            seen
        });
    }
    let seen = tasks.join_all().await;
    let mut times_us: Vec<f64> = seen.into_iter().flat_map(|seen| seen.times_us).collect();
    let sample = begun.end(times_us.len() as u64);
    times_us.sort_by(f64::total_cmp);
    let p99_us = times_us[(times_us.len() - 1) * 99 / 100];
    Load { sample, p50_us: median(times_us), p99_us }
}
