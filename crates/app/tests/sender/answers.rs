//! Contents of requests and interpretation of responses.

use app::limits::Limits;
use app::webhooks::sender::PostOutcome;
use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};

use crate::receiver::Receiver;
use crate::{BODY, answered, endpoint, local_sender, post};

#[tokio::test]
async fn a_delivery_is_one_post_with_its_headers_and_exact_body() {
    let receiver = Receiver::answering("HTTP/1.1 204 No Content\r\n\r\n").await;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(HeaderName::from_static("webhook-id"), HeaderValue::from_static("evt_1"));
    let target = receiver.target("/hooks?key=a%20b");
    let attempt = local_sender()
        .post(Limits::memory().budgets(), endpoint(1, &target), headers, Bytes::from_static(BODY))
        .await;
    assert_eq!((attempt.outcome, attempt.answer_head), (answered(204), None));
    let expected = format!(
        "POST /hooks?key=a%20b HTTP/1.1\r\ncontent-type: application/json\r\nwebhook-id: evt_1\r\n\
         host: {}\r\ncontent-length: 14\r\n\r\n{{\"id\":\"evt_1\"}}",
        receiver.address
    );
    assert_eq!(receiver.seen.requests(), [expected]);
}

#[tokio::test]
async fn an_answer_has_its_status_retry_after_and_start_of_body() {
    let receiver = Receiver::answering(
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 120\r\nContent-Length: 12\r\n\r\nback \0soon\r\n",
    )
    .await;
    let attempt = post(&local_sender(), &receiver.target("/")).await;
    assert_eq!(attempt.outcome, PostOutcome::Answered { status: 503, retry_after: Some("120".to_owned()) });
    assert_eq!(attempt.answer_head.as_deref(), Some("back  soon"));
}

#[tokio::test]
async fn every_status_is_reported_unchanged() {
    let sender = local_sender();
    for status in [200, 201, 202, 299, 300, 304, 400, 401, 404, 408, 410, 429, 499, 500, 502, 599, 600, 999] {
        let receiver =
            Receiver::answering(format!("HTTP/1.1 {status} Said\r\nContent-Length: 0\r\n\r\n")).await;
        assert_eq!(post(&sender, &receiver.target("/")).await.outcome, answered(status));
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let canary = Receiver::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let sender = local_sender();
    for status in [301, 302, 303, 307, 308] {
        let answer = format!(
            "HTTP/1.1 {status} Elsewhere\r\nLocation: http://{}/\r\nRefresh: 0; url=http://{0}/\r\n\
             Content-Length: 0\r\n\r\n",
            canary.address
        );
        let receiver = Receiver::answering(answer).await;
        assert_eq!(post(&sender, &receiver.target("/")).await.outcome, answered(status));
        assert_eq!(receiver.seen.requests().len(), 1);
    }
    assert_eq!(canary.seen.connections(), 0);
    // The canary would have noticed a request.
    assert_eq!(post(&sender, &canary.target("/")).await.outcome, answered(200));
    assert_eq!(canary.seen.connections(), 1);
}

#[tokio::test]
async fn interim_answers_are_skipped() {
    let receiver = Receiver::answering(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
         HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok",
    )
    .await;
    let attempt = post(&local_sender(), &receiver.target("/")).await;
    assert_eq!((attempt.outcome, attempt.answer_head.as_deref()), (answered(201), Some("ok")));
}

#[tokio::test]
async fn a_compressed_body_is_never_decompressed() {
    // The beginning of a gzip stream that would decompress to endless zeros.
    let packed =
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xed\xc1\x01\x0d\x00\x00\x00\xc2\xa0\xf7\x4f\x6d\x0e";
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", packed.len());
    let receiver = Receiver::answering([head.as_bytes(), packed].concat()).await;
    let attempt = post(&local_sender(), &receiver.target("/")).await;
    assert_eq!(attempt.outcome, answered(200));
    assert!(attempt.answer_head.unwrap().starts_with("\u{fffd}"));
    assert!(!receiver.seen.requests().concat().contains("accept-encoding"));
}

#[tokio::test]
async fn one_kibibyte_of_the_body_is_stored() {
    let answer = format!("HTTP/1.1 400 Bad Request\r\nContent-Length: 60000\r\n\r\n{}", "é".repeat(30_000));
    let receiver = Receiver::answering(answer).await;
    let attempt = post(&local_sender(), &receiver.target("/")).await;
    assert_eq!((attempt.outcome, attempt.answer_head.unwrap()), (answered(400), "é".repeat(512)));
}

#[tokio::test]
async fn an_answer_with_a_truncated_body_counts() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nthat was",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nthat was\r\nnonsense\r\n",
        "HTTP/1.0 200 OK\r\n\r\nthat was",
    ] {
        let receiver = Receiver::answering_once(answer).await;
        let attempt = post(&local_sender(), &receiver.target("/")).await;
        let told = (attempt.outcome, attempt.answer_head.as_deref());
        assert_eq!(told, (answered(200), Some("that was")), "{answer}");
    }
}

#[tokio::test]
async fn an_upgrade_offer_counts_as_an_answer() {
    let receiver = Receiver::answering(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    )
    .await;
    let sender = local_sender();
    for connections in 1..=2 {
        assert_eq!(post(&sender, &receiver.target("/")).await.outcome, answered(101));
        assert_eq!(receiver.seen.connections(), connections);
    }
}
