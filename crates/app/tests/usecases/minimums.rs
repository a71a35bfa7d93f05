//! The minimum trade and the minimum claim.

use alloy_primitives::U256;
use app::AppError;
use app::markets::{QuoteRequest, quote, quote_usdc};
use app::redemptions::ClaimResult;
use domain::trade::{Side, Status};
use domain::{ErrorCode, Usdc, Wad};
use store::Store;
use testkit::{TestApp, TestKey, TestMarket};

use crate::scene::{Scene, assert_refused};

const CENT: Usdc = Usdc::from_atomic(10_000);

async fn scene(store: Store) -> Scene {
    Scene::of(TestApp::with().on(store).minimum(CENT).start().await).await
}

fn assert_names_the_minimum(refusal: &AppError) {
    assert_eq!(refusal.code, ErrorCode::AmountTooSmall, "{refusal}");
    assert_eq!(refusal.extensions["minimum"], "10000");
    assert_eq!(refusal.detail, "The amount must be at least 0.01 USDC.");
}

fn assert_names_the_minimum_sale(refusal: &AppError) {
    assert_eq!(refusal.code, ErrorCode::AmountTooSmall, "{refusal}");
    assert_eq!(refusal.extensions["minimum"], "10000");
    assert_eq!(refusal.detail, "A sale that leaves tokens must bring at least 0.01 USDC.");
}

/// Returns the outcomes that can be claimed.
async fn claimable_outcomes(app: &TestApp, key: &TestKey, market: TestMarket) -> Vec<u8> {
    let positions = app::portfolio::positions(&app.ctx, &key.caller, Some(market.id)).await.unwrap();
    positions.iter().filter(|it| it.is_claimable).map(|it| it.held.outcome_index).collect()
}

/// Resolves the market so that outcome tokens pay these hundredths of a USDC.
async fn resolve_in_parts(app: &TestApp, market: TestMarket, percents: &[u64]) {
    app.resolve_in_parts(market, percents).await;
    app.run_workers().await;
}

store::on_each_engine! {
    async fn a_trade_below_the_minimum_is_rejected(store: Store) {
        let Scene { app, key, market, .. } = scene(store).await;
        let small = assert_refused(&app, key.buy(&market, 0, "0.009999"), ErrorCode::AmountTooSmall).await;
        assert_names_the_minimum(&small);
        let made = key.buy(&market, 0, "0.01").await;
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        assert_eq!(app.status(made.id).await, Status::Completed);

        let small = assert_refused(&app, key.sell(&market, 0, "0.009999"), ErrorCode::AmountTooSmall).await;
        assert_names_the_minimum_sale(&small);
        let sold = key.sell(&market, 0, "0.01").await;
        app.run_workers().await;
        assert_eq!(app.status(sold.id).await, Status::Completed);
        app.assert_ledger_equals_chain().await;
    }

    async fn an_amount_in_tokens_counts_at_its_quoted_value(store: Store) {
        let Scene { app, key, market, .. } = scene(store).await;
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        // A token is worth about half a USDC.
        for tokens in ["0.000001", "0.019"] {
            let buy = key.buy(&market, 0, tokens).in_tokens();
            assert_names_the_minimum(&assert_refused(&app, buy, ErrorCode::AmountTooSmall).await);
            let sell = key.sell(&market, 0, tokens).in_tokens();
            assert_names_the_minimum_sale(&assert_refused(&app, sell, ErrorCode::AmountTooSmall).await);
        }
        key.buy(&market, 0, "0.03").in_tokens().await;
        key.sell(&market, 0, "0.03").in_tokens().await;
    }

    async fn a_position_below_the_minimum_value_is_sold_as_a_whole(store: Store) {
        let Scene { app, ada, key, market } = scene(store).await;
        key.buy(&market, 0, "0.01").await;
        app.run_workers().await;
        // The fees of the buy and the sale reduce it.
        let sold = key.sell_all(&market, 0).await;
        app.run_workers().await;
        assert_eq!(app.status(sold.id).await, Status::Completed);
        assert_eq!(app.tokens(&ada, market, 0).await, Wad::ZERO);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_sale_rounded_to_six_decimals_sells_the_whole_position(store: Store) {
        let Scene { app, ada, key, market } = scene(store).await;
        let millionth = Wad::MIN_AMOUNT.0;
        for rounds_up in [false, true] {
            key.buy(&market, 0, "7").await;
            app.run_workers().await;
            let held = app.tokens(&ada, market, 0).await.0;
            assert_ne!(held % millionth, U256::ZERO, "the position has more than six decimals");
            let rounded = if rounds_up { held.div_ceil(millionth) } else { held / millionth };
            let amount = Usdc::from_atomic(rounded.to()).to_decimal();
            let sale = key.sell(&market, 0, &amount).in_tokens();
            assert_eq!(sale.clone().dry_run().await.unwrap().quote.tokens_wad, held);
            let sold = sale.await;
            app.run_workers().await;
            assert_eq!(app.status(sold.id).await, Status::Completed);
            assert_eq!(app.tokens(&ada, market, 0).await, Wad::ZERO);
        }
        let none = assert_refused(&app, key.sell_all(&market, 0), ErrorCode::InsufficientBalance).await;
        assert_eq!(none.detail, "There are no tokens to sell.");
        app.assert_ledger_equals_chain().await;
    }

    async fn a_quote_of_a_buy_below_the_minimum_is_rejected_like_a_trade(store: Store) {
        let Scene { app, key, market, .. } = scene(store).await;
        key.buy(&market, 0, "10").await;
        app.run_workers().await;
        let id = market.id.to_string();
        let ask = async |side, amount: u128| {
            let action = QuoteRequest { side, amount: U256::from(amount) };
            quote(&app.ctx, &id, 0, action, None).await.map(|quote| quote.fill.usdc_atomic)
        };
        assert_names_the_minimum(&ask(Side::Buy, 9_999).await.unwrap_err());
        assert_names_the_minimum(&ask(Side::Buy, 1).await.unwrap_err());
        assert_eq!(ask(Side::Buy, 10_000).await.unwrap(), 10_000);
        // The asker may hold no more than that.
        assert_eq!(ask(Side::Sell, 1).await.unwrap(), 0);
        let usdc = |atomic| quote_usdc(&app.ctx, &id, 0, Side::Buy, Usdc::from_atomic(atomic));
        assert_names_the_minimum(&usdc(9_999).await.unwrap_err());
        assert!(usdc(10_000).await.is_ok());
    }

    async fn a_claim_has_no_minimum(store: Store) {
        let Scene { app, ada, key, market } = scene(store).await;
        key.buy(&market, 0, "0.01").await;
        key.buy(&market, 1, "0.02").await;
        app.run_workers().await;
        resolve_in_parts(&app, market, &[10, 90]).await;
        assert_eq!(claimable_outcomes(&app, &key, market).await, [0, 1]);
        for outcome in [0, 1] {
            assert!(matches!(key.redeem(&market, outcome).await.unwrap(), ClaimResult::Created(_)));
        }
        app.run_workers().await;
        assert!(claimable_outcomes(&app, &key, market).await.is_empty());
        for outcome in [0, 1] {
            assert_eq!(app.tokens(&ada, market, outcome).await, Wad::ZERO);
        }
        app.assert_ledger_equals_chain().await;
    }

    async fn winnings_below_the_automatic_minimum_are_paid_when_they_are_claimed(store: Store) {
        let app = TestApp::with().on(store).minimum(CENT).automatic_redemptions().start().await;
        let Scene { app, ada, key, market } = Scene::of(app).await;
        key.buy(&market, 0, "0.01").await;
        key.buy(&market, 1, "5").await;
        app.run_workers().await;
        resolve_in_parts(&app, market, &[10, 90]).await;
        app.run_workers().await;
        let claims = app.claims(&ada).await;
        let paid: Vec<_> = claims.iter().map(|claim| claim.outcome_index).collect();
        assert_eq!(paid, [1]);
        assert_eq!(app.rows().await.redemptions, 1);
        assert_eq!(claimable_outcomes(&app, &key, market).await, [0]);
        let automatic = key.redeem(&market, 1).await.unwrap_err();
        assert_eq!(automatic.code, ErrorCode::RedemptionsNotEnabled);
        app::redemptions::claim_own(&app.ctx, &app.person_of(&ada).await, None).await.unwrap();
        app.run_workers().await;
        assert_eq!(app.tokens(&ada, market, 0).await, Wad::ZERO);
        app.assert_ledger_equals_chain().await;
    }
}

#[tokio::test]
async fn an_amount_that_moves_nothing_is_too_small_even_without_a_minimum() {
    let Scene { app, key, market, .. } = Scene::new().await;
    key.buy(&market, 0, "10").await;
    app.run_workers().await;
    for request in [key.buy(&market, 0, "0.000001"), key.sell(&market, 0, "0.000001").in_tokens()] {
        let refusal = assert_refused(&app, request, ErrorCode::AmountTooSmall).await;
        assert_eq!(refusal.detail, "The amount is too small: it rounds to zero.");
    }
}
