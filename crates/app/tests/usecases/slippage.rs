//! The default slippage of trades.

use domain::risk::RiskRefusal;
use domain::trade::{State, Status};
use domain::{Usdc, Wad};
use store::Store;
use store::trades::Trade;
use testkit::{Request, TestApp};

use crate::scene::Scene;

async fn scene(store: Store) -> Scene {
    Scene::of(TestApp::with().on(store).default_slippage_bps(200).start().await).await
}

fn is_rejected_for_its_price(trade: &Trade) -> bool {
    matches!(&trade.state, State::Rejected(refusal) if refusal.reason == RiskRefusal::PriceMoved)
}

/// Returns the amounts of the request's intent after the trade was executed.
async fn bounds_of(app: &TestApp, request: Request<'_>) -> (Usdc, Wad) {
    let trade = request.await;
    assert_eq!(trade.max_slippage_bps, Some(200));
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, Status::Completed);
    (trade.intent_usdc, trade.intent_tokens)
}

store::on_each_engine! {
    async fn a_trade_without_a_bound_is_rejected_past_the_default_slippage(store: Store) {
        let Scene { app, key, market, .. } = scene(store).await;
        key.buy(&market, 0, "50").await;
        key.buy(&market, 1, "50").await;
        app.run_workers().await;
        let mut worse = vec![key.buy(&market, 0, "10").await.id];
        worse.push(key.buy(&market, 0, "10").in_tokens().await.id);
        worse.push(key.sell(&market, 1, "10").await.id);
        worse.push(key.sell(&market, 1, "10").in_tokens().await.id);
        let at_any_price = key.buy(&market, 0, "10").with(|draft| draft.max_slippage_bps = Some(10_000)).await;
        let within_two_percent = key.buy(&market, 1, "10").await;
        app.stranger_buys(market, 0, "100").await;
        app.run_workers().await;
        for id in worse {
            assert!(is_rejected_for_its_price(&app.trade(id).await));
        }
        for trade in [at_any_price, within_two_percent] {
            assert_eq!(app.status(trade.id).await, Status::Completed);
        }
        app.assert_ledger_equals_chain().await;
    }

    async fn every_signed_intent_has_a_price_bound(store: Store) {
        let Scene { app, key, market, .. } = scene(store).await;
        key.buy(&market, 0, "100").await;
        app.run_workers().await;
        let (usdc, tokens) = bounds_of(&app, key.buy(&market, 0, "10")).await;
        assert!(usdc == Usdc::from_whole(10) && tokens > Wad::ZERO);
        let (usdc, tokens) = bounds_of(&app, key.buy(&market, 0, "10").in_tokens()).await;
        assert!(usdc > Usdc::ZERO && tokens > Wad::ZERO);
        let (usdc, tokens) = bounds_of(&app, key.sell(&market, 0, "10")).await;
        assert!(usdc == Usdc::from_whole(10) && tokens < Wad::from(u128::MAX));
        let (usdc, _) = bounds_of(&app, key.sell(&market, 0, "10").in_tokens()).await;
        assert!(usdc > Usdc::from_whole(4));
        let (usdc, _) = bounds_of(&app, key.sell_all(&market, 0)).await;
        assert!(usdc > Usdc::from_whole(4));
        app.assert_ledger_equals_chain().await;
    }
}
