//! Positions of an account and their value.

use alloy_primitives::U256;
use app::portfolio::{ValuedPosition, positions, summary};
use chain::calls;
use domain::key::Tier;
use domain::{ErrorCode, Usdc, UsdcDelta, Wad};
use store::Store;

use crate::scene::Scene;

async fn two_sides(scene: &Scene) {
    scene.key.buy(&scene.market, 0, "100").await;
    scene.key.buy(&scene.market, 1, "40").await;
    scene.app.run_workers().await;
}

async fn held(scene: &Scene) -> [ValuedPosition; 2] {
    let held = positions(&scene.app.ctx, &scene.key.caller, Some(scene.market.id)).await.unwrap();
    held.try_into().unwrap()
}

store::on_each_engine! {
    async fn an_open_position_is_worth_its_tokens_at_the_markets_price(store: Store) {
        let scene = Scene::on(store).await;
        two_sides(&scene).await;
        let prices = scene.app.ctx.chain.prices(scene.market.number).await.unwrap();
        for (position, price) in held(&scene).await.iter().zip(prices) {
            assert_eq!(position.price, Wad(price));
            assert_eq!(position.value, position.position().tokens.worth_floor(Wad(price)));
            assert_eq!(position.claimable, Usdc::ZERO);
            let cost = position.position().cost_basis;
            assert_eq!(position.unrealized_pnl(), UsdcDelta::between(position.value, cost));
        }
        let [yes, no] = held(&scene).await;
        assert_eq!((yes.label.as_str(), no.label.as_str()), ("Yes", "No"));

        scene.key.buy(&scene.market, 0, "7").await;
        let summary = summary(&scene.app.ctx, &scene.key.caller).await.unwrap();
        assert_eq!(summary.account.reserved, Usdc::from_whole(7));
        assert_eq!(summary.state.usdc_balance_atomic.to::<u64>(), 9_860_000_000);
        assert_eq!(summary.positions.len(), 2);
        assert_eq!(summary.as_of.0, scene.app.ctx.chain.head().await.unwrap().number);
    }

    async fn winning_tokens_of_a_resolved_market_are_claimable_at_1_usdc(store: Store) {
        let scene = Scene::on(store).await;
        two_sides(&scene).await;
        scene.app.resolve(scene.market, 0).await;
        scene.app.run_workers().await;
        let [yes, no] = held(&scene).await;
        assert_eq!((yes.price, no.price), (Wad::ONE, Wad::ZERO));
        assert_eq!(yes.claimable, yes.position().tokens.worth_floor(Wad::ONE));
        assert_eq!((yes.value, no.value, no.claimable), (yes.claimable, Usdc::ZERO, Usdc::ZERO));

        let before = scene.app.balance(&scene.ada).await;
        let hub = scene.app.ctx.chain.contracts().hub;
        let redeem = calls::redeem(scene.ada.account, scene.market.number, 0);
        scene.app.send(&scene.app.roles.relayer, hub, redeem).await;
        scene.app.run_workers().await;
        assert_eq!(scene.app.balance(&scene.ada).await.saturating_sub(before), yes.claimable);
        let [claimed, _] = held(&scene).await;
        assert_eq!((claimed.value, claimed.claimable), (Usdc::ZERO, Usdc::ZERO));
        let gain = UsdcDelta::between(yes.claimable, Usdc::from_whole(100));
        assert_eq!(claimed.position().realized_pnl, gain);
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn positions_in_a_cancelled_market_pay_the_reference_price(store: Store) {
        let scene = Scene::on(store).await;
        two_sides(&scene).await;
        scene.app.cancel(scene.market).await;
        scene.app.run_workers().await;
        let [yes, no] = held(&scene).await;
        for (index, held) in (0..).zip([&yes, &no]) {
            // The market is younger than a period, so it pays its opening prices.
            assert_eq!(held.price, Wad(Wad::ONE.0 / U256::from(2)));
            let refund = scene.app.refund(scene.market, index, held.position().tokens).await;
            assert!(refund > Usdc::ZERO);
            assert_eq!((held.claimable, held.value), (refund, refund));
            assert_eq!(held.unrealized_pnl(), UsdcDelta::between(refund, held.position().cost_basis));
        }
    }
}

#[tokio::test]
async fn positions_of_other_users_are_not_visible() {
    let scene = Scene::new().await;
    two_sides(&scene).await;
    let bob = scene.app.user("bob").await;
    let bobs = scene.app.key(&bob, Tier::Mm).await;
    assert!(positions(&scene.app.ctx, &bobs.caller, None).await.unwrap().is_empty());
    assert!(positions(&scene.app.ctx, &bobs.caller, Some(scene.market.id)).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_portfolio_without_a_node_is_a_dependency_error() {
    let scene = Scene::new().await;
    two_sides(&scene).await;
    scene.app.faults.always("eth_call", testkit::Fault::LostRequest);
    let refusal = summary(&scene.app.ctx, &scene.key.caller).await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::DependencyUnavailable);
}
