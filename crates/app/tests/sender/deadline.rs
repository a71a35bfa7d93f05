//! The total time limit of ten seconds.

use std::sync::Arc;
use std::time::Duration;

use app::webhooks::sender::{Attempt, PostOutcome, Resolver, WebhookSender};
use domain::webhook::target::{Target, TargetPolicy};
use futures::future::BoxFuture;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, sleep_until};
use tokio_rustls::rustls::RootCertStore;

use crate::clock::StoppedClock;
use crate::receiver::{Receiver, Seen};
use crate::{answered, local_sender, local_target, post, trusting};

fn begin(sender: WebhookSender, target: Target) -> JoinHandle<Attempt> {
    tokio::spawn(async move { post(&sender, &target).await })
}

/// Asserts that the attempt timed out after ten seconds, and at most half a second later. The clock
/// runs again, so that an attempt that never ends fails the test instead of blocking it.
async fn assert_timed_out(clock: StoppedClock, attempt: JoinHandle<Attempt>) {
    drop(clock);
    let attempt = attempt.await.unwrap();
    assert_eq!((&attempt.outcome, attempt.answer_head.as_deref()), (&PostOutcome::TimedOut, None));
    assert!((10_000..=10_500).contains(&attempt.duration_ms), "{attempt:?}");
}

/// Sends `first` at once, and `rest` after the given time.
async fn answering_after(after: Duration, first: &'static str, rest: &'static str) -> Receiver {
    Receiver::scripted(move |mut stream, _, seen: Arc<Seen>| async move {
        seen.read(&mut stream).await;
        let at = Instant::now() + after;
        stream.write_all(first.as_bytes()).await.unwrap();
        sleep_until(at).await;
        let _ = stream.write_all(rest.as_bytes()).await;
        std::future::pending().await
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_9_9_seconds_counts() {
    let clock = StoppedClock::new();
    for (first, rest) in [
        ("", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "ok"),
    ] {
        let receiver = answering_after(Duration::from_millis(9_900), first, rest).await;
        let attempt = begin(local_sender(), receiver.target("/"));
        receiver.seen.request().await;
        clock.pass(Duration::from_millis(9_900)).await;
        let attempt = attempt.await.unwrap();
        assert_eq!((attempt.outcome, attempt.duration_ms), (answered(200), 9_900));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_10_1_seconds_is_too_late() {
    for (first, rest) in [
        ("", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "ok"),
        ("HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ] {
        let clock = StoppedClock::new();
        let receiver = answering_after(Duration::from_millis(10_100), first, rest).await;
        let attempt = begin(local_sender(), receiver.target("/"));
        receiver.seen.request().await;
        clock.pass(Duration::from_millis(10_100)).await;
        assert_timed_out(clock, attempt).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_trickle_of_bytes_does_not_extend_the_deadline() {
    for (first, byte) in [
        ("HTTP/1.1 200 OK\r\nX-Slow: ", "a"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", "a"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n"),
        ("", "HTTP/1.1 100 Continue\r\n\r\n"),
    ] {
        let clock = StoppedClock::new();
        let receiver = Receiver::scripted(move |mut stream, _, seen| async move {
            seen.read(&mut stream).await;
            let _ = stream.write_all(first.as_bytes()).await;
            let mut seconds = interval(Duration::from_secs(1));
            while stream.write_all(byte.as_bytes()).await.is_ok() {
                seconds.tick().await;
            }
        })
        .await;
        let attempt = begin(local_sender(), receiver.target("/"));
        receiver.seen.request().await;
        clock.pass(Duration::from_secs(11)).await;
        assert_timed_out(clock, attempt).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_receiver_times_out_after_10_seconds() {
    for scheme in ["http", "https"] {
        let clock = StoppedClock::new();
        let (connected, mut connections) = tokio::sync::mpsc::unbounded_channel();
        let receiver = Receiver::scripted(move |stream, _, _| {
            connected.send(stream).unwrap();
            async {}
        })
        .await;
        let attempt = begin(local_sender(), local_target(&format!("{scheme}://{}/", receiver.address)));
        let mut stream = connections.recv().await.unwrap();
        clock.pass(Duration::from_secs(11)).await;
        assert_timed_out(clock, attempt).await;
        // The connection must be closed, so that the sent data ends.
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.unwrap();
    }
}

struct SilentNameServer;

impl Resolver for SilentNameServer {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<std::net::IpAddr>>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_of_the_name_server_counts() {
    let clock = StoppedClock::new();
    let tls = trusting(RootCertStore::empty());
    let sender = WebhookSender::with_tls(TargetPolicy::public(), Arc::new(SilentNameServer), tls);
    let attempt = begin(sender, local_target("https://hooks.example.com/"));
    tokio::task::yield_now().await;
    clock.pass(Duration::from_secs(11)).await;
    assert_timed_out(clock, attempt).await;
}
