//! The protocol: its messages, and the checks before a tool runs.

use app::keys::IssueKey;
use app::kill_switches::{Setting, set};
use domain::ErrorCode;
use domain::key::{LimitOverrides, Scope, Scopes, Tier};
use http_kit::McpSettings;
use http_testkit::ServeHttp;
use serde_json::json;
use testkit::key_of;

use super::{agent, call, message, names, refused, result, served, tools};
use crate::scene::{Scene, text};

const READING: [&str; 6] = ["search_markets", "get_market", "quote", "portfolio", "list_trades", "trace"];

#[tokio::test]
async fn the_tools_are_off_by_default() {
    let scene = Scene::new().await;
    let answer = message(&scene.client, "tools/list", json!({})).await;
    let code = answer.header("x-service-error-code");
    assert_eq!(
        (answer.status.as_u16(), code),
        (404, Some(ErrorCode::ResourceNotFound.as_str())),
        "\n{answer}"
    );
}

#[tokio::test]
async fn a_client_is_told_how_to_use_the_tools() {
    let scene = Scene::new().await;
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } });
        let answer = message(&agent(&scene), "initialize", params).await;
        let result = result(&answer);
        assert_eq!(result["protocolVersion"], version, "\n{answer}");
        assert_eq!(result["serverInfo"]["name"], "foretell", "\n{answer}");
        assert!(result["capabilities"].get("tools").is_some(), "\n{answer}");
        assert!(text(&result["instructions"]).contains("dryRun"), "\n{answer}");
        assert_eq!(answer.header("mcp-session-id"), None, "any process answers any message");
    }
}

#[tokio::test]
async fn a_notification_has_no_answer() {
    let scene = Scene::new().await;
    let notification = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    let answer = agent(&scene).call("POST", "/mcp").raw_json(notification).await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (202, ""), "\n{answer}");
}

#[tokio::test]
async fn a_key_sees_the_tools_of_its_scopes_that_the_operator_allows() {
    let scene = Scene::new().await;
    assert_eq!(names(&served(&scene.app, false).with(&scene.key)).await, READING);
    let all: Vec<_> = READING.into_iter().chain(["create_trade", "redeem"]).collect();
    assert_eq!(names(&agent(&scene)).await, all);
    let scopes = Some(Scopes::of(&[Scope::TradesRead, Scope::MarketsQuote]));
    let narrow = scene.app.issue(IssueKey { scopes, ..key_of(&scene.ada, Tier::Mm) }).await.unwrap();
    assert_eq!(names(&served(&scene.app, true).with(&narrow)).await, ["quote", "list_trades", "trace"]);
}

#[tokio::test]
async fn only_tools_that_write_are_described_as_such() {
    let scene = Scene::new().await;
    for tool in tools(&agent(&scene)).await {
        let reads = READING.contains(&text(&tool["name"]));
        assert_eq!(tool["annotations"]["readOnlyHint"], reads, "{tool}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
    }
}

#[tokio::test]
async fn a_message_needs_a_valid_key_from_an_allowed_address() {
    let scene = Scene::new().await;
    let http = served(&scene.app, true);
    let anonymous = http.anonymous().call("POST", "/mcp").raw_json("{}").await;
    anonymous.refused(ErrorCode::ApiKeyMissing);
    message(&http.with_text("hunter2"), "ping", json!({})).await.refused(ErrorCode::ApiKeyMalformed);
    let mut wanted = key_of(&scene.ada, Tier::Mm);
    wanted.ip_allowlist = "192.0.2.1".parse().unwrap();
    let far = http.with(&scene.app.issue(wanted).await.unwrap());
    message(&far, "ping", json!({})).await.refused(ErrorCode::IpNotAllowed);
    message(&far, "ping", json!({})).from_peer("192.0.2.1").await.expect(200);
}

#[tokio::test]
async fn a_page_of_another_site_and_a_foreign_host_are_rejected() {
    let scene = Scene::new().await;
    let client = agent(&scene);
    for (name, value) in [("origin", "https://attacker.test"), ("origin", "null"), ("host", "attacker.test")]
    {
        let answer = message(&client, "ping", json!({})).header(name, value).await;
        answer.refused(ErrorCode::OriginNotAllowed);
        assert_eq!(answer.header("access-control-allow-origin"), None, "\n{answer}");
    }
    for (name, value) in [("origin", "https://foretell.test"), ("host", "localhost:8080")] {
        message(&client, "ping", json!({})).header(name, value).await.expect(200);
    }
    let named = scene.app.http_with(|state| {
        state.mcp =
            Some(McpSettings { hosts: vec!["api.foretell.test".to_owned()], ..McpSettings::default() });
    });
    message(&named.with(&scene.key), "ping", json!({})).header("host", "api.foretell.test").await.expect(200);
}

#[tokio::test]
async fn a_malformed_message_is_a_problem() {
    let scene = Scene::new().await;
    let client = agent(&scene);
    let post = |body: &'static str| client.call("POST", "/mcp").raw_json(body);
    for body in ["", "nonsense", "[]", r#"{"params":{},"params":{}}"#, r#"{"jsonrpc":"2.0"}"#] {
        let answer = post(body).await;
        assert_eq!(answer.status.as_u16() / 100, 4, "{body}\n{answer}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{body}\n{answer}");
    }
    client.call("POST", "/mcp").body("{}").await.refused(ErrorCode::UnsupportedMediaType);
    client.call("POST", "/mcp").raw_json(vec![b' '; 70_000]).await.refused(ErrorCode::PayloadTooLarge);
    for method in ["GET", "DELETE"] {
        let answer = client.call(method, "/mcp").await;
        assert_eq!(answer.header("x-service-error-code"), Some("METHOD_NOT_ALLOWED"), "\n{answer}");
    }
}

#[tokio::test]
async fn no_accept_header_is_needed() {
    let scene = Scene::new().await;
    for accept in ["application/json", "text/event-stream", "image/png"] {
        message(&agent(&scene), "ping", json!({})).header("accept", accept).await.expect(200);
    }
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_of_the_protocol() {
    let scene = Scene::new().await;
    for (client, tool) in
        [(agent(&scene), "drain"), (served(&scene.app, false).with(&scene.key), "create_trade")]
    {
        let answer = call(&client, tool, json!({})).await;
        assert_eq!(answer.expect(200)["error"]["code"], -32602, "\n{answer}");
    }
}

#[tokio::test]
async fn a_message_counts_as_a_read_and_a_trade_also_as_a_write() {
    let scene = Scene::new().await;
    let limits = LimitOverrides { requests_per_minute: Some(3), ..LimitOverrides::default() };
    let key = scene.app.key_with(&scene.ada, Tier::Mm, limits).await;
    let client = served(&scene.app, true).with(&key);
    let quote = message(&client, "ping", json!({})).await;
    assert_eq!(quote.header("x-ratelimit-remaining"), Some("2"), "\n{quote}");
    // The writes have a limit of their own.
    for _ in 0..2 {
        scene.http.with(&key).buy(scene.market, 0, "1").await.created();
    }
    let trade = |key: &str| json!({ "marketId": scene.market.id, "outcomeIndex": 0, "side": "buy", "amount": "1", "idempotencyKey": key });
    super::answered_without_schema(&client, "create_trade", trade("a")).await;
    let error = refused(&client, "create_trade", trade("b"), ErrorCode::RateLimitExceeded).await;
    assert!(error["retryAfterSeconds"].as_u64().is_some_and(|seconds| seconds >= 1), "{error}");
    assert_eq!(error["extensions"]["submission"], "not_submitted", "{error}");
    message(&client, "ping", json!({})).await.refused(ErrorCode::RateLimitExceeded);
    assert_eq!(scene.app.rows().await.trades, 3);
}

#[tokio::test]
async fn a_switch_of_a_route_disables_its_tool_and_that_of_the_tools_all_of_them() {
    let scene = Scene::new().await;
    let client = agent(&scene);
    set(&scene.app.ctx, "GET /v1/markets", Setting::Off, "ada", None).await.unwrap();
    refused(&client, "search_markets", json!({}), ErrorCode::RouteDisabled).await;
    super::answered(&client, "get_market", json!({ "marketId": scene.market.id })).await;
    set(&scene.app.ctx, "POST /mcp", Setting::Off, "ada", None).await.unwrap();
    message(&client, "ping", json!({})).await.refused(ErrorCode::RouteDisabled);
}

#[tokio::test]
async fn a_message_of_the_version_without_a_handshake_is_answered() {
    let scene = Scene::new().await;
    let version = "2026-07-28";
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let arguments = json!({ "marketId": scene.market.id });
    for (method, name, params) in [
        ("server/discover", None, json!({ "_meta": meta })),
        ("tools/list", None, json!({ "_meta": meta })),
        (
            "tools/call",
            Some("get_market"),
            json!({ "name": "get_market", "arguments": arguments, "_meta": meta }),
        ),
    ] {
        let mut request = message(&agent(&scene), method, params)
            .header("mcp-protocol-version", version)
            .header("mcp-method", method);
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        let answer = request.await;
        assert!(result(&answer).is_object(), "{method}\n{answer}");
    }
    let unknown =
        message(&agent(&scene), "ping", json!({})).header("mcp-protocol-version", "1999-01-01").await;
    unknown.refused(ErrorCode::ValidationFailed);
}
