//! The optional signature of requests.

use domain::ErrorCode;
use domain::signature::{SignedRequest, TOLERANCE_MS};
use http_testkit::RequestBuilder;
use serde_json::{Value, json};
use testkit::TestMarket;

use crate::scene::{Scene, assert_refused};

const NAME: &str = "x-service-signature";
const TRADES: &str = "/v1/trades";

fn body(market: TestMarket) -> String {
    // Unusual whitespace: the raw bytes are signed, not their meaning.
    let value: Value = json!({ "marketId": market.id, "outcomeIndex": 0, "amount": "1", "side": "buy" });
    format!("  {value}\n")
}

fn trade(scene: &Scene, body: &str) -> RequestBuilder {
    scene.client.call("POST", TRADES).raw_json(body.to_owned())
}

fn signed(scene: &Scene, body: &str, offset_ms: i64) -> String {
    let request = SignedRequest { method: "POST", path: TRADES, body: body.as_bytes() };
    request.sign(&scene.key.plaintext, scene.app.ctx.now().plus_ms(offset_ms))
}

#[tokio::test]
async fn signed_and_unsigned_requests_are_accepted() {
    let scene = Scene::new().await;
    let body = body(scene.market);
    trade(&scene, &body).await.created();
    for offset_ms in [0, TOLERANCE_MS, -TOLERANCE_MS] {
        trade(&scene, &body).header(NAME, signed(&scene, &body, offset_ms)).await.created();
    }
    // The query is not signed. It fails its own validation.
    let query = scene.client.call("POST", "/v1/trades?x=1").raw_json(body.clone());
    assert_eq!(query.header(NAME, signed(&scene, &body, 0)).await.pointers(), ["/x"]);
    // During a rotation, a request may have two signatures. One valid signature is enough.
    let both = format!("{},v1={}", signed(&scene, &body, 0), "0".repeat(64));
    trade(&scene, &body).header(NAME, both).await.created();
}

#[tokio::test]
async fn a_captured_request_with_a_client_request_id_cannot_create_a_second_trade() {
    let scene = Scene::new().await;
    let sent = async |body: &str, signature: &str, idempotency_key: &str| {
        let call = trade(&scene, body).header(NAME, signature).idempotent(idempotency_key);
        call.await.json()["trade"]["id"].clone()
    };
    let plain = body(scene.market);
    let captured = signed(&scene, &plain, 0);
    assert_ne!(sent(&plain, &captured, "a").await, sent(&plain, &captured, "b").await);
    let named = plain.replacen('{', r#"{"clientRequestId":"order-1","#, 1);
    let captured = signed(&scene, &named, 0);
    assert_eq!(sent(&named, &captured, "c").await, sent(&named, &captured, "d").await);
}

#[tokio::test]
async fn an_invalid_signature_is_rejected() {
    let scene = Scene::new().await;
    let body = body(scene.market);
    let right = signed(&scene, &body, 0);
    let other = SignedRequest { method: "POST", path: TRADES, body: body.as_bytes() };
    let nine = format!("{right}{}", format!(",v1={}", "0".repeat(64)).repeat(8));
    for header in [
        String::new(),
        "t=1".to_owned(),
        right.replace("v1=", "v2="),
        right.replace("t=", "t=0"),
        nine,
        signed(&scene, &body, TOLERANCE_MS + 1),
        signed(&scene, &body, -TOLERANCE_MS - 1),
        signed(&scene, body.trim(), 0),
        other.sign("another secret", scene.app.ctx.now()),
    ] {
        let call = trade(&scene, &body).header(NAME, &header);
        assert_refused(&scene.app, call, ErrorCode::RequestSignatureInvalid).await;
    }
    let twice = trade(&scene, &body).header(NAME, &right).header(NAME, &right);
    assert_refused(&scene.app, twice, ErrorCode::RequestSignatureInvalid).await;
    let bytes = trade(&scene, &body).header(NAME, b"\xff");
    assert_refused(&scene.app, bytes, ErrorCode::RequestSignatureInvalid).await;
}

#[tokio::test]
async fn a_signature_is_checked_after_the_size_of_the_body_and_before_its_form() {
    let scene = Scene::new().await;
    let malformed = trade(&scene, "{").header(NAME, signed(&scene, "}", 0));
    assert_refused(&scene.app, malformed, ErrorCode::RequestSignatureInvalid).await;
    let malformed = trade(&scene, "{").header(NAME, signed(&scene, "{", 0)).await;
    assert_eq!(malformed.pointers(), [""]);
    let large = " ".repeat(70_000);
    let call = trade(&scene, &large).header(NAME, signed(&scene, &large, 0));
    assert_refused(&scene.app, call, ErrorCode::PayloadTooLarge).await;
    // An invalid header is rejected before the body is read.
    let call = trade(&scene, &large).header(NAME, signed(&scene, &large, TOLERANCE_MS + 1));
    assert_refused(&scene.app, call, ErrorCode::RequestSignatureInvalid).await;
}

#[tokio::test]
async fn a_read_can_be_signed_over_an_empty_body() {
    let Scene { app, key, client, .. } = Scene::new().await;
    let sign = |body: &[u8]| {
        SignedRequest { method: "GET", path: "/v1/markets", body }.sign(&key.plaintext, app.ctx.now())
    };
    client.get("/v1/markets?limit=5").header(NAME, sign(b"")).await.ok();
    client.get("/v1/markets").header(NAME, sign(b"x")).await.refused(ErrorCode::RequestSignatureInvalid);
    client.get("/v1/trades").header(NAME, sign(b"")).await.refused(ErrorCode::RequestSignatureInvalid);
}
