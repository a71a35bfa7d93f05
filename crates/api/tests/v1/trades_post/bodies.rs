//! Malformed bodies. Nothing is stored for any of them.

use axum::body::{Body, Bytes};
use domain::ErrorCode;
use serde_json::json;

use crate::scene::{Scene, assert_invalid, assert_refused};

const LIMIT: usize = 64 * 1024;

#[tokio::test]
async fn only_json_in_utf_8_is_accepted() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let text = json!({ "marketId": market.id, "outcomeIndex": 0, "amount": "1", "side": "buy" }).to_string();
    let post = || client.call("POST", "/v1/trades").body(text.clone());
    assert_refused(&app, post(), ErrorCode::UnsupportedMediaType).await;
    for other in
        ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "json"]
    {
        assert_refused(&app, post().header("content-type", other), ErrorCode::UnsupportedMediaType).await;
    }
    let twice = post().header("content-type", "application/json").header("content-type", "application/json");
    assert_refused(&app, twice, ErrorCode::UnsupportedMediaType).await;
    let packed = post().header("content-type", "application/json").header("content-encoding", "gzip");
    assert_refused(&app, packed, ErrorCode::UnsupportedMediaType).await;
    post().header("content-type", "Application/JSON;charset=UTF-8").await.created();
}

#[tokio::test]
async fn a_body_above_64_kib_is_too_large_with_and_without_content_length() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let trade = json!({ "marketId": market.id, "outcomeIndex": 0, "amount": "1", "side": "buy" }).to_string();
    let padded = |len: usize| trade.clone() + &" ".repeat(len - trade.len());
    let post = |body: Body| client.call("POST", "/v1/trades").raw_json(body);

    let with_length = post(Body::from(padded(65 * 1024))).header("content-length", (65 * 1024).to_string());
    assert_refused(&app, with_length, ErrorCode::PayloadTooLarge).await;
    let parts = padded(LIMIT + 1).into_bytes();
    let parts: Vec<_> =
        parts.chunks(10_000).map(|part| Ok::<_, std::io::Error>(Bytes::copy_from_slice(part))).collect();
    let without_length = post(Body::from_stream(futures::stream::iter(parts)));
    assert_refused(&app, without_length, ErrorCode::PayloadTooLarge).await;
    post(Body::from(padded(LIMIT))).await.created();
}

#[tokio::test]
async fn a_body_that_is_not_one_json_object_is_rejected() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let trade = json!({ "marketId": market.id, "outcomeIndex": 0, "amount": "1", "side": "buy" }).to_string();
    let trailing = format!("{trade} {trade}");
    let bytes = [b"{\"side\": \"\xff\"}".as_slice(), b"\xef\xbb\xbf{}", b"\xff\xfe{\0}\0"];
    let texts = [
        "",
        " ",
        "{",
        "}",
        "null",
        "true",
        "\"text\"",
        "[]",
        &format!("[{trade}]"),
        &trailing,
        &format!("{trade}x"),
    ];
    for body in texts.iter().map(|text| text.as_bytes()).chain(bytes) {
        let call = client.call("POST", "/v1/trades").raw_json(body.to_vec());
        let pointer = if body.ends_with(b"\xff\"}") { "/side" } else { "" };
        assert_invalid(&app, call, &[pointer]).await;
    }
    let broken = futures::stream::iter([Ok(Bytes::from("{")), Err(std::io::Error::other("gone"))]);
    let call = client.call("POST", "/v1/trades").raw_json(Body::from_stream(broken));
    assert_invalid(&app, call, &[""]).await;
}

#[tokio::test]
async fn unknown_repeated_and_mistyped_members_are_reported() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let id = market.id;
    let core = format!(r#""marketId": "{id}", "outcomeIndex": 0, "amount": "1", "side": "buy""#);
    let deep = format!(r#""metadata": {{"k": {}1{}}}"#, "[".repeat(20_000), "]".repeat(20_000));
    for (member, pointer) in [
        (r#""clientRequestID": "a""#, "/clientRequestID"),
        (r#""a/b~c": 1"#, "/a~1b~0c"),
        (r#""side": "buy""#, "/side"),
        (r#""amount": "2""#, "/amount"),
        (r#""metadata": {"k": "1", "k": "2"}"#, "/metadata/k"),
        (r#""metadata": {"k": 1}"#, "/metadata/k"),
        (r#""metadata": {"k": null}"#, "/metadata/k"),
        (r#""metadata": {"k": {"l": "m"}}"#, "/metadata/k"),
        (r#""metadata": {"k": "\u0000"}"#, "/metadata/k"),
        (r#""metadata": ["k"]"#, "/metadata"),
        (r#""metadata": "k""#, "/metadata"),
        (r#""clientRequestId": 7"#, "/clientRequestId"),
        (r#""maxSlippageBps": NaN"#, "/maxSlippageBps"),
        (r#""maxSlippageBps": Infinity"#, "/maxSlippageBps"),
        (r#""maxSlippageBps": 1.5"#, "/maxSlippageBps"),
        (r#""maxSlippageBps": "1""#, "/maxSlippageBps"),
        (r#""minTokensOut": 1"#, "/minTokensOut"),
        (r#""deadline": 1777464000000"#, "/deadline"),
        (r#""dryRun": "true""#, "/dryRun"),
        (&deep, "/metadata"),
    ] {
        let call = client.call("POST", "/v1/trades").raw_json(format!("{{{core}, {member}}}"));
        assert_invalid(&app, call, &[pointer]).await;
    }
    for (body, pointer) in [
        (r#"{"marketId": 7, "outcomeIndex": 0, "amount": "1", "side": "buy"}"#.to_owned(), "/marketId"),
        (
            format!(r#"{{"marketId": "{id}", "outcomeIndex": "0", "amount": "1", "side": "buy"}}"#),
            "/outcomeIndex",
        ),
        (
            format!(r#"{{"marketId": "{id}", "outcomeIndex": 0.0, "amount": "1", "side": "buy"}}"#),
            "/outcomeIndex",
        ),
        (format!(r#"{{"marketId": "{id}", "outcomeIndex": 0, "amount": 1, "side": "buy"}}"#), "/amount"),
        (format!(r#"{{"marketId": "{id}", "outcomeIndex": 0, "amount": 1e3, "side": "buy"}}"#), "/amount"),
        (format!(r#"{{"marketId": "{id}", "outcomeIndex": 0, "amount": "1", "side": true}}"#), "/side"),
    ] {
        assert_invalid(&app, client.call("POST", "/v1/trades").raw_json(body), &[pointer]).await;
    }
}

#[tokio::test]
async fn malformed_and_invalid_values_are_reported_together_in_bounded_length() {
    let Scene { app, client, .. } = Scene::new().await;
    let long = "9".repeat(20_000);
    let call = client
        .trade(json!({ "outcomeIndex": long, "amount": long, "side": "hold", "siide": "buy", "dryRun": 1 }));
    let answer = call.await;
    let pointers = ["/outcomeIndex", "/dryRun", "/siide", "/side", "/amount", "/marketId"];
    assert_eq!(answer.pointers(), pointers, "{answer}");
    let text = answer.json().to_string();
    assert!(text.len() < 3_000, "{} bytes", text.len());
    for parsers_word in ["i64", "expected", "invalid type", "line 1"] {
        assert!(!text.contains(parsers_word), "{text}");
    }
    assert_eq!(answer.json()["extensions"]["errors"][1]["detail"], "must be true or false, got 1");
    drop(app);
}

#[tokio::test]
async fn a_deadline_that_has_passed_must_be_in_the_future() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let past = "2020-01-01T00:00:00.000Z";
    let answer = client
        .trade(json!({ "marketId": market.id, "outcomeIndex": 0, "amount": "1", "side": "buy", "deadline": past }))
        .await;
    let error = &answer.json()["extensions"]["errors"][0];
    assert_eq!(
        (&error["pointer"], &error["detail"]),
        (&json!("/deadline"), &json!(format!("must be in the future, got \"{past}\"")))
    );
    drop(app);
}

#[tokio::test]
async fn all_invalid_values_are_reported_together() {
    let Scene { app, client, .. } = Scene::new().await;
    let nothing = client.trade(json!({}));
    assert_invalid(&app, nothing, &["/side", "/amount", "/marketId", "/outcomeIndex"]).await;
    let answer = client.trade(json!({
        "side": "hold", "amount": "1.0000001", "marketId": null, "outcomeIndex": 0, "clientRequestId": "a b",
        "maxSlippageBps": 10_001, "deadline": "tomorrow", "amountType": "shares", "metadata": { "a b": "c" },
    }));
    let answer = answer.await;
    answer.refused(ErrorCode::ValidationFailed);
    insta::assert_snapshot!(answer);
}
