//! The sandbox: rejections equal those of the real conditions, and `/v1/sandbox/clock` moves the time
//! of everything.

use app::keys::IssueKey;
use app::kill_switches::{Setting, TRADING, set};
use domain::key::{LimitOverrides, Tier};
use domain::sandbox::{MEMBER, Scenario};
use domain::time::HOUR_MS;
use domain::{ErrorCode, Timestamp, Usdc};
use http_testkit::{Answer, Client, Keyed, RequestBuilder, ServeHttp};
use serde_json::{Value, json};
use testkit::{Fault, Reply, TestApp, TestUser, key_of};

use crate::scene::{Scene, text};

const CLOCK: &str = "/v1/sandbox/clock";

/// Like [`Scene::new`], in a sandbox.
async fn sandbox() -> Scene {
    let app = TestApp::with().sandbox().start().await;
    let ada = app.user("ada").funded("10000").await;
    let key = app.key(&ada, Tier::Mm).await;
    let market = app.market(&["Yes", "No"]).await;
    let http = app.http();
    let client = http.with(&key);
    Scene { app, http, ada, key, client, market }
}

/// Names a scenario in a request's metadata.
fn playing(call: RequestBuilder, name: &str) -> RequestBuilder {
    call.with("metadata", json!({ MEMBER: name }))
}

fn move_to(client: &Client<Keyed>, body: Value) -> RequestBuilder {
    client.call("POST", CLOCK).raw_json(body.to_string())
}

fn clock(body: &Value) -> Timestamp {
    text(&body["clock"]["now"]).parse().unwrap()
}

/// The parts of a problem that a client can see, except the id of its request.
fn problem(answer: &Answer, code: ErrorCode) -> (Value, Option<String>) {
    let mut body = answer.refused(code);
    body["requestId"].take();
    (body, answer.header("retry-after").map(str::to_owned))
}

/// A client whose user has this much USDC and a key with these limits.
async fn client_with(scene: &Scene, name: &str, funds: &str, overrides: LimitOverrides) -> Client<Keyed> {
    let user = scene.app.user(name).funded(funds).await;
    let key = scene.app.key_with(&user, Tier::Enterprise, overrides).await;
    scene.http.with(&key)
}

/// Makes the condition of each rejection real, and returns the answer to a buy of 5 USDC and the client
/// that asked.
async fn real(scene: &Scene, code: ErrorCode) -> (Answer, Client<Keyed>) {
    let Scene { app, http, ada, market, client, .. } = scene;
    let buy = |client: &Client<Keyed>| client.buy(*market, 0, "5");
    let limited = |change: &dyn Fn(&mut LimitOverrides)| {
        let mut limits = LimitOverrides::default();
        change(&mut limits);
        limits
    };
    match code {
        ErrorCode::ApiKeyPaused => {
            let key = app.key(ada, Tier::Mm).await;
            key.pause().await;
            (buy(&http.with(&key)).await, client.clone())
        }
        ErrorCode::ApiTradeProcessingHalted => {
            set(&app.ctx, TRADING, Setting::Off, "ada", None).await.unwrap();
            let answer = buy(client).await;
            set(&app.ctx, TRADING, Setting::On, "ada", None).await.unwrap();
            (answer, client.clone())
        }
        ErrorCode::DependencyUnavailable => {
            app.faults.always("eth_call", Fault::LostRequest);
            let answer = buy(client).await;
            app.faults.heal();
            (answer, client.clone())
        }
        ErrorCode::IdempotencyKeyConflict => (in_progress(scene).await, client.clone()),
        ErrorCode::InsufficientBalance => {
            let poor = client_with(scene, "poor", "0", LimitOverrides::default()).await;
            (buy(&poor).await, poor)
        }
        ErrorCode::LiquidityInsufficient => {
            client.buy(*market, 0, "10").await.created();
            app.run_workers().await;
            (client.sell(*market, 0, "5000").await, client.clone())
        }
        ErrorCode::MarketNotTradeable => {
            let frozen = app.market(&["Yes", "No"]).await;
            app.freeze(frozen).await;
            app.run_workers().await;
            (client.buy(frozen, 0, "5").await, client.clone())
        }
        ErrorCode::RateLimitExceeded => {
            let once = limited(&|limits| limits.requests_per_minute = Some(1));
            let first = client_with(scene, "first", "100", once).await;
            buy(&first).await.created();
            // The sandbox needs a request that is allowed.
            (buy(&first).await, client_with(scene, "second", "100", once).await)
        }
        ErrorCode::SlippageExceeded => {
            (buy(client).with("minTokensOut", "900000000000000000000").await, client.clone())
        }
        ErrorCode::SmartAccountNotProvisioned => {
            let unprovisioned = app.disabled_key(&app.user("grace").await, Tier::Mm).await;
            (buy(&http.with(&unprovisioned)).await, client.clone())
        }
        ErrorCode::SpendingLimitExceeded => {
            let capped = limited(&|limits| limits.daily = Some(Usdc::from_whole(6)));
            let capped = client_with(scene, "capped", "100", capped).await;
            buy(&capped).await.created();
            (buy(&capped).await, client.clone())
        }
        ErrorCode::WalletDelegationNotEnabled => {
            (buy(&http.with(&app.disabled_key(ada, Tier::Mm).await)).await, client.clone())
        }
        code => panic!("how does {code} come about?"),
    }
}

/// The answer to a request whose key another process uses: see `idempotency` of the trades.
async fn in_progress(scene: &Scene) -> Answer {
    let Scene { app, key, client, market, .. } = scene;
    let other = app.http_with(|state| state.ctx = app.ctx_of_another_process()).with(key);
    let held = app.faults.hold("eth_call");
    let late = tokio::spawn(client.buy(*market, 0, "5").idempotent("busy").send());
    held.reached().await;
    other.buy(*market, 0, "5").idempotent("busy").await.created();
    app.clock.advance(app.ctx.config.idempotency_ms);
    held.release();
    late.await.unwrap()
}

#[tokio::test]
async fn every_rejection_is_the_problem_of_the_real_condition() {
    for code in Scenario::REJECTIONS.iter().copied() {
        let scene = sandbox().await;
        let (real, client) = real(&scene, code).await;
        let name = Scenario::Reject(code).to_string();
        let played = playing(client.buy(scene.market, 0, "5"), &name).await;
        assert_eq!(problem(&played, code), problem(&real, code), "{code}");
    }
}

#[tokio::test]
async fn an_unknown_scenario_is_a_field_error_with_the_known_ones() {
    let Scene { client, market, .. } = sandbox().await;
    let answer = playing(client.buy(market, 0, "5"), "reject:TEAPOT").await;
    assert_eq!(answer.pointers(), ["/metadata/sandbox"]);
    assert!(answer.text.contains("RATE_LIMIT_EXCEEDED") && answer.text.contains("price_moved"), "{answer}");
    playing(client.buy(market, 0, "5"), "hold").await.expect(202);
}

#[tokio::test]
async fn a_trade_of_a_batch_plays_its_own_scenario() {
    let Scene { client, market, .. } = sandbox().await;
    let trade = |name: &str| json!({ "marketId": market.id, "outcomeIndex": 0, "side": "buy", "amount": "5", "metadata": { MEMBER: name } });
    let body = json!({ "trades": [trade("reject:RATE_LIMIT_EXCEEDED"), trade("hold"), trade("slow:1")] });
    let answer = client.call("POST", "/v1/trades/batch").raw_json(body.to_string()).await.ok();
    let statuses: Vec<_> =
        answer["data"].as_array().unwrap().iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, [429, 202, 201]);
    assert!(answer["data"][0]["retryAfter"].is_u64());
}

#[tokio::test]
async fn a_service_without_a_test_clock_has_no_clock_to_move() {
    let app = TestApp::new().await;
    let http = app.http_with(|state| state.test_clock = None);
    let client = http.with(&app.disabled_key(&app.user("ada").await, Tier::Free).await);
    let before = app.ctx.now();
    client.get(CLOCK).await.refused(ErrorCode::ResourceNotFound);
    for body in [json!({ "advanceSeconds": 60 }), json!({ "advanceSeconds": 60, "now": before })] {
        move_to(&client, body).await.refused(ErrorCode::ResourceNotFound);
    }
    assert_eq!(app.ctx.now(), before);
    http.anonymous().get(CLOCK).await.refused(ErrorCode::ApiKeyMissing);
}

#[tokio::test]
async fn the_clock_of_service_and_chain_moves_forward_and_never_back() {
    let Scene { app, client, .. } = Scene::new().await;
    let start = clock(&client.get(CLOCK).await.ok());
    assert_eq!(start, app.ctx.now());
    let moved = clock(&move_to(&client, json!({ "advanceSeconds": 90 })).await.ok());
    assert_eq!(moved, start.plus_ms(90_000));
    let target = moved.plus_ms(HOUR_MS);
    assert_eq!(clock(&move_to(&client, json!({ "now": target })).await.ok()), target);
    assert_eq!(clock(&client.get(CLOCK).await.ok()), target);
    assert_eq!(app.ctx.chain.head().await.unwrap().timestamp_s, target.s());
    for (body, pointer) in [
        (json!({ "now": target.plus_ms(-1) }), "/now"),
        (json!({ "now": "2100-01-01T00:00:00.001Z" }), "/now"),
        (json!({ "now": "soon" }), "/now"),
        (json!({ "now": target, "advanceSeconds": 1 }), "/now"),
        (json!({}), "/advanceSeconds"),
        (json!({ "advanceSeconds": 0 }), "/advanceSeconds"),
        (json!({ "advanceSeconds": -1 }), "/advanceSeconds"),
        (json!({ "advanceSeconds": i64::MAX }), "/advanceSeconds"),
        (json!({ "advanceSeconds": 1.5 }), "/advanceSeconds"),
    ] {
        let answer = move_to(&client, body.clone()).await;
        assert_eq!(answer.pointers(), [pointer], "{body}");
        assert_eq!(app.ctx.now(), target, "{body}");
    }
}

#[tokio::test]
async fn simultaneous_moves_add_up() {
    let Scene { app, client, .. } = Scene::new().await;
    let start = app.ctx.now();
    let moves: Vec<_> =
        (0..8).map(|_| tokio::spawn(move_to(&client, json!({ "advanceSeconds": 10 })).send())).collect();
    for moved in moves {
        moved.await.unwrap().ok();
    }
    assert_eq!(app.ctx.now(), start.plus_ms(80_000));
}

#[tokio::test]
async fn a_held_trade_expires_and_a_market_closes_when_the_clock_moves() {
    let Scene { app, client, .. } = sandbox().await;
    let end = app.ctx.now().plus_ms(HOUR_MS);
    let market = app.market_with(&["Yes", "No"], |new| new.end_time = end).await;
    let held = playing(client.buy(market, 0, "5"), "hold").await.expect(202);
    move_to(&client, json!({ "now": held["trade"]["confirmation"]["expiresAt"] })).await.ok();
    app.run_workers().await;
    let path = format!("/v1/trades/{}", text(&held["trade"]["id"]));
    let trade = client.get(&path).await.ok();
    assert_eq!(trade["trade"]["errorCode"], "CONFIRMATION_EXPIRED", "{trade}");
    client.buy(market, 0, "5").await.created();
    move_to(&client, json!({ "now": end })).await.ok();
    let closed = client.buy(market, 0, "5").await.refused(ErrorCode::MarketNotTradeable);
    assert_eq!(closed["extensions"]["marketStatus"], "FROZEN");
}

#[tokio::test]
async fn a_failed_webhook_is_retried_when_the_clock_moves() {
    let Scene { app, http, ada, market, .. } = sandbox().await;
    let receiver = app.receiver().await;
    let key = app.key_to(&ada, Tier::Mm, &receiver).await;
    let client = http.with(&key);
    receiver.next([Reply::Status(500)]);
    client.buy(market, 0, "5").await.created();
    app.run_workers().await;
    let first = receiver.one();
    app.run_workers().await;
    assert!(receiver.take().is_empty(), "the retry is not due yet");
    move_to(&client, json!({ "advanceSeconds": 60 })).await.ok();
    app.run_workers().await;
    assert_eq!(receiver.take()[0].id(), first.id());
}

#[tokio::test]
async fn a_key_expires_when_the_clock_moves() {
    let Scene { app, http, ada, client, .. } = Scene::new().await;
    let key = issue_for_an_hour(&app, &ada).await;
    let short = http.with_text(&key);
    short.get("/v1/key").await.ok();
    move_to(&client, json!({ "advanceSeconds": 3_600 })).await.ok();
    short.get("/v1/key").await.refused(ErrorCode::ApiKeyExpired);
}

async fn issue_for_an_hour(app: &TestApp, user: &TestUser) -> String {
    let expires_at = Some(app.ctx.now().plus_ms(HOUR_MS));
    app.issue(IssueKey { expires_at, ..key_of(user, Tier::Mm) }).await.unwrap().plaintext
}
