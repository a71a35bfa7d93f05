//! Errors that are independent of a route.

use domain::ErrorCode;
use http_testkit::{DOCS_URL, ServeHttp};
use testkit::TestApp;

use crate::scene::{Scene, assert_invalid, text};

#[tokio::test]
async fn an_unknown_path_is_a_problem_document() {
    let answer = TestApp::new().await.http().anonymous().get("/v1/nothing?secret=1").await;
    answer.refused(ErrorCode::ResourceNotFound);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn only_the_canonical_spelling_of_a_path_is_found() {
    let http = TestApp::new().await.http();
    for path in
        ["/v1", "/v1/", "/v1/markets/", "/v1//markets", "/V1/markets", "/v2/markets", "/v1/trades/x/y"]
    {
        http.anonymous().get(path).await.refused(ErrorCode::ResourceNotFound);
    }
}

#[tokio::test]
async fn an_unsupported_method_gets_the_allowed_methods() {
    let http = TestApp::new().await.http();
    for (path, allowed) in [
        ("/v1/health", "GET,HEAD"),
        ("/v1/ready", "GET,HEAD"),
        ("/v1/markets", "GET,HEAD"),
        ("/v1/markets/x", "GET,HEAD"),
        ("/v1/markets/x/quote", "GET,HEAD"),
        ("/v1/markets/x/predictions", "GET,HEAD"),
        ("/v1/trades", "GET,HEAD,POST"),
        ("/v1/trades/x", "GET,HEAD"),
        ("/v1/trades/x/confirm", "POST"),
        ("/v1/traces/x", "GET,HEAD"),
        ("/v1/webhooks/events", "GET,HEAD"),
        ("/v1/webhooks/events/x", "GET,HEAD"),
        ("/v1/webhooks/events/x/redeliver", "POST"),
        ("/v1/webhooks/test", "POST"),
        ("/v1/webhooks/endpoint", "GET,HEAD"),
        ("/v1/auth/api-keys/me/webhook-secret/rotate", "POST"),
        ("/v1/events", "GET,HEAD"),
        ("/v1/account/pause", "POST"),
        ("/v1/redemptions", "GET,HEAD,POST"),
        ("/v1/redemptions/x", "GET,HEAD"),
        ("/v1/portfolio", "GET,HEAD"),
        ("/v1/portfolio/positions", "GET,HEAD"),
    ] {
        for method in ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] {
            let answer = http.anonymous().call(method, path).await;
            answer.refused(ErrorCode::MethodNotAllowed);
            let mut methods: Vec<_> = answer.header("allow").unwrap().split(',').map(str::trim).collect();
            methods.sort_unstable();
            assert_eq!(methods.join(","), allowed, "{method} {path}");
        }
    }
}

/// Errors for which the framework has default responses of its own.
#[tokio::test]
async fn every_error_of_the_framework_is_a_problem_document() {
    let Scene { client, .. } = Scene::new().await;
    for (method, path, code) in [
        ("GET", "/nothing", ErrorCode::ResourceNotFound),
        ("GET", "//v1/trades", ErrorCode::ResourceNotFound),
        ("GET", "/v1/trades/", ErrorCode::ResourceNotFound),
        ("GET", "/v1/%74rades", ErrorCode::ResourceNotFound),
        ("GET", "/v1/%", ErrorCode::ResourceNotFound),
        ("GET", "/v1/%zz", ErrorCode::ResourceNotFound),
        ("GET", "/v1/%ff", ErrorCode::ResourceNotFound),
        ("GET", "/v1/trades/%ff", ErrorCode::ResourceNotFound),
        ("GET", "/v1/trades/%", ErrorCode::ResourceNotFound),
        ("GET", "/v1/trades/%00", ErrorCode::ResourceNotFound),
        ("GET", "/v1/trades/..%2f..%2fmarkets", ErrorCode::ResourceNotFound),
        ("GET", "/v1/markets/%ff/quote?outcomeIndex=0&action=buy&amount=1", ErrorCode::MarketNotFound),
        ("GET", "/v1/markets?q=%ff", ErrorCode::ValidationFailed),
        ("GET", "/v1/markets?%ff=1", ErrorCode::ValidationFailed),
        ("GET", "/v1/markets?q=%00", ErrorCode::ValidationFailed),
        ("GET", "http://elsewhere.test/v1/nothing", ErrorCode::ResourceNotFound),
        ("OPTIONS", "*", ErrorCode::ResourceNotFound),
        ("OPTIONS", "/v1/markets", ErrorCode::MethodNotAllowed),
        ("OPTIONS", "/v1/nothing", ErrorCode::ResourceNotFound),
        ("BREW", "/v1/markets", ErrorCode::MethodNotAllowed),
        ("CONNECT", "/v1/markets", ErrorCode::MethodNotAllowed),
        ("POST", "/v1/trades", ErrorCode::UnsupportedMediaType),
    ] {
        let answer = client.call(method, path).await;
        assert_eq!(answer.header("x-service-error-code"), Some(code.as_str()), "{method} {path}\n{answer}");
        let headers = ["x-request-id", "x-service-api-version", "cache-control", "content-type"];
        let found = headers.map(|name| answer.header(name).unwrap_or_else(|| panic!("{name} in\n{answer}")));
        let body = answer.json();
        assert_eq!(
            (body["requestId"].as_str(), body["code"].as_str()),
            (Some(found[0]), Some(code.as_str()))
        );
        assert_eq!(found[1..], ["2026-04-29", "no-store", "application/problem+json"], "{method} {path}");
        assert_eq!(answer.header("allow").is_some(), code == ErrorCode::MethodNotAllowed, "{method} {path}");
    }
    for (path, status) in [("/v1/nothing", 404), ("/v1/trades/7", 404)] {
        let head = client.call("HEAD", path).await;
        assert_eq!((head.status.as_u16(), head.text.as_str()), (status, ""), "{path}");
        assert!(head.header("x-service-error-code").is_some() && head.header("x-request-id").is_some());
    }
}

#[tokio::test]
async fn every_request_gets_an_id_that_the_client_cannot_choose() {
    let http = TestApp::new().await.http();
    let id = |answer: http_testkit::Answer| answer.header("x-request-id").unwrap().to_owned();
    let chosen = http.anonymous().get("/v1/health").header("x-request-id", "mine").await;
    let one = id(chosen);
    let other = id(http.anonymous().get("/v1/health").await);
    assert!(one != "mine" && one != other, "{one} {other}");
}

#[tokio::test]
async fn a_problem_names_the_page_of_its_code() {
    let answer = TestApp::new().await.http().anonymous().get("/v1/portfolio").await;
    assert_eq!(answer.json()["type"], format!("{DOCS_URL}/api-errors/API_KEY_MISSING"));
}

#[tokio::test]
async fn routes_without_parameters_reject_every_parameter() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let trade = client.buy(market, 0, "1").await.created();
    let (market_path, trade_path) =
        (format!("/v1/markets/{}", market.id), format!("/v1/trades/{}", text(&trade["id"])));
    for path in [market_path.as_str(), &trade_path, "/v1/portfolio"] {
        client.get(path).await.ok();
        assert_eq!(client.get(&format!("{path}?dryRun=true")).await.pointers(), ["/dryRun"], "{path}");
    }
    let body = serde_json::json!({ "marketId": market.id, "outcomeIndex": 0, "amount": "1", "side": "buy" });
    let post = client.call("POST", "/v1/trades?dryRun=true").raw_json(body.to_string());
    assert_invalid(&app, post, &["/dryRun"]).await;
}
