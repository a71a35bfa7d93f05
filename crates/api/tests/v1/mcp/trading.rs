//! The tools that trade and claim.

use app::keys::IssueKey;
use app::kill_switches::{Setting, TRADING, set};
use domain::ErrorCode;
use domain::key::{Scope, Scopes, Tier};
use domain::trade::ConfirmationKey;
use serde_json::{Value, json};
use testkit::key_of;

use super::{agent, answered, call, pointers, refused, served};
use crate::scene::{Scene, text};

fn buy(scene: &Scene, amount: &str, key: &str) -> Value {
    json!({ "marketId": scene.market.id, "outcomeIndex": 0, "side": "buy", "amount": amount, "idempotencyKey": key })
}

#[tokio::test]
async fn a_trade_is_created_once_however_often_the_call_is_repeated() {
    let scene = Scene::new().await;
    let client = agent(&scene);
    let first = answered(&client, "create_trade", buy(&scene, "25.00", "k")).await;
    assert_eq!(first["result"], "created", "{first}");
    let again = answered(&client, "create_trade", buy(&scene, "25.00", "k")).await;
    assert_eq!(again["result"], "repeated", "{again}");
    assert_eq!(again["trade"]["tradeId"], first["trade"]["tradeId"]);
    refused(&client, "create_trade", buy(&scene, "26.00", "k"), ErrorCode::IdempotencyKeyConflict).await;
    assert_eq!(scene.app.rows().await.trades, 1);
    scene.app.run_workers().await;
    let listed = answered(&client, "list_trades", json!({})).await;
    assert_eq!(listed["trades"][0]["status"], "completed", "{listed}");
}

#[tokio::test]
async fn the_key_of_a_trade_is_the_idempotency_key_of_the_trading_api() {
    let scene = Scene::new().await;
    let by_tool = answered(&agent(&scene), "create_trade", buy(&scene, "25.00", "k")).await;
    let by_api = scene.client.buy(scene.market, 0, "25.00").idempotent("k").await.expect(201);
    assert_eq!(by_api["_meta"]["idempotent"], true);
    assert_eq!(by_api["trade"]["id"], by_tool["trade"]["tradeId"]);
}

#[tokio::test]
async fn a_trade_without_an_idempotency_key_is_rejected() {
    let scene = Scene::new().await;
    let client = agent(&scene);
    let mut arguments = buy(&scene, "25.00", "k");
    arguments.as_object_mut().unwrap().remove("idempotencyKey");
    assert_eq!(pointers(&client, "create_trade", arguments).await, ["/idempotencyKey"]);
    for (key, code) in [
        ("a b", ErrorCode::IdempotencyKeyFormatInvalid),
        ("a\r\nx: y", ErrorCode::IdempotencyKeyFormatInvalid),
        (&"k".repeat(300), ErrorCode::IdempotencyKeyTooLong),
    ] {
        refused(&client, "create_trade", buy(&scene, "25.00", key), code).await;
    }
    assert_eq!(scene.app.rows().await.trades, 0);
}

#[tokio::test]
async fn a_dry_run_creates_nothing() {
    let scene = Scene::new().await;
    let client = agent(&scene);
    let mut arguments = buy(&scene, "25.00", "k");
    arguments["dryRun"] = json!(true);
    let before = scene.app.rows().await;
    let dry = answered(&client, "create_trade", arguments).await;
    assert_eq!((&dry["result"], &dry["trade"]), (&json!("dry_run"), &json!(null)), "{dry}");
    assert_eq!(dry["dryRun"]["quote"]["usdc"], json!({ "amount": "25", "unit": "USDC" }), "{dry}");
    assert_eq!(scene.app.rows().await, before);
    // Its key is still unused.
    let real = answered(&client, "create_trade", buy(&scene, "25.00", "k")).await;
    assert_eq!(real["result"], "created", "{real}");
}

#[tokio::test]
async fn a_trade_at_the_threshold_is_held_with_a_link_and_without_its_token() {
    let scene = Scene::gated().await;
    let client = agent(&scene);
    let mut dry = buy(&scene, "100.00", "k");
    dry["dryRun"] = json!(true);
    let dry = answered(&client, "create_trade", dry).await;
    assert_eq!(dry["dryRun"]["requiresConfirmation"], true, "{dry}");
    for _ in 0..2 {
        let answer = call(&client, "create_trade", buy(&scene, "100.00", "k")).await;
        assert!(!answer.text.contains("ct_") && !answer.text.contains("token\""), "\n{answer}");
        let held = super::result(&answer)["structuredContent"].take();
        assert_eq!(held["result"], "held", "{held}");
        let url = format!("https://foretell.test/trades/{}", text(&held["trade"]["tradeId"]));
        assert_eq!(held["confirmation"]["url"], url, "{held}");
        assert!(text(&held["confirmation"]["expiresAt"]).ends_with('Z'), "{held}");
    }
    let listed = call(&client, "list_trades", json!({ "status": "pending_confirmation" })).await;
    assert!(!listed.text.contains("ct_"), "\n{listed}");
    answered(&client, "create_trade", buy(&scene, "99.99", "l")).await;
    scene.app.run_workers().await;
    let statuses: Vec<_> =
        answered(&client, "list_trades", json!({})).await["trades"].as_array().unwrap().clone();
    let statuses: Vec<_> = statuses.iter().map(|trade| text(&trade["status"])).collect();
    assert_eq!(statuses, ["completed", "pending_confirmation"]);
}

#[tokio::test]
async fn no_route_gives_the_token_of_an_agents_trade_and_none_confirms_it() {
    let scene = Scene::gated().await;
    let by_tool = answered(&agent(&scene), "create_trade", buy(&scene, "100.00", "k")).await;
    let id = text(&by_tool["trade"]["tradeId"]);
    let program = &scene.client;
    let replayed = program.buy(scene.market, 0, "100.00").idempotent("k").await.expect(202);
    assert_eq!(replayed["trade"]["id"], id, "{replayed}");
    assert_eq!(replayed["trade"]["confirmationPage"]["url"], by_tool["confirmation"]["url"], "{replayed}");
    let batch = json!({ "trades": [{ "marketId": scene.market.id, "outcomeIndex": 0, "side": "buy",
        "amount": "100.00", "idempotencyKey": "k" }] });
    let batch = program.call("POST", "/v1/trades/batch").raw_json(batch.to_string()).await.ok();
    let read = program.get(&format!("/v1/trades/{id}")).await.ok();
    let events = program.get("/v1/events").await.ok();
    let token = ConfirmationKey::derive(scene.app.ctx.config.pepper().unwrap().expose());
    let token = token.token(id.parse().unwrap());
    for answer in [&replayed, &batch, &read, &events] {
        assert!(answer.to_string().contains(id), "{answer}");
        assert!(!answer.to_string().contains("ct_"), "{answer}");
    }
    for token in [token.as_str(), "ct_x"] {
        let confirm = program.call("POST", &format!("/v1/trades/{id}/confirm"));
        let refused = confirm.raw_json(json!({ "token": token }).to_string()).await;
        refused.refused(ErrorCode::OwnerConfirmationRequired);
    }
}

#[tokio::test]
async fn a_key_without_the_scope_neither_trades_nor_claims() {
    let scene = Scene::new().await;
    let scopes = Some(Scopes::of(&[Scope::TradesRead, Scope::MarketsRead]));
    let reader = scene.app.issue(IssueKey { scopes, ..key_of(&scene.ada, Tier::Mm) }).await.unwrap();
    let client = served(&scene.app, true).with(&reader);
    let before = scene.app.rows().await;
    let error = refused(&client, "create_trade", buy(&scene, "1", "k"), ErrorCode::InsufficientScope).await;
    assert_eq!(error["extensions"]["submission"], "not_submitted", "{error}");
    let claim = json!({ "marketId": scene.market.id, "outcomeIndex": 0 });
    refused(&client, "redeem", claim, ErrorCode::InsufficientScope).await;
    refused(&client, "portfolio", json!({}), ErrorCode::InsufficientScope).await;
    assert_eq!(scene.app.rows().await, before);
}

#[tokio::test]
async fn nothing_trades_while_trading_is_halted() {
    let scene = Scene::new().await;
    let client = agent(&scene);
    set(&scene.app.ctx, TRADING, Setting::Off, "ada", None).await.unwrap();
    refused(&client, "create_trade", buy(&scene, "1", "k"), ErrorCode::ApiTradeProcessingHalted).await;
    answered(&client, "search_markets", json!({})).await;
    assert_eq!(scene.app.rows().await.trades, 0);
}

#[tokio::test]
async fn the_caps_of_the_key_bound_an_agent() {
    let scene = Scene::new().await;
    let error =
        refused(&agent(&scene), "create_trade", buy(&scene, "60000", "k"), ErrorCode::SpendingLimitExceeded)
            .await;
    assert_eq!(error["extensions"]["cap"], "per_trade", "{error}");
    assert_eq!(scene.app.rows().await.trades, 0);
}

#[tokio::test]
async fn a_settled_position_is_claimed_once() {
    let scene = Scene::new().await;
    let client = agent(&scene);
    scene.settled(scene.client.buy(scene.market, 0, "25.00")).await;
    let claim = json!({ "marketId": scene.market.id, "outcomeIndex": 0 });
    refused(&client, "redeem", claim.clone(), ErrorCode::PositionNotClaimable).await;
    scene.app.resolve(scene.market, 0).await;
    scene.app.run_workers().await;
    let first = answered(&client, "redeem", claim.clone()).await;
    assert_eq!((&first["status"], &first["amount"]["unit"]), (&json!("pending"), &json!("USDC")));
    scene.app.run_workers().await;
    let again = answered(&client, "redeem", claim).await;
    assert_eq!((&again["redemptionId"], &again["status"]), (&first["redemptionId"], &json!("completed")));
}

#[tokio::test]
async fn no_answer_contains_the_key() {
    let scene = Scene::gated().await;
    let client = agent(&scene);
    for (tool, arguments) in [
        ("portfolio", json!({})),
        ("create_trade", buy(&scene, "100", "k")),
        ("create_trade", json!({ "key": scene.key.plaintext })),
        ("list_trades", json!({})),
    ] {
        let answer = call(&client, tool, arguments).await;
        assert!(!answer.text.contains("service_test_") && !answer.text.contains("ct_"), "{tool}\n{answer}");
    }
}
