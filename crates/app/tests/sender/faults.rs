//! Receivers that break off, send invalid data, or never stop sending.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use app::webhooks::sender::{NetworkFault, PostOutcome};
use domain::webhook::target::TargetPolicy;
use futures::future::join_all;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::receiver::Receiver;
use crate::{CUT, Names, answered, local_sender, local_target, post, sender};

/// Sends `head` once and `more` repeatedly, up to 100 MB, until the other side closes. Returns the
/// number of bytes sent and a signal for the end.
async fn sending_without_end(
    head: &'static [u8],
    more: &'static [u8],
) -> (Receiver, Arc<AtomicUsize>, Arc<Notify>) {
    let (sent, ended) = (Arc::<AtomicUsize>::default(), Arc::<Notify>::default());
    let shared = (Arc::clone(&sent), Arc::clone(&ended));
    let receiver = Receiver::scripted(move |mut stream, _, seen| {
        let (sent, ended) = shared.clone();
        async move {
            seen.read(&mut stream).await;
            let _ = stream.write_all(head).await;
            while sent.load(Ordering::SeqCst) < 100_000_000 && stream.write_all(more).await.is_ok() {
                sent.fetch_add(more.len(), Ordering::SeqCst);
            }
            ended.notify_one();
        }
    })
    .await;
    (receiver, sent, ended)
}

#[tokio::test]
async fn at_most_64_kib_of_an_endless_body_are_read() {
    for head in [
        &b"HTTP/1.1 200 OK\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5f5e100\r\n",
    ] {
        let (receiver, sent, ended) = sending_without_end(head, &[b'a'; 10_000]).await;
        let attempt = post(&local_sender(), &receiver.target("/")).await;
        assert_eq!((attempt.outcome, attempt.answer_head.unwrap().len()), (answered(200), 1_024));
        ended.notified().await;
        // Anything beyond was in the sockets' buffers.
        assert!(sent.load(Ordering::SeqCst) < 20_000_000, "{sent:?}");
    }
}

#[tokio::test]
async fn an_endless_head_is_not_an_answer() {
    for more in [&[b'a'; 10_000][..], b"X-A: b\r\n", b"HTTP/1.1 200 OK\r\n"] {
        let (receiver, sent, ended) = sending_without_end(b"HTTP/1.1 200 OK\r\nX-Long: ", more).await;
        assert_eq!(post(&local_sender(), &receiver.target("/")).await.outcome, CUT);
        ended.notified().await;
        assert!(sent.load(Ordering::SeqCst) < 20_000_000, "{sent:?}");
    }
}

#[tokio::test]
async fn bytes_that_are_not_http_are_not_an_answer() {
    for answer in [
        "",
        "\r\n\r\n",
        "nonsense\r\n\r\n",
        "HTTP/1.1",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "\x16\x03\x01\x02\0\x01",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let receiver = Receiver::answering_once(answer).await;
        let attempt = post(&local_sender(), &receiver.target("/")).await;
        assert_eq!((attempt.outcome, attempt.answer_head), (CUT, None), "{answer:?}");
        assert_eq!(receiver.seen.connections(), 1, "{answer:?}");
    }
}

#[tokio::test]
async fn a_reset_connection_is_reported_as_cut() {
    for reads in [false, true] {
        let receiver = Receiver::scripted(move |mut stream, _, seen| async move {
            if reads {
                seen.read(&mut stream).await;
            }
            stream.set_zero_linger().unwrap();
        })
        .await;
        assert_eq!(post(&local_sender(), &receiver.target("/")).await.outcome, CUT);
    }
}

#[tokio::test]
async fn a_closed_port_refuses_the_connection() {
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let attempt = post(&local_sender(), &local_target(&format!("http://{address}/"))).await;
    assert_eq!(attempt.outcome, PostOutcome::Unreachable(NetworkFault::Connect));
}

#[tokio::test]
async fn a_name_without_an_address_is_not_found() {
    let names = Arc::new(Names::default().with("empty.example.com", &[&[]]));
    let sender = sender(TargetPolicy::public(), names);
    for url in ["https://empty.example.com/", "https://unknown.example.com/"] {
        assert_eq!(
            post(&sender, &local_target(url)).await.outcome,
            PostOutcome::Unreachable(NetworkFault::Dns)
        );
    }
}

#[tokio::test]
async fn the_next_address_is_tried_if_one_refuses() {
    let receiver = Receiver::answering("HTTP/1.1 204 No Content\r\n\r\n").await;
    let names = Names::default().with("hooks.example.com", &[&["127.0.0.9", "::1", "127.0.0.1"]]);
    let sender = sender(TargetPolicy::development(), Arc::new(names));
    let target = local_target(&format!("http://hooks.example.com:{}/", receiver.address.port()));
    assert_eq!(post(&sender, &target).await.outcome, answered(204));
}

#[tokio::test]
async fn hanging_receivers_do_not_delay_others() {
    let hanging = Receiver::scripted(|mut stream, _, seen| async move {
        seen.read(&mut stream).await;
        std::future::pending().await
    })
    .await;
    let healthy = Receiver::answering("HTTP/1.1 204 No Content\r\n\r\n").await;
    let (sender, target) = (local_sender(), hanging.target("/"));
    let hang = join_all((0..200).map(|_| post(&sender, &target)));
    let deliver = async {
        while hanging.seen.requests().len() < 200 {
            hanging.seen.request().await;
        }
        for _ in 0..100 {
            assert_eq!(post(&sender, &healthy.target("/")).await.outcome, answered(204));
        }
    };
    tokio::select! {
        () = deliver => {}
        _ = hang => panic!("the hanging receivers came to an end first"),
    }
}
