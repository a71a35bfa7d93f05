//! All rejections of trade requests. None of them stores or reserves anything.

use alloy_primitives::U256;
use app::AppError;
use chain::{IntentSide, calls};
use domain::ErrorCode;
use domain::key::Tier;
use domain::time::HOUR_MS;
use domain::trade::{Draft, Status};
use testkit::{TestApp, TestMarket};

use crate::scene::{Scene, assert_refused};

#[tokio::test]
async fn unknown_and_malformed_market_ids_are_not_found() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let unknown = TestMarket { id: domain::ids::MarketId(app.ctx.uuid()), ..market };
    assert_refused(&app, key.buy(&unknown, 0, "1"), ErrorCode::MarketNotFound).await;
    for id in ["", "7", "00000000-0000-0000-0000-00000000000g", "é"] {
        let request = key.buy(&market, 0, "1").with(|draft| draft.market_id = Some(id.to_owned()));
        assert_refused(&app, request, ErrorCode::MarketNotFound).await;
    }
}

#[tokio::test]
async fn a_market_that_is_not_on_chain_is_not_found() {
    let Scene { app, key, market, .. } = Scene::new().await;
    app.faults.every_send(testkit::Fault::LostRequest);
    let id = domain::ids::MarketId(app.ctx.uuid());
    let new = app::markets::NewMarket { id: Some(id), ..testkit::market_of(&app, &["Yes", "No"]) };
    app::markets::create(&app.ctx, &app.roles.resolver, new).await.unwrap_err();
    let pending = TestMarket { id, ..market };
    assert_refused(&app, key.buy(&pending, 0, "1"), ErrorCode::MarketNotFound).await;
}

#[tokio::test]
async fn an_unknown_outcome_is_rejected() {
    let Scene { app, key, market, .. } = Scene::new().await;
    for index in [2, 250, 256, -1, i64::MAX, i64::MIN] {
        let request = key.buy(&market, 0, "1").with(|draft| draft.outcome_index = Some(index));
        assert_refused(&app, request, ErrorCode::OutcomeIndexInvalid).await;
    }
}

#[tokio::test]
async fn an_amount_with_seven_decimals_is_rejected() {
    let Scene { app, key, market, .. } = Scene::new().await;
    for amount in ["1.0000001", "0.0000001", "0", "-1", "1e3", "", "01", "1,5"] {
        let refusal = assert_refused(&app, key.buy(&market, 0, amount), ErrorCode::ValidationFailed).await;
        assert_eq!(refusal.extensions["errors"][0]["pointer"], "/amount", "{amount:?}");
    }
}

#[tokio::test]
async fn the_cap_per_trade_is_checked_before_the_tokens_of_a_sale() {
    let Scene { app, key, market, .. } = Scene::with(TestApp::new().await, "100", Tier::Free).await;
    let refusal =
        assert_refused(&app, key.sell(&market, 0, "500.000001"), ErrorCode::SpendingLimitExceeded).await;
    assert_eq!(refusal.extensions["cap"], "per_trade");
    assert_refused(&app, key.sell(&market, 0, "500"), ErrorCode::InsufficientBalance).await;
}

#[tokio::test]
async fn the_maximum_amount_is_checked_before_any_cap() {
    let Scene { app, key, market, .. } = Scene::new().await;
    assert_refused(&app, key.buy(&market, 0, "10000000.000001"), ErrorCode::AmountTooLarge).await;
    assert_refused(&app, key.buy(&market, 0, "10000000"), ErrorCode::SpendingLimitExceeded).await;
}

#[tokio::test]
async fn all_missing_fields_are_reported_at_once() {
    let Scene { app, key, .. } = Scene::new().await;
    let refusal = assert_refused(&app, key.request(Draft::default()), ErrorCode::ValidationFailed).await;
    assert_eq!(refusal.extensions["errors"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_deadline_in_the_past_is_rejected() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let now = app.ctx.now().to_string();
    let request = key.buy(&market, 0, "1").with(|draft| draft.deadline = Some(now));
    let refusal = assert_refused(&app, request, ErrorCode::ValidationFailed).await;
    assert_eq!(refusal.extensions["errors"][0]["pointer"], "/deadline");
}

#[tokio::test]
async fn only_an_open_market_can_be_traded() {
    let Scene { app, key, market, .. } = Scene::new().await;
    app.freeze(market).await;
    app.run_workers().await;
    let refusal = assert_refused(&app, key.buy(&market, 0, "1"), ErrorCode::MarketNotTradeable).await;
    assert_eq!(refusal.extensions["marketStatus"], "FROZEN");

    app.unfreeze(market).await;
    app.run_workers().await;
    key.buy(&market, 0, "1").await;
    app.run_workers().await;

    app.resolve(market, 0).await;
    app.run_workers().await;
    let refusal = assert_refused(&app, key.sell_all(&market, 0), ErrorCode::MarketNotTradeable).await;
    assert_eq!(refusal.extensions["marketStatus"], "RESOLVED");

    let other = app.market(&["Yes", "No"]).await;
    app.cancel(other).await;
    app.run_workers().await;
    let refusal = assert_refused(&app, key.buy(&other, 0, "1"), ErrorCode::MarketNotTradeable).await;
    assert_eq!(refusal.extensions["marketStatus"], "CANCELLED");
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_market_stops_trading_at_its_end_before_the_sync() {
    let Scene { app, key, .. } = Scene::new().await;
    let end = app.ctx.now().plus_ms(HOUR_MS);
    let market = app.market_with(&["Yes", "No"], |new| new.end_time = end).await;
    app.advance_ms(HOUR_MS - 1).await;
    key.buy(&market, 0, "1").dry_run().await.unwrap();
    app.advance_ms(1).await;
    let refusal = assert_refused(&app, key.buy(&market, 0, "1"), ErrorCode::MarketNotTradeable).await;
    assert_eq!(refusal.extensions["marketStatus"], "FROZEN");
}

#[tokio::test]
async fn an_account_that_is_not_on_chain_cannot_trade() {
    let Scene { app, market, .. } = Scene::new().await;
    let bob = app.user("bob").funded("100").await;
    let key = app.disabled_key(&bob, Tier::Mm).await;
    assert_refused(&app, key.buy(&market, 0, "1"), ErrorCode::SmartAccountNotProvisioned).await;
    app.enable(&bob, &key).await;
    key.buy(&market, 0, "1").await;
}

#[tokio::test]
async fn a_key_without_a_delegation_cannot_trade() {
    let Scene { app, ada, market, .. } = Scene::new().await;
    let second = app.disabled_key(&ada, Tier::Mm).await;
    assert_refused(&app, second.buy(&market, 0, "1"), ErrorCode::WalletDelegationNotEnabled).await;
}

#[tokio::test]
async fn a_delegation_ends_at_the_expiry_of_its_key() {
    let Scene { app, ada, market, .. } = Scene::new().await;
    let expires_at = Some(app.ctx.now().plus_ms(HOUR_MS));
    let wanted = app::keys::IssueKey { expires_at, ..testkit::key_of(&ada, Tier::Mm) };
    let key = app.issue(wanted).await.unwrap();
    app.enable(&ada, &key).await;
    key.buy(&market, 0, "1").await;
    app.advance_ms(HOUR_MS + 1_000).await;
    let policy = app.ctx.chain.policy(ada.account, key.caller.key.key_index).await.unwrap();
    assert!(!policy.is_live(app.ctx.now().s()));
    assert_refused(&app, key.buy(&market, 0, "1"), ErrorCode::ApiKeyExpired).await;
}

#[tokio::test]
async fn a_revoked_delegation_stops_only_its_key() {
    let Scene { app, ada, key, market } = Scene::new().await;
    let second = app.key(&ada, Tier::Mm).await;
    app.disable(&ada, &key).await;
    assert_refused(&app, key.buy(&market, 0, "1"), ErrorCode::WalletDelegationNotEnabled).await;
    second.buy(&market, 0, "1").await;
}

#[tokio::test]
async fn withdrawing_the_allowance_ends_every_delegation() {
    let Scene { app, ada, key, market } = Scene::new().await;
    let contracts = app.ctx.chain.contracts().clone();
    app.as_owner(&ada, contracts.usdc, calls::approve(contracts.gate, U256::ZERO)).await;
    assert_refused(&app, key.buy(&market, 0, "1"), ErrorCode::WalletDelegationNotEnabled).await;
}

#[tokio::test]
async fn a_buy_is_at_most_the_balance_minus_reservations() {
    let app = TestApp::new().await;
    let Scene { app, key, market, .. } = Scene::with(app, "100", Tier::Mm).await;
    assert_refused(&app, key.buy(&market, 0, "100.000001"), ErrorCode::InsufficientBalance).await;
    key.buy(&market, 0, "60").await;
    let refusal =
        assert_refused(&app, key.buy(&market, 1, "40.000001"), ErrorCode::InsufficientBalance).await;
    assert_eq!(refusal.extensions["requiredUsdc"], "40000001");
    assert_eq!(refusal.extensions["availableUsdc"], "40000000");
    key.buy(&market, 1, "40").await;
    app.run_workers().await;
    assert_refused(&app, key.buy(&market, 1, "0.000002"), ErrorCode::InsufficientBalance).await;
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn usdc_of_a_mined_trade_is_not_counted_twice() {
    let app = TestApp::with().confirmations(3).start().await;
    let Scene { app, key, market, .. } = Scene::with(app, "100", Tier::Mm).await;
    app.mine(3).await;
    app.run_workers().await;
    key.buy(&market, 0, "60").await;
    app.run_workers().await;
    assert_refused(&app, key.buy(&market, 1, "40.000001"), ErrorCode::InsufficientBalance).await;
    let second = key.buy(&market, 1, "40").await;
    app.run_workers().await;
    app.mine(3).await;
    app.run_workers().await;
    assert_eq!(app.status(second.id).await, Status::Completed);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_sale_is_at_most_the_held_tokens() {
    let Scene { app, key, market, .. } = Scene::new().await;
    assert_refused(&app, key.sell_all(&market, 0), ErrorCode::InsufficientBalance).await;
    assert_refused(&app, key.sell(&market, 0, "1"), ErrorCode::InsufficientBalance).await;
    assert_refused(&app, key.sell(&market, 0, "1").in_tokens(), ErrorCode::InsufficientBalance).await;
    key.buy(&market, 0, "10").await;
    app.run_workers().await;
    assert_refused(&app, key.sell(&market, 0, "10"), ErrorCode::InsufficientBalance).await;
    assert_refused(&app, key.sell(&market, 1, "1"), ErrorCode::InsufficientBalance).await;
}

#[tokio::test]
async fn a_bound_missed_by_one_wei_is_rejected() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let quote = app.quote(market, 0, IntentSide::BuyForUsdc, U256::from(10_000_000)).await;
    let buy =
        |least: U256| key.buy(&market, 0, "10").with(|draft| draft.min_tokens_out = Some(least.to_string()));
    assert_refused(&app, buy(quote.tokens_wad + U256::from(1)), ErrorCode::SlippageExceeded).await;
    buy(quote.tokens_wad).await;
    app.run_workers().await;

    let quote = app.quote(market, 0, IntentSide::SellForUsdc, U256::from(5_000_000)).await;
    let sell =
        |most: U256| key.sell(&market, 0, "5").with(|draft| draft.max_tokens_in = Some(most.to_string()));
    assert_refused(&app, sell(quote.tokens_wad - U256::from(1)), ErrorCode::SlippageExceeded).await;
    let sold = sell(quote.tokens_wad).await;
    app.run_workers().await;
    assert_eq!(app.status(sold.id).await, Status::Completed);
}

#[tokio::test]
async fn a_sale_that_the_curve_cannot_pay_is_rejected() {
    let Scene { app, key, market, .. } = Scene::new().await;
    key.buy(&market, 0, "10").await;
    app.run_workers().await;
    assert_refused(&app, key.sell(&market, 0, "5000"), ErrorCode::LiquidityInsufficient).await;
}

#[tokio::test]
async fn a_silent_node_is_a_dependency_error_and_nothing_is_sent() {
    let Scene { app, key, market, .. } = Scene::new().await;
    app.faults.always("eth_call", testkit::Fault::LostRequest);
    let refusal = assert_refused(&app, key.buy(&market, 0, "1"), ErrorCode::DependencyUnavailable).await;
    assert_eq!(refusal.retry_after_s, Some(1));
    app.faults.heal();
    key.buy(&market, 0, "1").await;
}

#[test]
fn a_nul_that_reaches_the_database_is_the_fault_of_whoever_sent_it() {
    assert_eq!(AppError::from(store::StoreError::Nul).code, ErrorCode::ValidationFailed);
}
