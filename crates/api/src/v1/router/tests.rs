//! Tests of the route table and of the router's own responses, with a real store and a chain
//! without contracts.

use std::sync::Arc;

use app::encryption::SealingKey;
use app::keys::IssueKey;
use app::{Config, Ctx};
use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use chain::{Chain, Contracts};
use domain::Timestamp;
use domain::ids::UserId;
use domain::key::{Environment, IpAllowlist, LimitOverrides, Scopes, Tier};
use domain::time::ManualClock;
use embedded_chain::{EmbeddedNode, Genesis};
use http_body_util::BodyExt;
use http_kit::{AppState, Deprecation, ResponseCache, unknown_path};
use protocol::CursorCodec;
use serde_json::Value;
use tower::ServiceExt;

use super::*;

const START: Timestamp = Timestamp::from_ms(1_777_464_000_000);

async fn state() -> Shared {
    let clock = Arc::new(ManualClock::new(START));
    let genesis = Genesis {
        chain_id: 31_337,
        balances: Vec::new(),
        timestamp: START,
        gas_limit: 30_000_000,
        base_fee: 7,
    };
    let node = EmbeddedNode::in_memory(genesis, clock.clone()).unwrap();
    let [usdc, authority, hub, gate, account_factory] = [Default::default(); 5];
    let contracts = Contracts { usdc, authority, hub, gate, account_factory };
    let sealing_key = SealingKey { id: "test".into(), key: [2; 32].into() };
    let store = store::testing::sqlite().await;
    let chain = Chain::connect(node.provider(), contracts).await.unwrap();
    let entropy = Arc::new(app::entropy::SeededEntropy::new(1));
    let ctx = Ctx::new(store, chain, clock, entropy, Config::new(Environment::Test, [1; 32], sealing_key));
    Arc::new(AppState {
        ctx,
        cursor: CursorCodec::new([3; 32]),
        docs_url: "https://docs.test".into(),
        app_url: "https://app.test".into(),
        trusted_proxies: Default::default(),
        versions: domain::version::VERSIONS,
        started_at: START,
        switchable_routes: Vec::new(),
        responses: ResponseCache::default(),
        mcp: None,
        test_clock: None,
        mutations: Default::default(),
    })
}

/// Issues a key to a new user without an account.
async fn key(state: &Shared, scopes: &str, ip_allowlist: &str) -> String {
    let user = store::users::User {
        id: UserId(state.ctx.uuid()),
        name: "ada".into(),
        role: domain::credential::Role::User,
        tier: Tier::Free,
        created_at: START,
    };
    let added: Result<(), store::StoreError> =
        state.ctx.store.write(user.clone(), |tx, user| Box::pin(store::users::insert(tx, user))).await;
    added.unwrap();
    let wanted = IssueKey {
        user_id: user.id,
        name: "test".into(),
        tier: Tier::Mm,
        scopes: Some(scopes.parse::<Scopes>().unwrap()),
        expires_at: None,
        ip_allowlist: IpAllowlist::from_stored(ip_allowlist).unwrap(),
        webhook_url: None,
        overrides: LimitOverrides::default(),
        api_version: None,
        is_agent: false,
    };
    app::keys::issue(&state.ctx, wanted).await.unwrap().plaintext.expose().to_owned()
}

async fn sent(state: &Shared, request: Request) -> (Response, Value) {
    let unknown = unknown_path(HttpLayer::new(Shared::clone(state), Surface::Trading));
    let router = router(state).with_state(Shared::clone(state)).fallback(unknown);
    let response = router.oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    (Response::from_parts(parts, Body::empty()), body)
}

fn request(line: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Request {
    let (method, uri) = line.split_once(' ').unwrap();
    let builder = Request::builder().method(method).uri(uri);
    let builder = headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, *value));
    builder.body(body.into()).unwrap()
}

async fn refused(state: &Shared, request: Request) -> (Response, Value) {
    let (response, body) = sent(state, request).await;
    let headers = response.headers();
    assert_eq!(headers["content-type"], "application/problem+json");
    assert_eq!(headers["x-service-error-code"], body["code"].as_str().unwrap());
    assert_eq!(headers["x-service-api-version"], "2026-04-29");
    assert_eq!(headers["x-request-id"], body["requestId"].as_str().unwrap());
    assert_eq!(response.status().as_u16(), body["status"].as_u64().unwrap() as u16);
    (response, body)
}

/// Returns a route's path with a value for each parameter.
fn path_of(route: &Route) -> String {
    route
        .path
        .split('/')
        .map(|part| if part.starts_with('{') { "1" } else { part })
        .collect::<Vec<_>>()
        .join("/")
}

#[test]
fn the_table_of_routes_matches_its_snapshot() {
    let line = |route: &Route| {
        let method = route.method.as_str();
        let limiter = match route.limiter {
            Limiter::User(kind) => format!("{kind:?}"),
            other => format!("{other:?}"),
        };
        let scope = route.scope.map_or(if route.asks_for_key() { "any key" } else { "none" }, Scope::as_str);
        let page = route.page.map_or("-".to_owned(), |page| page.default.to_string());
        format!("{method:<4} {:<30} {scope:<15} {limiter:<5} {page}", route.path)
    };
    insta::assert_snapshot!(routes().map(line).collect::<Vec<_>>().join("\n"));
}

#[test]
fn only_infrastructure_routes_need_no_key_and_use_the_limit_of_the_address() {
    for route in routes() {
        let documents = ["/v1/openapi.json", "/v1/docs", "/docs/"];
        let infra = ["/v1/health", "/v1/ready"].contains(&route.path)
            || documents.iter().any(|documents| route.path.starts_with(documents));
        assert_eq!((infra, infra), (!route.asks_for_key(), route.limiter == ADDRESS), "{}", route.path);
        let any_key = ["/v1/key", "/v1/sandbox/clock"].contains(&route.path);
        assert_eq!(infra || any_key, route.scope.is_none(), "{}", route.path);
        let writes = [WRITE, REDELIVERY].contains(&route.limiter);
        assert_eq!(route.method == Method::POST, writes, "{}", route.path);
    }
}

#[tokio::test]
async fn every_route_with_a_scope_requires_a_key_with_that_scope() {
    let state = state().await;
    for route in routes() {
        let Some(scope) = route.scope else { continue };
        let line = format!("{} {}", route.method, path_of(route));
        let (response, body) = refused(&state, request(&line, &[], "")).await;
        assert_eq!(body["code"], "API_KEY_MISSING", "{line}");
        assert_eq!(response.headers()["cache-control"], "no-store");

        let others = Scope::ALL.iter().filter(|other| **other != scope).map(|other| other.as_str());
        let others = key(&state, &others.collect::<Vec<_>>().join(","), "").await;
        let (_, body) = refused(&state, request(&line, &[("x-api-key", &others)], "")).await;
        assert_eq!(body["code"], "INSUFFICIENT_SCOPE", "{line}");
        assert_eq!(body["extensions"]["requiredScope"], scope.as_str());
    }
}

/// With the table's scope, the handler must be reached. If table and signature disagree, the
/// assertion in the extractor fails and the response is `INTERNAL_ERROR`.
#[tokio::test]
async fn the_scope_in_the_table_equals_that_of_the_handler() {
    let state = state().await;
    for route in routes() {
        let Some(scope) = route.scope else { continue };
        let line = format!("{} {}", route.method, path_of(route));
        let fit = key(&state, scope.as_str(), "").await;
        let (_, body) = sent(&state, request(&line, &[("x-api-key", &fit)], "")).await;
        assert_ne!(body["code"], "INTERNAL_ERROR", "{line}");
    }
}

const REMOVAL: Deprecation = Deprecation { sunset: START.plus_ms(1_000), link: "https://docs.test/moving" };

static LEAVING: &[Entry<Shared>] = http_kit::table! { Trading:
    GET "/v1/old", READ, scope(Scope::MarketsRead), deprecated(REMOVAL) => v1::health::health;
    GET "/v1/new", READ, scope(Scope::MarketsRead) => v1::health::health;
};

#[tokio::test]
async fn a_deprecated_route_sends_its_sunset_and_link_and_still_works() {
    let state = state().await;
    let key = key(&state, "all", "").await;
    let router = router_of(LEAVING, &state).with_state(state);
    let deprecation_headers = async |path: &str, key: &str| {
        let request = request(path, &[("x-api-key", key)], "");
        let response = router.clone().oneshot(request).await.unwrap();
        let header = |name: &str| {
            response.headers().get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
        };
        (response.status().as_u16(), [header("deprecation"), header("sunset"), header("link")])
    };
    let leaving =
        ["true", "Wed, 29 Apr 2026 12:00:01 GMT", "<https://docs.test/moving>; rel=\"deprecation\""]
            .map(str::to_owned);
    assert_eq!(deprecation_headers("GET /v1/old", &key).await, (200, leaving.clone()));
    assert_eq!(deprecation_headers("GET /v1/old", "x").await, (401, leaving));
    assert_eq!(deprecation_headers("GET /v1/new", &key).await, (200, Default::default()));
    assert!(routes().all(|route| route.deprecation.is_none()));
}

#[test]
fn a_halt_closes_only_the_routes_that_trade() {
    let trades = |method, path| Route::new(Surface::Trading, method, path, WRITE).trades();
    assert!(trades(Method::POST, "/v1/trades"));
    assert!(trades(Method::POST, "/v1/trades/{id}/confirm"));
    assert!(!trades(Method::GET, "/v1/trades"));
    assert!(!trades(Method::POST, "/v1/redemptions"));
    assert!(!trades(Method::POST, "/v1/tradesmen"));
    assert!(trades(Method::POST, "/app/trades"));
    assert!(!trades(Method::POST, "/app/acts"));
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems() {
    let state = state().await;
    let (response, body) = refused(&state, request("GET /v1/nothing?x=1", &[], "")).await;
    assert_eq!((response.status(), &body["code"]), (StatusCode::NOT_FOUND, &"RESOURCE_NOT_FOUND".into()));
    assert_eq!(body["instance"], "/v1/nothing");
    assert_eq!(body["type"], "https://docs.test/api-errors/RESOURCE_NOT_FOUND");

    let (response, body) = refused(&state, request("DELETE /v1/trades", &[], "")).await;
    assert_eq!(body["code"], "METHOD_NOT_ALLOWED");
    let mut allowed: Vec<_> = response.headers()["allow"].to_str().unwrap().split(',').collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "POST"]);
}

#[tokio::test]
async fn a_rejected_trade_reports_that_nothing_was_submitted() {
    let state = state().await;
    let key = key(&state, "trades:write", "").await;
    let json = ("content-type", "application/json");
    let large = "x".repeat(70_000);
    for (headers, body, code, pointer) in [
        (vec![], "{}", "UNSUPPORTED_MEDIA_TYPE", None),
        (vec![json], large.as_str(), "PAYLOAD_TOO_LARGE", None),
        (vec![json], "{", "VALIDATION_FAILED", Some("")),
        (vec![json], r#"{"clientRequestID": "a"}"#, "VALIDATION_FAILED", Some("/clientRequestID")),
        (vec![json], r#"{"clientRequestId": "a\u0000"}"#, "VALIDATION_FAILED", Some("/clientRequestId")),
        (vec![json], "{}", "VALIDATION_FAILED", Some("/side")),
        (vec![json, ("idempotency-key", "a b")], "{}", "IDEMPOTENCY_KEY_FORMAT_INVALID", None),
        (
            vec![json],
            r#"{"marketId": "m", "outcomeIndex": 0, "amount": "1", "side": "buy"}"#,
            "MARKET_NOT_FOUND",
            None,
        ),
    ] {
        let headers: Vec<_> = headers.into_iter().chain([("x-api-key", key.as_str())]).collect();
        let (_, problem) = refused(&state, request("POST /v1/trades", &headers, body.to_owned())).await;
        assert_eq!(problem["code"], code, "{headers:?}");
        assert_eq!(problem["extensions"]["submission"], "not_submitted", "{code}");
        assert_eq!(problem["extensions"]["errors"][0]["pointer"].as_str(), pointer, "{code}");
    }
}

#[tokio::test]
async fn keys_are_checked_by_form_environment_and_address() {
    let state = state().await;
    let unknown = format!("service_test_{}", "a".repeat(32));
    let bound = key(&state, "all", "192.0.2.1").await;
    for (sent, code) in [
        ("", "API_KEY_MALFORMED"),
        ("service_test_short", "API_KEY_MALFORMED"),
        (unknown.as_str(), "API_KEY_INVALID"),
        (bound.as_str(), "IP_NOT_ALLOWED"),
    ] {
        let (_, body) = refused(&state, request("GET /v1/markets", &[("x-api-key", sent)], "")).await;
        assert_eq!(body["code"], code, "{sent}");
    }
}

#[tokio::test]
async fn reads_return_their_envelopes() {
    let state = state().await;
    let key = key(&state, "all", "").await;
    let headers = [("x-api-key", key.as_str())];
    for path in ["/v1/markets", "/v1/trades?status=pending,failed"] {
        let (response, body) = sent(&state, request(&format!("GET {path}"), &headers, "")).await;
        assert_eq!(response.status(), StatusCode::OK);
        let pagination = serde_json::json!({ "cursor": null, "hasMore": false, "limit": 20 });
        assert_eq!((&body["data"], &body["pagination"]), (&serde_json::json!([]), &pagination), "{path}");
        assert_eq!(body["_meta"]["requestId"], response.headers()["x-request-id"].to_str().unwrap());
        assert_eq!(response.headers()["cache-control"], "private, no-cache");
    }
    for (path, code) in [
        ("/v1/markets/1", "MARKET_NOT_FOUND"),
        ("/v1/markets/%ff", "MARKET_NOT_FOUND"),
        ("/v1/markets/1/predictions", "MARKET_NOT_FOUND"),
        ("/v1/markets/1/quote?outcomeIndex=0&action=buy&amount=1", "MARKET_NOT_FOUND"),
        ("/v1/markets/1/quote", "VALIDATION_FAILED"),
        ("/v1/markets?status=open", "VALIDATION_FAILED"),
        ("/v1/markets?threadId=1", "VALIDATION_FAILED"),
        ("/v1/trades/1", "RESOURCE_NOT_FOUND"),
        ("/v1/trades?offset=1", "VALIDATION_FAILED"),
        ("/v1/portfolio", "SMART_ACCOUNT_NOT_PROVISIONED"),
        ("/v1/portfolio/positions?marketId=1", "VALIDATION_FAILED"),
    ] {
        let (_, body) = refused(&state, request(&format!("GET {path}"), &headers, "")).await;
        assert_eq!(body["code"], code, "{path}");
    }
}

#[tokio::test]
async fn health_and_readiness_need_no_key() {
    let state = state().await;
    let (response, body) = sent(&state, request("GET /v1/health", &[], "")).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!((&body["status"], &body["apiVersion"]), (&"ok".into(), &"2026-04-29".into()));
    let (response, body) = sent(&state, request("GET /v1/ready", &[], "")).await;
    assert_eq!((response.status(), &body["status"]), (StatusCode::OK, &"ready".into()));
    state.ctx.store.close().await;
    let (response, body) = sent(&state, request("GET /v1/ready", &[], "")).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    let statuses = (&body["checks"]["database"]["status"], &body["checks"]["chain"]["status"]);
    assert_eq!(statuses, (&"failing".into(), &"ok".into()));
}
