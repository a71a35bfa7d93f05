//! Reuse of connections.

use std::sync::Arc;

use domain::webhook::target::TargetPolicy;
use futures::future::join_all;
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;

use crate::receiver::Receiver;
use crate::{CUT, Names, answered, local_sender, local_target, post, post_for, sender};

const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\n\r\n";

#[tokio::test]
async fn deliveries_of_one_endpoint_share_a_connection_and_a_lookup() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let names = Arc::new(Names::default().with("hooks.example.com", &[&["127.0.0.1"]]));
    let sender = sender(TargetPolicy::development(), Arc::clone(&names));
    let url = format!("http://hooks.example.com:{}/", receiver.address.port());
    for _ in 0..4 {
        assert_eq!(post(&sender, &local_target(&url)).await.outcome, answered(200));
    }
    assert_eq!((receiver.seen.connections(), receiver.seen.requests().len()), (1, 4));
    assert_eq!(names.asked("hooks.example.com"), 1);
}

#[tokio::test]
async fn no_two_endpoints_share_a_connection() {
    let receiver = Receiver::answering(NO_CONTENT).await;
    let sender = local_sender();
    for _ in 0..3 {
        for (user, path) in [(1, "/a"), (1, "/b"), (2, "/a"), (3, "/a?b")] {
            let attempt = post_for(&sender, user, &receiver.target(path)).await;
            assert_eq!(attempt.outcome, answered(204));
        }
    }
    assert_eq!((receiver.seen.connections(), receiver.seen.requests().len()), (4, 12));
}

#[tokio::test]
async fn another_name_or_port_has_its_own_connection() {
    let receiver = Receiver::answering(NO_CONTENT).await;
    let names = Names::default()
        .with("one.example.com", &[&["127.0.0.1"]])
        .with("two.example.com", &[&["127.0.0.1"]]);
    let sender = sender(TargetPolicy::development(), Arc::new(names));
    for host in ["one.example.com", "two.example.com", "127.0.0.1"] {
        let url = format!("http://{host}:{}/", receiver.address.port());
        assert_eq!(post(&sender, &local_target(&url)).await.outcome, answered(204));
    }
    assert_eq!(receiver.seen.connections(), 3);
}

#[tokio::test]
async fn concurrent_deliveries_have_separate_reusable_connections() {
    let receiver = Receiver::answering(NO_CONTENT).await;
    let (sender, target) = (local_sender(), receiver.target("/"));
    for _ in 0..3 {
        let attempts = join_all((0..8).map(|_| post(&sender, &target))).await;
        assert!(attempts.iter().all(|attempt| attempt.outcome == answered(204)));
    }
    assert_eq!(receiver.seen.requests().len(), 24);
    assert!(receiver.seen.connections() <= 8, "{}", receiver.seen.connections());
}

#[tokio::test]
async fn a_connection_is_reused_only_after_a_complete_answer() {
    let long = format!("HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n{}", "a".repeat(70_000));
    for answer in [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        long.as_str(),
    ] {
        let receiver = Receiver::answering(answer.to_owned()).await;
        let sender = local_sender();
        for connections in 1..=3 {
            assert_eq!(post(&sender, &receiver.target("/")).await.outcome, answered(200));
            assert_eq!(receiver.seen.connections(), connections, "{answer:.60}");
        }
    }
}

#[tokio::test]
async fn an_answer_of_64_kib_keeps_its_connection_usable() {
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 65536\r\n\r\n{}", "a".repeat(65_536));
    let receiver = Receiver::answering(answer).await;
    let sender = local_sender();
    for _ in 0..3 {
        assert_eq!(post(&sender, &receiver.target("/")).await.outcome, answered(200));
    }
    assert_eq!(receiver.seen.connections(), 1);
}

#[tokio::test]
async fn unsolicited_bytes_do_not_answer_the_next_delivery() {
    let twice = format!("{NO_CONTENT}HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let receiver = Receiver::answering(twice).await;
    let sender = local_sender();
    for _ in 0..3 {
        assert_eq!(post(&sender, &receiver.target("/")).await.outcome, answered(204));
    }
}

/// Starts a receiver whose first connection responds a second time, with 410, when it is told to.
/// Returns it with the signals to do so and that it has.
async fn late_receiver() -> (Receiver, Arc<Notify>, Arc<Notify>) {
    let (late, is_sent) = (Arc::<Notify>::default(), Arc::<Notify>::default());
    let signals = (Arc::clone(&late), Arc::clone(&is_sent));
    let receiver = Receiver::scripted(move |mut stream, number, seen| {
        let (late, is_sent) = signals.clone();
        async move {
            while seen.read(&mut stream).await {
                stream.write_all(NO_CONTENT.as_bytes()).await.unwrap();
                if number == 1 {
                    late.notified().await;
                    stream.write_all(b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n").await.unwrap();
                    is_sent.notify_one();
                }
            }
        }
    })
    .await;
    (receiver, late, is_sent)
}

/// The runtime has one thread, so the sender's idle connection cannot read the second response
/// before the next request is ready to be written.
#[tokio::test]
async fn a_late_second_response_does_not_answer_the_endpoints_next_delivery() {
    let (receiver, late, is_sent) = late_receiver().await;
    let (sender, target) = (local_sender(), receiver.target("/"));
    assert_eq!(post(&sender, &target).await.outcome, answered(204));
    late.notify_one();
    is_sent.notified().await;
    assert_eq!(post(&sender, &target).await.outcome, answered(204));
    assert_eq!((receiver.seen.connections(), receiver.seen.requests().len()), (2, 2));
}

#[tokio::test]
async fn a_late_second_response_answers_no_other_delivery() {
    let (receiver, late, is_sent) = late_receiver().await;
    let (sender, target) = (local_sender(), receiver.target("/"));
    assert_eq!(post(&sender, &target).await.outcome, answered(204));
    late.notify_one();
    is_sent.notified().await;
    // The same user's next event and another user's.
    for (user, requests) in [(1, 2), (2, 3), (1, 4)] {
        assert_eq!(post_for(&sender, user, &target).await.outcome, answered(204));
        assert_eq!(receiver.seen.requests().len(), requests);
    }
    assert_eq!(receiver.seen.connections(), 3);
}

#[tokio::test]
async fn a_broken_reused_connection_does_not_post_twice() {
    let receiver = Receiver::scripted(|mut stream, number, seen| async move {
        // The first connection reads a second delivery and closes instead of responding.
        while seen.read(&mut stream).await && !(number == 1 && seen.requests().len() == 2) {
            stream.write_all(NO_CONTENT.as_bytes()).await.unwrap();
        }
    })
    .await;
    let sender = local_sender();
    for (outcome, connections) in [(answered(204), 1), (CUT, 1), (answered(204), 2), (answered(204), 2)] {
        assert_eq!(post(&sender, &receiver.target("/")).await.outcome, outcome);
        assert_eq!(receiver.seen.connections(), connections);
    }
    assert_eq!(receiver.seen.requests().len(), 4);
}

#[tokio::test]
async fn a_delivery_on_a_broken_new_connection_is_reported_as_cut() {
    let receiver = Receiver::scripted(|mut stream, _, seen| async move {
        seen.read(&mut stream).await;
    })
    .await;
    let sender = local_sender();
    for connections in [1, 2] {
        assert_eq!(post(&sender, &receiver.target("/")).await.outcome, CUT);
        assert_eq!(receiver.seen.connections(), connections);
    }
}
