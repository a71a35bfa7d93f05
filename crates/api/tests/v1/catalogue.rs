//! Provokes each code of the error catalog once over HTTP, and asserts that all errors have the
//! same format. Codes that cannot be provoked are listed with the reason.

use std::collections::BTreeMap;

use app::keys::{IssueKey, revoke};
use app::kill_switches::{Setting, TRADING, set};
use app::limits::Limits;
use domain::ErrorCode;
use domain::ids::MarketId;
use domain::key::{LimitOverrides, Scope, Scopes, Tier};
use domain::version::{Earlier, Versions};
use http_kit::McpSettings;
use http_testkit::{Answer, RequestBuilder, ServeHttp};
use serde_json::{Value, json};
use store::StoreError;
use testkit::{Fault, TestApp, TestMarket, key_of};

use crate::scene::{Scene, confirm, text};

/// Codes that this API does not send, with the reason.
const NEVER_SENT: &[(ErrorCode, &str)] = &[
    (ErrorCode::ActiveKeyLimitReached, "keys are issued in the web application and by the operator"),
    (
        ErrorCode::HeadersTooLarge,
        "the connection sends it before a route is found: see the process test `door`",
    ),
    (ErrorCode::IdempotencyKeyExpired, "a key that is older than 24 hours can be used again"),
];

/// Responses with their expected codes.
type Provoked = Vec<(ErrorCode, Answer)>;

#[tokio::test]
async fn every_code_is_sent_in_one_format_or_listed_as_never_sent() {
    let mut provoked = Provoked::new();
    provoked.extend(by_key().await);
    provoked.extend(by_request().await);
    provoked.extend(by_state().await);
    provoked.extend(by_confirm().await);
    provoked.extend(by_webhooks().await);
    provoked.push(by_what_is_no_longer_held().await);
    provoked.push(by_a_restore().await);
    provoked.extend(by_the_operator().await);
    provoked.extend(by_what_is_broken().await);
    provoked.push(by_time().await);
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (code, answer) in &provoked {
        assert_one_form(*code, answer);
        *seen.entry(code.as_str()).or_default() += 1;
    }
    for (code, reason) in NEVER_SENT {
        assert_eq!(seen.insert(code.as_str(), 0), None, "{code} is sent, although {reason}");
    }
    let missing: Vec<_> = ErrorCode::ALL.iter().filter(|code| !seen.contains_key(code.as_str())).collect();
    assert!(missing.is_empty(), "nothing provokes {missing:?}");
}

/// Asserts that the error has exactly the documented members, has `Retry-After` if a retry helps,
/// is not cacheable, and contains no internals.
fn assert_one_form(code: ErrorCode, answer: &Answer) {
    let body = answer.refused(code);
    let members: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
    let known = ["type", "title", "status", "code", "detail", "instance", "requestId", "extensions"];
    assert!(members.iter().all(|member| known.contains(member)), "{members:?}\n{answer}");
    assert!(known[..7].iter().all(|member| members.contains(member)), "{members:?}\n{answer}");
    assert_eq!(answer.header("cache-control"), Some("no-store"), "\n{answer}");
    assert_eq!(answer.header("etag"), None, "\n{answer}");
    let for_good = body["extensions"]["permanent"] == true;
    let waiting_helps = matches!(answer.status.as_u16(), 429 | 503) && !for_good;
    assert!(!waiting_helps || answer.header("retry-after").is_some(), "\n{answer}");
    let shown = answer.text.to_lowercase();
    for inside in ["sqlite", "postgres", "redis", "select ", "panick", ".rs:", "eth_call", "hunter2"] {
        assert!(!shown.contains(inside), "{inside} in\n{answer}");
    }
}

async fn by_key() -> Provoked {
    let app = TestApp::new().await;
    let http = app.http();
    let ada = app.user("ada").await;
    let issue = async |change: &dyn Fn(&mut IssueKey)| {
        let mut wanted = key_of(&ada, Tier::Mm);
        change(&mut wanted);
        app.issue(wanted).await.unwrap()
    };
    let soon = app.ctx.now().plus_ms(1);
    let expired = issue(&|key| key.expires_at = Some(soon)).await;
    let revoked = issue(&|_| ()).await;
    let far = issue(&|key| key.ip_allowlist = "192.0.2.1".parse().unwrap()).await;
    let narrow = issue(&|key| key.scopes = Some(Scopes::of(&[Scope::TradesRead]))).await;
    revoke(&app.ctx, revoked.caller.key.id).await.unwrap();
    app.clock.advance(1);
    let unknown = format!("service_test_{}", "a".repeat(32));
    let markets = "/v1/markets";
    vec![
        (ErrorCode::ApiKeyMissing, http.anonymous().get(markets).await),
        (ErrorCode::ApiKeyMalformed, http.with_text("hunter2").get(markets).await),
        (ErrorCode::ApiKeyInvalid, http.with_text(&unknown).get(markets).await),
        (ErrorCode::ApiKeyExpired, http.with(&expired).get(markets).await),
        (ErrorCode::ApiKeyRevoked, http.with(&revoked).get(markets).await),
        (ErrorCode::IpNotAllowed, http.with(&far).get(markets).await),
        (ErrorCode::InsufficientScope, http.with(&narrow).get(markets).await),
        (
            ErrorCode::RequestSignatureInvalid,
            http.with(&narrow).get("/v1/trades").header("x-service-signature", "hunter2").await,
        ),
    ]
}

async fn by_request() -> Provoked {
    let Scene { app, http, key, client, market, .. } = Scene::new().await;
    client.buy(market, 0, "1").idempotent("k").await.created();
    client.buy(market, 0, "1").with("clientRequestId", "n").await.created();
    let both = client.buy(market, 0, "1").idempotent("k").with("clientRequestId", "n");
    let unknown = TestMarket { id: MarketId(app.ctx.uuid()), ..market };
    let large = client.call("POST", "/v1/trades").raw_json(vec![b' '; 70_000]);
    let retired =
        Versions { current: "2026-04-29", earlier: &[Earlier { date: "2025-01-01", retired: true }] };
    let later = app.http_with(|state| state.versions = retired);
    let version = later.anonymous().get("/v1/health").header("x-service-api-version", "2025-01-01");
    let tools = app.http_with(|state| state.mcp = Some(McpSettings::default()));
    let foreign = tools.with(&key).call("POST", "/mcp").header("origin", "https://attacker.test");
    let calls: Vec<(ErrorCode, RequestBuilder)> = vec![
        (ErrorCode::OriginNotAllowed, foreign),
        (ErrorCode::ResourceNotFound, http.anonymous().get("/v1/nothing")),
        (ErrorCode::MethodNotAllowed, http.anonymous().call("DELETE", "/v1/markets")),
        (ErrorCode::ApiVersionUnsupported, version),
        (ErrorCode::PayloadTooLarge, large),
        (ErrorCode::UnsupportedMediaType, client.call("POST", "/v1/trades").body("{}")),
        (ErrorCode::ValidationFailed, client.trade(json!({}))),
        (ErrorCode::IdempotencyKeyFormatInvalid, client.buy(market, 0, "1").idempotent("a b")),
        (ErrorCode::IdempotencyKeyTooLong, client.buy(market, 0, "1").idempotent(&"k".repeat(256))),
        (ErrorCode::IdempotencyKeyConflict, client.buy(market, 0, "2").idempotent("k")),
        (ErrorCode::ClientRequestIdConflict, both),
        (ErrorCode::AmountTooLarge, client.buy(market, 0, "10000001")),
        (ErrorCode::MarketNotFound, client.buy(unknown, 0, "1")),
        (ErrorCode::OutcomeIndexInvalid, client.buy(market, 2, "1")),
        (ErrorCode::AmountTooSmall, client.quote(market, 0, "buy", "1")),
        (ErrorCode::LiquidityInsufficient, client.quote(market, 0, "buy", "20000000000")),
        (ErrorCode::SlippageExceeded, client.buy(market, 0, "1").with("minTokensOut", "9000000000000000000")),
    ];
    sent(calls).await
}

async fn sent(calls: Vec<(ErrorCode, RequestBuilder)>) -> Provoked {
    let mut answers = Provoked::new();
    for (code, call) in calls {
        answers.push((code, call.await));
    }
    answers
}

async fn by_state() -> Provoked {
    let Scene { app, http, ada, key, client, market } = Scene::with("100", Tier::Free).await;
    let nobody = http.with(&app.disabled_key(&app.user("grace").await, Tier::Free).await);
    let disabled = http.with(&app.disabled_key(&ada, Tier::Free).await);
    let limits = LimitOverrides { requests_per_minute: Some(1), ..LimitOverrides::default() };
    let once = http.with(&app.issue(IssueKey { overrides: limits, ..key_of(&ada, Tier::Mm) }).await.unwrap());
    let (frozen, elsewhere) = (app.market(&["A", "B"]).await, app.market(&["A", "B"]).await);
    app.freeze(frozen).await;
    app.run_workers().await;
    move_to_another_chain(&app, elsewhere).await;
    let automatic = TestApp::with().automatic_redemptions().start().await;
    let paid = automatic.http().with(&automatic.disabled_key(&automatic.user("ada").await, Tier::Mm).await);
    let mut provoked = sent(vec![
        (ErrorCode::SmartAccountNotProvisioned, nobody.buy(market, 0, "1")),
        (ErrorCode::WalletDelegationNotEnabled, disabled.buy(market, 0, "1")),
        (ErrorCode::MarketNotTradeable, client.buy(frozen, 0, "1")),
        (ErrorCode::ChainNotSupported, client.buy(elsewhere, 0, "1")),
        (ErrorCode::SpendingLimitExceeded, client.buy(market, 0, "501")),
        (ErrorCode::InsufficientBalance, client.buy(market, 0, "101")),
        (ErrorCode::PositionNotClaimable, client.redeem(market, 0)),
        (ErrorCode::RedemptionsNotEnabled, paid.redeem(market, 0)),
    ])
    .await;
    key.pause().await;
    provoked.push((ErrorCode::ApiKeyPaused, client.buy(market, 0, "1").await));
    once.get("/v1/key").await;
    provoked.push((ErrorCode::RateLimitExceeded, once.get("/v1/key").await));
    provoked
}

/// Moves the market to another chain, as if it belonged to another deployment.
async fn move_to_another_chain(app: &TestApp, market: TestMarket) {
    const SQL: &str = "UPDATE markets SET chain_id = 1 WHERE id = $1";
    let moved: Result<u64, StoreError> = app
        .ctx
        .store
        .write(market.id.to_string(), |tx, id| {
            Box::pin(async move { tx.exec(SQL, &store::params![id.as_str()]).await })
        })
        .await;
    assert_eq!(moved.unwrap(), 1);
}

#[tokio::test]
async fn a_market_on_another_chain_cannot_be_traded() {
    let Scene { app, client, market, .. } = Scene::new().await;
    move_to_another_chain(&app, market).await;
    crate::scene::assert_refused(&app, client.buy(market, 0, "1"), ErrorCode::ChainNotSupported).await;
    crate::scene::assert_refused(&app, client.buy(market, 9, "1"), ErrorCode::ChainNotSupported).await;
}

async fn by_confirm() -> Provoked {
    let scene = Scene::gated().await;
    let plain = scene.client.buy(scene.market, 0, "1").await.created();
    let (held, used) = (scene.held().await, scene.held().await);
    scene.confirm(&used).await.ok();
    let with = |trade: &Value| confirm(&scene.client, text(&trade["id"]), json!({ "token": "ct_x" }));
    let mut provoked = sent(vec![
        (ErrorCode::TradeNotAwaitingConfirmation, with(&plain)),
        (ErrorCode::ConfirmationTokenInvalid, with(&held)),
        (ErrorCode::ConfirmationTokenUsed, scene.confirm(&used)),
    ])
    .await;
    let agent = app::keys::mark_agent(&scene.app.ctx, scene.key.caller.key.id).await.unwrap();
    assert!(agent.is_agent);
    provoked.push((ErrorCode::OwnerConfirmationRequired, scene.confirm(&held).await));
    let window = scene.app.ctx.config.confirmation_window_ms;
    scene.app.advance_ms(window).await;
    provoked.push((ErrorCode::ConfirmationExpired, scene.confirm(&held).await));
    provoked
}

async fn by_webhooks() -> Provoked {
    let Scene { app, http, ada, client, .. } = Scene::new().await;
    let webhook_url = Some("http://127.0.0.1:65534/hunter2".to_owned());
    let key = app.issue(IssueKey { webhook_url, ..key_of(&ada, Tier::Mm) }).await.unwrap();
    let receiving = http.with(&key);
    let test = receiving.call("POST", "/v1/webhooks/test").await.ok();
    let redeliver = format!("/v1/webhooks/events/{}/redeliver", text(&test["event"]["id"]));
    let rotate = "/v1/auth/api-keys/me/webhook-secret/rotate";
    for _ in 0..5 {
        receiving.call("POST", &redeliver).await.ok();
    }
    receiving.call("POST", rotate).await.ok();
    sent(vec![
        (ErrorCode::WebhookNotConfigured, client.call("POST", "/v1/webhooks/test")),
        (ErrorCode::WebhookReplayLimitReached, receiving.call("POST", &redeliver)),
        (ErrorCode::WebhookSecretRotationCooldown, receiving.call("POST", rotate)),
    ])
    .await
}

/// Reads a feed position whose following events were deleted.
async fn by_what_is_no_longer_held() -> (ErrorCode, Answer) {
    const PRUNE: &str = "UPDATE feeds SET pruned_seq = last_seq";
    let Scene { app, client, market, .. } = Scene::new().await;
    let start = client.get("/v1/events").await.ok();
    let path = format!("/v1/events?cursor={}", text(&start["pagination"]["cursor"]));
    client.buy(market, 0, "1").await.created();
    let pruned = app.ctx.store.write((), |tx, ()| Box::pin(tx.exec(PRUNE, &[]))).await;
    assert_eq!(pruned.unwrap(), 1);
    (ErrorCode::CursorExpired, client.get(&path).await)
}

/// Reads a feed position from before a restore.
async fn by_a_restore() -> (ErrorCode, Answer) {
    let Scene { app, client, .. } = Scene::new().await;
    let start = client.get("/v1/events").await.ok();
    let begun = app
        .ctx
        .store
        .write(app.ctx.now(), |tx, now| Box::pin(store::events::begin_generation(tx, *now)))
        .await;
    begun.unwrap();
    let path = format!("/v1/events?cursor={}", text(&start["pagination"]["cursor"]));
    (ErrorCode::FeedRestarted, client.get(&path).await)
}

async fn by_the_operator() -> Provoked {
    let Scene { app, client, market, .. } = Scene::new().await;
    set(&app.ctx, TRADING, Setting::Off, "ada", Some("hunter2".to_owned())).await.unwrap();
    set(&app.ctx, "GET /v1/markets", Setting::Off, "ada", Some("hunter2".to_owned())).await.unwrap();
    sent(vec![
        (ErrorCode::ApiTradeProcessingHalted, client.buy(market, 0, "1")),
        (ErrorCode::RouteDisabled, client.get("/v1/markets")),
    ])
    .await
}

async fn by_what_is_broken() -> Provoked {
    const BROKEN: &str = "UPDATE trades SET correlation_id = 'hunter2'";
    let Scene { app, client, market, .. } = Scene::new().await;
    let trade = client.buy(market, 0, "1").await.created();
    let broken = app.ctx.store.write((), |tx, ()| Box::pin(tx.exec(BROKEN, &[]))).await;
    assert_eq!(broken.unwrap(), 1);
    let corrupt = client.get(&format!("/v1/trades/{}", text(&trade["id"]))).await;
    app.faults.always("eth_call", Fault::LostRequest);
    let chain = client.quote(market, 0, "buy", "25000000").await;
    app.ctx.store.close().await;
    app.clock.advance(500);
    let database = client.get("/v1/markets").await;
    // No server listens at this address.
    let limits = Limits::redis("redis://:hunter2@127.0.0.1:1", "p").unwrap();
    let unlimited = TestApp::with().limits(limits).start().await;
    let key = unlimited.disabled_key(&unlimited.user("ada").await, Tier::Mm).await;
    vec![
        (ErrorCode::InternalError, corrupt),
        (ErrorCode::DependencyUnavailable, chain),
        (ErrorCode::DependencyUnavailable, database),
        (ErrorCode::RateLimitUnavailable, unlimited.http().with(&key).get("/v1/markets").await),
    ]
}

/// Uses a chain that does not respond within the ten seconds of a request, in the runtime's own
/// time.
async fn by_time() -> (ErrorCode, Answer) {
    let Scene { app, client, market, .. } = Scene::new().await;
    let held = app.faults.hold("eth_call");
    let call = tokio::spawn(client.quote(market, 0, "buy", "25000000").send());
    held.reached().await;
    tokio::time::pause();
    let answer = call.await.unwrap();
    tokio::time::resume();
    (ErrorCode::RequestTimeout, answer)
}
