//! Well-formed requests that cannot be executed, each with its error code. Nothing is stored for
//! any of them.

use domain::ErrorCode;
use domain::ids::MarketId;
use domain::key::Tier;
use serde_json::{Map, json};
use testkit::{Fault, TestMarket};

use crate::scene::{Scene, assert_invalid, assert_refused};

#[tokio::test]
async fn unknown_markets_and_malformed_ids_are_not_found() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let unknown = TestMarket { id: MarketId(app.ctx.uuid()), ..market };
    assert_refused(&app, client.buy(unknown, 0, "1"), ErrorCode::MarketNotFound).await;
    for id in ["", "7", "é"] {
        let call = client.buy(market, 0, "1").with("marketId", id);
        assert_refused(&app, call, ErrorCode::MarketNotFound).await;
    }
}

#[tokio::test]
async fn an_outcome_beyond_those_of_the_market_is_rejected() {
    let Scene { app, client, market, .. } = Scene::new().await;
    for index in [2, -1, 255, 256, i64::MAX, i64::MIN] {
        let call = client.buy(market, 0, "1").with("outcomeIndex", index);
        assert_refused(&app, call, ErrorCode::OutcomeIndexInvalid).await;
    }
}

#[tokio::test]
async fn an_outcome_index_beyond_64_bits_is_an_integer_out_of_range() {
    let Scene { app, client, market, .. } = Scene::new().await;
    for index in ["9223372036854775808", "18446744073709551616", "-9223372036854775809", &"9".repeat(100)] {
        for (path, more) in [("/v1/trades", r#", "amount": "1", "side": "buy""#), ("/v1/redemptions", "")] {
            let body = format!(r#"{{"marketId": "{}", "outcomeIndex": {index}{more}}}"#, market.id);
            let call = client.call("POST", path).raw_json(body);
            assert_refused(&app, call, ErrorCode::OutcomeIndexInvalid).await;
        }
        for route in ["quote?action=buy&amount=25000000&", "predictions?", "history?"] {
            let path = format!("/v1/markets/{}/{route}outcomeIndex={index}", market.id);
            client.get(&path).await.refused(ErrorCode::OutcomeIndexInvalid);
        }
    }
}

#[tokio::test]
async fn a_malformed_market_id_is_not_found_in_a_path_or_a_body_and_invalid_in_a_filter() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let not_found = ErrorCode::MarketNotFound;
    assert_refused(&app, client.buy(market, 0, "1").with("marketId", "7"), not_found).await;
    assert_refused(&app, client.redeem(market, 0).with("marketId", "7"), not_found).await;
    for path in ["", "/predictions", "/history", "/quote?outcomeIndex=0&action=buy&amount=25000000"] {
        client.get(&format!("/v1/markets/7{path}")).await.refused(not_found);
    }
    for list in ["/v1/trades", "/v1/redemptions", "/v1/portfolio/positions"] {
        let answer = client.get(&format!("{list}?marketId=7")).await;
        assert_eq!(answer.pointers(), ["/marketId"], "{list}");
    }
}

#[tokio::test]
async fn an_amount_is_above_zero_with_at_most_six_decimals() {
    let Scene { app, client, market, .. } = Scene::new().await;
    for amount in [
        "1.0000001",
        "0",
        "0.000000",
        "-1",
        "+1",
        "1e3",
        "1,5",
        "01",
        ".5",
        "1.",
        "",
        " 1",
        "NaN",
        "1000000000000",
    ] {
        assert_invalid(&app, client.buy(market, 0, amount), &["/amount"]).await;
    }
    client.buy(market, 0, "0.000002").await.created();
}

#[tokio::test]
async fn an_amount_above_ten_million_is_too_large() {
    let Scene { app, client, market, .. } = Scene::new().await;
    assert_refused(&app, client.buy(market, 0, "10000000.000001"), ErrorCode::AmountTooLarge).await;
    assert_refused(&app, client.buy(market, 0, "999999999999"), ErrorCode::AmountTooLarge).await;
}

#[tokio::test]
async fn an_amount_above_the_balance_is_rejected_with_the_balance() {
    let Scene { app, client, market, .. } = Scene::with("100", Tier::Mm).await;
    client.buy(market, 0, "60").await.created();
    let extensions =
        assert_refused(&app, client.buy(market, 0, "40.000001"), ErrorCode::InsufficientBalance).await;
    let expected =
        json!({ "availableUsdc": "40000000", "requiredUsdc": "40000001", "submission": "not_submitted" });
    assert_eq!(extensions, expected);
}

#[tokio::test]
async fn only_held_tokens_can_be_sold() {
    let Scene { app, client, market, .. } = Scene::new().await;
    assert_refused(&app, client.sell(market, 0, "1"), ErrorCode::InsufficientBalance).await;
    assert_refused(&app, client.sell(market, 0, "1").in_tokens(), ErrorCode::InsufficientBalance).await;
    assert_refused(&app, client.sell_all(market, 0), ErrorCode::InsufficientBalance).await;
}

#[tokio::test]
async fn an_account_that_is_not_on_chain_cannot_trade() {
    let Scene { app, http, market, .. } = Scene::new().await;
    let bob = app.user("bob").funded("100").await;
    let client = http.with(&app.disabled_key(&bob, Tier::Mm).await);
    assert_refused(&app, client.buy(market, 0, "1"), ErrorCode::SmartAccountNotProvisioned).await;
}

#[tokio::test]
async fn a_key_without_a_delegation_cannot_trade() {
    let Scene { app, http, ada, market, .. } = Scene::new().await;
    let second = app.disabled_key(&ada, Tier::Mm).await;
    let client = http.with(&second);
    assert_refused(&app, client.buy(market, 0, "1"), ErrorCode::WalletDelegationNotEnabled).await;
    app.enable(&ada, &second).await;
    client.buy(market, 0, "1").await.created();
    app.disable(&ada, &second).await;
    assert_refused(&app, client.buy(market, 0, "1"), ErrorCode::WalletDelegationNotEnabled).await;
}

#[tokio::test]
async fn a_market_that_is_frozen_resolved_or_cancelled_is_not_tradeable() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let cancelled = app.market(&["A", "B"]).await;
    app.freeze(market).await;
    app.cancel(cancelled).await;
    app.run_workers().await;
    let extensions = assert_refused(&app, client.buy(market, 0, "1"), ErrorCode::MarketNotTradeable).await;
    assert_eq!(extensions["marketStatus"], "FROZEN");
    let extensions = assert_refused(&app, client.buy(cancelled, 0, "1"), ErrorCode::MarketNotTradeable).await;
    assert_eq!(extensions["marketStatus"], "CANCELLED");
    app.resolve(market, 0).await;
    app.run_workers().await;
    let extensions = assert_refused(&app, client.sell_all(market, 0), ErrorCode::MarketNotTradeable).await;
    assert_eq!(extensions["marketStatus"], "RESOLVED");
}

#[tokio::test]
async fn metadata_is_bounded_in_entries_keys_and_values() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let entries = |count: usize| (0..count).map(|n| (n.to_string(), json!(""))).collect::<Map<_, _>>();
    let with = |metadata: serde_json::Value| client.buy(market, 0, "1").with("metadata", metadata);
    assert_invalid(&app, with(entries(51).into()), &["/metadata"]).await;
    for key in ["", "a b", "a/b", "é", &"k".repeat(65)] {
        assert_invalid(&app, with(json!({ key: "v" })), &["/metadata"]).await;
    }
    assert_invalid(&app, with(json!({ "k": "v".repeat(501) })), &["/metadata/k"]).await;
    with(entries(50).into()).await.created();
    let largest = json!({ "k".repeat(64): "é".repeat(500), "a-Z_0.9": "" });
    assert_eq!(with(largest.clone()).await.created()["metadata"], largest);
}

#[tokio::test]
async fn a_client_request_id_has_an_alphabet_and_at_most_128_characters() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let with = |id: &str| client.buy(market, 0, "1").with("clientRequestId", id);
    for id in ["", "a b", "a/b", "é", "a\n", &"x".repeat(129)] {
        assert_invalid(&app, with(id), &["/clientRequestId"]).await;
    }
    for id in ["a-Z_0:9.", &"x".repeat(128)] {
        assert_eq!(with(id).await.created()["clientRequestId"], id);
    }
}

#[tokio::test]
async fn bounds_and_deadlines_are_validated_by_form_and_side() {
    let Scene { app, client, market, .. } = Scene::new().await;
    for (member, value) in [
        ("minTokensOut", json!("1.5")),
        ("minTokensOut", json!("-1")),
        ("maxTokensIn", json!("1")),
        ("maxSlippageBps", json!(-1)),
        ("maxSlippageBps", json!(10_001)),
        ("amountType", json!("all")),
        ("amountType", json!("USDC")),
        ("deadline", json!("2020-01-01T00:00:00Z")),
        ("deadline", json!("soon")),
    ] {
        let call = client.buy(market, 0, "1").with(member, value);
        assert_invalid(&app, call, &[&format!("/{member}")]).await;
    }
}

#[tokio::test]
async fn an_unreachable_chain_stores_nothing_and_the_key_can_be_reused() {
    let Scene { app, client, market, .. } = Scene::new().await;
    app.faults.always("eth_call", Fault::LostRequest);
    let before = app.rows().await;
    let answer = client.buy(market, 0, "1").idempotent("k").await;
    let problem = answer.refused(ErrorCode::DependencyUnavailable);
    assert_eq!(
        (answer.header("retry-after"), &problem["extensions"]["submission"]),
        (Some("1"), &"not_submitted".into())
    );
    assert_eq!(app.rows().await, before);
    app.faults.heal();
    client.buy(market, 0, "1").idempotent("k").await.created();
}
