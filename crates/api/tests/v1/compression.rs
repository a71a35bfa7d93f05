//! `Accept-Encoding`, `Vary`, and the other headers that describe a response's body.

use domain::ErrorCode;
use http_testkit::{Anonymous, Answer, Client, RequestBuilder};

use crate::scene::Scene;

fn gzip(call: RequestBuilder) -> RequestBuilder {
    call.header("accept-encoding", "gzip, deflate, br")
}

/// Returns the encoding, if the response varies by it, and the declared length.
fn encoding_headers(answer: &Answer) -> (Option<&str>, bool, Option<usize>) {
    let varies = answer.header("vary").is_some_and(|vary| vary.ends_with("Accept-Encoding"));
    let length = answer.header("content-length").map(|length| length.parse().unwrap());
    (answer.header("content-encoding"), varies, length)
}

async fn scene_with_markets() -> Scene {
    let scene = Scene::new().await;
    for _ in 0..5 {
        scene.app.market(&["Yes", "No"]).await;
    }
    scene
}

#[tokio::test]
async fn a_large_answer_is_compressed_with_equal_content_if_gzip_is_accepted() {
    let Scene { client, .. } = scene_with_markets().await;
    let plain = client.get("/v1/markets").await;
    assert_eq!(encoding_headers(&plain), (None, true, Some(plain.bytes.len())));
    for _ in 0..2 {
        let small = gzip(client.get("/v1/markets")).await;
        assert_eq!(encoding_headers(&small), (Some("gzip"), true, Some(small.bytes.len())));
        assert!(small.bytes.len() < plain.bytes.len() / 3, "{} of {}", small.bytes.len(), plain.bytes.len());
        assert_eq!(small.json()["data"], plain.json()["data"]);
        // Each response has its own `_meta`, compressed or not.
        let id = |answer: &Answer| answer.json()["_meta"]["requestId"].as_str().map(str::to_owned);
        assert_eq!(id(&small).as_deref(), small.header("x-request-id"));
        assert_eq!(small.header("etag"), plain.header("etag"));
        assert_eq!(small.header("cache-control"), plain.header("cache-control"));
    }
    let refused = client.get("/v1/markets").header("accept-encoding", "gzip;q=0, identity").await;
    assert_eq!(encoding_headers(&refused).0, None);
}

#[tokio::test]
async fn unchanged_and_head_answers_have_the_headers_of_the_compressed_get() {
    let Scene { client, .. } = scene_with_markets().await;
    let get = gzip(client.get("/v1/markets")).await;
    let tag = get.header("etag").unwrap();
    let unchanged = gzip(client.get("/v1/markets").header("if-none-match", tag)).await;
    assert_eq!((unchanged.status.as_u16(), unchanged.bytes.len()), (304, 0));
    assert_eq!(encoding_headers(&unchanged), (None, true, None));
    let head = gzip(client.call("HEAD", "/v1/markets")).await;
    assert_eq!(head.bytes.len(), 0);
    let (encoding, varies, length) = encoding_headers(&head);
    assert_eq!((encoding, varies), (Some("gzip"), true));
    // `_meta` differs between responses, but its length does not.
    assert_eq!(length, Some(get.bytes.len()));
}

#[tokio::test]
async fn small_answers_and_streams_are_not_compressed() {
    let Scene { http, client, .. } = Scene::new().await;
    let small = gzip(http.anonymous().get("/v1/health")).await;
    assert_eq!((encoding_headers(&small).0, encoding_headers(&small).1), (None, false));
    let stream = gzip(client.get("/v1/events")).open().await;
    assert!(stream.headers.get("content-encoding").is_none());
    assert_eq!(stream.headers["x-content-type-options"], "nosniff");
}

#[tokio::test]
async fn errors_documents_and_pages_are_compressed_too() {
    let Scene { http, client, .. } = Scene::new().await;
    let anonymous = http.anonymous();
    let fields: serde_json::Map<_, _> = (0..50).map(|n| (format!("typo{n}"), 1.into())).collect();
    let error = gzip(client.trade(fields.into())).await;
    error.refused(ErrorCode::ValidationFailed);
    assert_eq!(error.header("content-encoding").is_some(), error.text.len() >= 1_024, "{error}");
    for path in
        ["/v1/openapi.json", "/v1/docs/swagger-ui.css", "/v1/docs/swagger-ui-bundle.js", "/docs/api-errors"]
    {
        let (plain, small) = (anonymous.get(path).await, gzip(anonymous.get(path)).await);
        assert_eq!(small.header("content-encoding"), Some("gzip"), "{path}");
        assert_eq!(small.text, plain.text, "{path}");
    }
    // A page that also varies by another header names both.
    assert_eq!(anonymous.get("/docs/api-errors").await.header("vary"), Some("Accept, Accept-Encoding"));
    // Most image formats are already compressed.
    let picture = gzip(anonymous.get("/v1/docs/favicon-32x32.png")).await;
    assert_eq!(picture.header("content-encoding"), None);
}

#[tokio::test]
async fn no_answer_allows_content_sniffing() {
    let Scene { http, client, .. } = Scene::new().await;
    let tag = client.get("/v1/markets").await.header("etag").unwrap().to_owned();
    let anonymous: Client<Anonymous> = http.anonymous();
    for call in [
        client.get("/v1/markets"),
        client.get("/v1/markets").header("if-none-match", &tag),
        client.get("/v1/markets/none"),
        client.call("DELETE", "/v1/markets"),
        anonymous.get("/v1/markets"),
        anonymous.get("/v1/nothing"),
        anonymous.get("/v1/health"),
        anonymous.get("/v1/docs"),
        anonymous.get("/docs/api-errors"),
        anonymous.get("/api/markets"),
        anonymous.get("/api/nothing"),
        anonymous.call("OPTIONS", "/api/markets"),
        anonymous.get("/robots.txt"),
    ] {
        let answer = call.await;
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{answer}");
    }
}
