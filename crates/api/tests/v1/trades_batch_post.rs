//! `POST /v1/trades/batch`.

use app::kill_switches::{Setting, TRADING, set};
use domain::ErrorCode;
use domain::key::{LimitOverrides, Tier};
use http_testkit::{Answer, Client, Keyed, RequestBuilder, ServeHttp};
use serde_json::{Value, json};
use testkit::{TestApp, TestMarket};

use crate::scene::{Scene, assert_invalid, assert_refused, rows, text};

fn buy(market: TestMarket, usdc: &str) -> Value {
    json!({ "marketId": market.id, "outcomeIndex": 0, "amount": usdc, "side": "buy" })
}

/// Adds a member to a trade of a batch.
fn with(mut trade: Value, member: &str, value: impl Into<Value>) -> Value {
    trade[member] = value.into();
    trade
}

fn batch(client: &Client<Keyed>, trades: &[Value]) -> RequestBuilder {
    client.call("POST", "/v1/trades/batch").raw_json(json!({ "trades": trades }).to_string())
}

/// Returns the results after checking that each is either a body or a problem of its status.
fn results(answer: &Answer) -> Vec<Value> {
    let results = rows(&answer.ok());
    for result in &results {
        let is_success = result["status"].as_u64().unwrap() < 400;
        assert_eq!((result["body"].is_object(), result["problem"].is_object()), (is_success, !is_success));
        if !is_success {
            assert_eq!(result["problem"]["status"], result["status"], "{result}");
        }
    }
    results
}

fn statuses(answer: &Answer) -> Vec<u64> {
    results(answer).iter().map(|result| result["status"].as_u64().unwrap()).collect()
}

/// Returns the code of a rejected trade, which must not have been submitted.
fn code(result: &Value) -> &str {
    assert_eq!(result["problem"]["extensions"]["submission"], "not_submitted", "{result}");
    text(&result["problem"]["code"])
}

#[tokio::test]
async fn each_trade_of_a_batch_has_its_own_answer() {
    let Scene { client, market, .. } = Scene::gated().await;
    let trades = [
        with(buy(market, "25.00"), "idempotencyKey", "first"),
        with(buy(market, "100"), "clientRequestId", "mine:2"),
        buy(market, "0"),
        with(buy(market, "3"), "dryRun", true),
    ];
    let answer = batch(&client, &trades).await;
    assert_eq!(statuses(&answer), [201, 202, 400, 200]);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_trade_of_a_batch_is_answered_like_a_single_one() {
    let Scene { client, market, .. } = Scene::new().await;
    let unknown = with(buy(market, "1"), "marketId", "none");
    for (trade, single) in [
        (unknown.clone(), client.trade(unknown)),
        (buy(market, "99999"), client.buy(market, 0, "99999")),
        (with(buy(market, "1"), "side", 7), client.buy(market, 0, "1").with("side", 7)),
        (with(buy(market, "1"), "outcome", 0), client.buy(market, 0, "1").with("outcome", 0)),
        (with(buy(market, "1"), "idempotencyKey", "a b"), client.buy(market, 0, "1").idempotent("a b")),
    ] {
        let result = results(&batch(&client, &[trade]).await).remove(0);
        let mut problem = single.await.json();
        problem["instance"] = "/v1/trades/batch".into();
        problem["requestId"] = result["problem"]["requestId"].clone();
        // Only a batch has the member, so only its trades list it as known.
        let known = result["problem"].to_string().replace("known: idempotencyKey, ", "known: ");
        assert_eq!(serde_json::from_str::<Value>(&known).unwrap(), problem);
    }
    let single = client.buy(market, 0, "1").idempotent("k").await.created();
    let replay = batch(&client, &[with(buy(market, "1"), "idempotencyKey", "k")]).await;
    assert_eq!(results(&replay)[0]["body"]["trade"], single);
}

#[tokio::test]
async fn a_rejected_trade_changes_nothing_for_the_others() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let trades =
        [buy(market, "0"), buy(market, "1"), buy(market, "99999"), json!("no trade"), buy(market, "2")];
    let answer = batch(&client, &trades).await;
    assert_eq!(statuses(&answer), [400, 201, 409, 400, 201]);
    let results = results(&answer);
    let codes = [0, 2, 3].map(|at| code(&results[at]));
    assert_eq!(codes, ["VALIDATION_FAILED", "SPENDING_LIMIT_EXCEEDED", "VALIDATION_FAILED"]);
    app.run_workers().await;
    let listed = rows(&client.get("/v1/trades").await.ok());
    let mut amounts: Vec<_> = listed.iter().map(|trade| text(&trade["amount"])).collect();
    amounts.sort_unstable();
    assert_eq!(amounts, ["1", "2"]);
    assert!(listed.iter().all(|trade| trade["status"] == "completed"));
}

#[tokio::test]
async fn equal_names_in_a_batch_create_one_trade() {
    let Scene { client, market, .. } = Scene::new().await;
    let keyed = |usdc| with(buy(market, usdc), "idempotencyKey", "k");
    let named = |usdc| with(buy(market, usdc), "clientRequestId", "mine");
    let trades = [keyed("1"), named("2"), keyed("1.0"), named("2"), keyed("3"), named("3")];
    let answer = batch(&client, &trades).await;
    assert_eq!(statuses(&answer), [201, 201, 201, 200, 409, 409]);
    let results = results(&answer);
    let idempotent = [0, 1, 2, 3].map(|at| results[at]["body"]["_meta"]["idempotent"].as_bool().unwrap());
    assert_eq!(idempotent, [false, false, true, true]);
    for (first, repeated) in [(0, 2), (1, 3)] {
        assert_eq!(results[first]["body"]["trade"], results[repeated]["body"]["trade"]);
    }
    assert_eq!([4, 5].map(|at| code(&results[at])), ["IDEMPOTENCY_KEY_CONFLICT"; 2]);
    assert_eq!(rows(&client.get("/v1/trades").await.ok()).len(), 2);
}

#[tokio::test]
async fn a_key_whose_trade_was_rejected_is_free_for_the_next_one() {
    let Scene { client, market, .. } = Scene::new().await;
    let keyed = |usdc| with(buy(market, usdc), "idempotencyKey", "k");
    let answer = batch(&client, &[keyed("99999"), keyed("1"), keyed("1")]).await;
    assert_eq!(statuses(&answer), [409, 201, 201]);
    assert_eq!(results(&answer)[2]["body"]["_meta"]["idempotent"], true);
}

#[tokio::test]
async fn a_key_names_the_same_trade_in_a_batch_and_in_a_single_request() {
    let Scene { client, market, .. } = Scene::new().await;
    let trades =
        [with(buy(market, "1"), "idempotencyKey", "a"), with(buy(market, "2"), "idempotencyKey", "b")];
    let first = results(&batch(&client, &trades).await);
    let single = client.buy(market, 0, "2").idempotent("b").await.expect(201);
    assert_eq!(single["trade"], first[1]["body"]["trade"]);
    client.buy(market, 0, "3").idempotent("a").await.refused(ErrorCode::IdempotencyKeyConflict);
    let again = results(&batch(&client, &trades).await);
    for (first, again) in first.iter().zip(&again) {
        assert_eq!(again["body"]["trade"], first["body"]["trade"]);
        assert_eq!(again["body"]["_meta"]["idempotent"], true);
    }
}

#[tokio::test]
async fn each_trade_of_a_batch_costs_one_request_of_the_rate_limit() {
    let Scene { app, http, ada, market, .. } = Scene::new().await;
    let limits = LimitOverrides { requests_per_minute: Some(3), ..LimitOverrides::default() };
    let client = http.with(&app.key_with(&ada, Tier::Mm, limits).await);
    let trades = ["1", "2", "3", "4", "5"].map(|usdc| buy(market, usdc));
    let answer = batch(&client, &trades).await;
    assert_eq!(statuses(&answer), [201, 201, 201, 429, 429]);
    assert_eq!(answer.header("x-ratelimit-remaining"), Some("0"));
    for result in &results(&answer)[3..] {
        assert_eq!(code(result), "RATE_LIMIT_EXCEEDED");
        assert!(result["retryAfter"].as_u64().is_some_and(|seconds| seconds >= 1), "{result}");
    }
    // Without a token for its first trade, the whole request is rejected.
    assert_refused(&app, batch(&client, &trades), ErrorCode::RateLimitExceeded).await;
    app.clock.advance(40_000);
    let answer = batch(&client, &trades[3..]).await;
    assert_eq!((statuses(&answer), answer.header("x-ratelimit-remaining")), (vec![201, 201], Some("0")));
}

#[tokio::test]
async fn a_list_that_is_not_well_formed_is_rejected_as_a_whole() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let body = |body: Value| client.call("POST", "/v1/trades/batch").raw_json(body.to_string());
    let many = vec![buy(market, "1"); 21];
    for (call, pointers) in [
        (body(json!({})), ["/trades"]),
        (batch(&client, &[]), ["/trades"]),
        (batch(&client, &many), ["/trades"]),
        (body(json!({ "trades": buy(market, "1") })), ["/trades"]),
        (body(json!({ "trades": [buy(market, "1")], "dryRun": true })), ["/dryRun"]),
        (body(json!([buy(market, "1")])), [""]),
    ] {
        assert_invalid(&app, call, &pointers).await;
    }
    let keyed = batch(&client, &many[..1]).idempotent("k");
    assert_refused(&app, keyed, ErrorCode::IdempotencyKeyFormatInvalid).await;
    assert_eq!(statuses(&batch(&client, &many[1..]).await), [201; 20]);
}

#[tokio::test]
async fn switches_of_single_trades_apply_to_batches() {
    let Scene { app, client, market, .. } = Scene::new().await;
    for (switch, code) in [
        ("POST /v1/trades", ErrorCode::RouteDisabled),
        ("POST /v1/trades/batch", ErrorCode::RouteDisabled),
        (TRADING, ErrorCode::ApiTradeProcessingHalted),
    ] {
        set(&app.ctx, switch, Setting::Off, "ada", None).await.unwrap();
        assert_refused(&app, batch(&client, &[buy(market, "1")]), code).await;
        set(&app.ctx, switch, Setting::On, "ada", None).await.unwrap();
    }
    set(&app.ctx, "POST /v1/trades/batch", Setting::Off, "ada", None).await.unwrap();
    client.buy(market, 0, "1").await.created();
}

#[tokio::test]
async fn a_client_that_disconnects_changes_nothing_for_the_trades_of_its_batch() {
    let Scene { app, http, client, market, .. } = Scene::new().await;
    // The last trade is created after the first one is rejected, because of their common key.
    let keyed = |usdc| with(buy(market, usdc), "idempotencyKey", "k");
    let held = app.faults.hold("eth_call");
    let call = tokio::spawn(batch(&client, &[keyed("99999"), buy(market, "1"), keyed("2")]).send());
    held.reached().await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled(), "the batch was answered while the chain was held");
    held.release();
    http.state.mutations.close();
    http.state.mutations.wait().await;
    let listed = rows(&client.get("/v1/trades").await.ok());
    let mut amounts: Vec<_> = listed.iter().map(|trade| text(&trade["amount"])).collect();
    amounts.sort_unstable();
    assert_eq!(amounts, ["1", "2"]);
}

#[tokio::test]
async fn all_trades_of_a_batch_have_the_trace_of_the_caller() {
    let Scene { client, market, .. } = Scene::new().await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let answer = batch(&client, &[buy(market, "1"), buy(market, "2")]).header("traceparent", parent).await;
    for result in results(&answer) {
        assert_eq!(result["body"]["trade"]["correlationId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    }
}

store::on_each_engine! {
    async fn trades_of_a_batch_take_exactly_the_balance(store: store::Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = app.user("ada").funded("1000").await;
        let client = app.http().with(&app.key(&ada, Tier::Mm).await);
        let market = app.market(&["Yes", "No"]).await;
        // Each reserves its amount and the default slippage on its fee, so that 19 fit.
        let answer = batch(&client, &vec![buy(market, "52"); 20]).await;
        let results = results(&answer);
        let created = results.iter().filter(|result| result["status"] == 201).count();
        assert_eq!(created, 19, "{answer}");
        assert!(results.iter().all(|it| it["status"] == 201 || code(it) == "INSUFFICIENT_BALANCE"));
        app.run_workers().await;
        let completed = rows(&client.get("/v1/trades?status=completed").await.ok());
        assert_eq!(completed.len(), 19);
    }
}

#[tokio::test]
async fn each_trade_of_a_batch_counts_for_a_free_user() {
    let app = TestApp::with().budgets(["trades.address=2"]).start().await;
    let ada = app.user("ada").funded("100").await;
    let client = app.http().with(&app.key(&ada, Tier::Free).await);
    let market = app.market(&["Yes", "No"]).await;
    let results = results(&batch(&client, &[(); 5].map(|()| buy(market, "1"))).await);
    let (created, refused): (Vec<_>, Vec<_>) = results.iter().partition(|result| result["status"] == 201);
    assert_eq!((created.len(), refused.len()), (2, 3));
    for refused in refused {
        assert_eq!(code(refused), "RATE_LIMIT_EXCEEDED");
        assert_eq!(refused["problem"]["extensions"]["limiter"], "write");
    }
}

#[tokio::test]
async fn each_trade_of_a_batch_counts_for_the_network_of_a_free_user() {
    let app = TestApp::with().budgets(["free-requests.address=5"]).start().await;
    let ada = app.user("ada").funded("100").await;
    let client = app.http().with(&app.key(&ada, Tier::Free).await);
    let market = app.market(&["Yes", "No"]).await;
    let answer = batch(&client, &[(); 8].map(|()| buy(market, "1"))).await;
    assert_eq!(statuses(&answer), [201, 201, 201, 201, 201, 429, 429, 429]);
    assert_eq!(results(&answer)[5]["problem"]["extensions"]["limiter"], "network");
    client.get("/v1/key").await.refused(ErrorCode::RateLimitExceeded);
}
