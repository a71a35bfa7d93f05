//! What an account holds and what it is worth.

use app::portfolio::{ValuedPosition, positions, summary, worth_floor};
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
            assert_eq!(position.value, worth_floor(position.position().tokens, Wad(price)));
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

    async fn of_a_resolved_market_the_winning_tokens_are_claimable_at_one_each(store: Store) {
        let scene = Scene::on(store).await;
        two_sides(&scene).await;
        scene.app.resolve(scene.market, 0).await;
        scene.app.run_workers().await;
        let [yes, no] = held(&scene).await;
        assert_eq!((yes.price, no.price), (Wad::ONE, Wad::ZERO));
        assert_eq!(yes.claimable, worth_floor(yes.position().tokens, Wad::ONE));
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

    async fn of_a_cancelled_market_every_position_is_claimable_at_its_cost(store: Store) {
        let scene = Scene::on(store).await;
        two_sides(&scene).await;
        scene.app.cancel(scene.market).await;
        scene.app.run_workers().await;
        let [yes, no] = held(&scene).await;
        assert_eq!((yes.claimable, no.claimable), (Usdc::from_whole(100), Usdc::from_whole(40)));
        assert_eq!((yes.value, no.value), (yes.claimable, no.claimable));
        assert_eq!(yes.unrealized_pnl(), UsdcDelta(0));
    }
}

#[tokio::test]
async fn a_scaled_refund_that_was_topped_up_is_claimable_again() {
    let scene = Scene::new().await;
    let Scene { app, key, market, .. } = &scene;
    let bob = app.user("bob").funded("4000").await;
    let bobs = app.key(&bob, Tier::Mm).await;
    let claimable = async || positions(&app.ctx, &bobs.caller, None).await.unwrap()[0].claimable;
    let contracts = app.ctx.chain.contracts().clone();
    // Bob pays nearly the full price on both sides, since Ada drives it up each time and takes her gain out of the pool:
    // what is left covers one side only.
    for (side, price) in [(0, "3000"), (1, "5000")] {
        key.buy(market, side, price).await;
        app.run_workers().await;
        bobs.buy(market, side, "2000").await;
        app.run_workers().await;
        key.sell_all(market, side).await;
        app.run_workers().await;
    }
    app.cancel(*market).await;
    app.run_workers().await;
    let first = claimable().await;
    assert!(first > Usdc::ZERO && first < Usdc::from_whole(2_000), "{first}");
    app.send(&app.roles.relayer, contracts.hub, calls::redeem(bob.account, market.number, 0)).await;
    app.run_workers().await;
    assert_eq!(claimable().await, Usdc::ZERO);

    app.send(&app.roles.resolver, contracts.hub, calls::top_up(market.number, 1_000_000_000)).await;
    app.run_workers().await;
    let second = claimable().await;
    assert!(second > Usdc::ZERO);
    app.send(&app.roles.relayer, contracts.hub, calls::redeem(bob.account, market.number, 0)).await;
    app.run_workers().await;
    assert_eq!(app.balance(&bob).await, first.checked_add(second).unwrap());
    let closed = positions(&app.ctx, &bobs.caller, None).await.unwrap();
    let paid = UsdcDelta::between(app.balance(&bob).await, Usdc::from_whole(2_000));
    assert_eq!(closed[0].position().realized_pnl, paid);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn nobody_sees_anothers_positions() {
    let scene = Scene::new().await;
    two_sides(&scene).await;
    let bob = scene.app.user("bob").await;
    let bobs = scene.app.key(&bob, Tier::Mm).await;
    assert!(positions(&scene.app.ctx, &bobs.caller, None).await.unwrap().is_empty());
    assert!(positions(&scene.app.ctx, &bobs.caller, Some(scene.market.id)).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_portfolio_of_a_chain_that_does_not_answer_is_a_dependency() {
    let scene = Scene::new().await;
    two_sides(&scene).await;
    scene.app.faults.always("eth_call", testkit::Fault::LostRequest);
    let refusal = summary(&scene.app.ctx, &scene.key.caller).await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::DependencyUnavailable);
}
