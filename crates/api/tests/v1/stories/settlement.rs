//! From an accepted to a completed trade: all resources agree with each other and with the chain at
//! every step.

use alloy_primitives::U256;
use app::worker::{Progress, Worker};
use domain::{Usdc, Wad};
use serde_json::Value;

use crate::scene::{Scene, atomic, text};

/// Runs one step of the executor and the sync. Returns whether there is more to do.
async fn step(scene: &Scene) -> bool {
    let workers = &scene.app.workers;
    let executed = workers.executors[0].tick(&scene.app.ctx).await.unwrap();
    let read = workers.sync.tick(&scene.app.ctx).await.unwrap();
    (executed, read) != (Progress::Idle, Progress::Idle)
}

async fn trade(scene: &Scene, id: &str) -> Value {
    scene.client.get(&format!("/v1/trades/{id}")).await.ok()["trade"].take()
}

#[tokio::test]
async fn a_completed_trade_is_at_once_in_predictions_positions_and_portfolio() {
    let scene = Scene::new().await;
    for call in [scene.client.buy(scene.market, 0, "120.5"), scene.client.sell(scene.market, 0, "60.25")] {
        let held = scene.app.tokens(&scene.ada, scene.market, 0).await;
        let created = call.await.created();
        let id = text(&created["id"]);
        let mut busy = true;
        while trade(&scene, id).await["status"] != "completed" {
            assert!(busy, "the workers have come to rest before the trade was completed");
            busy = step(&scene).await;
        }
        let trade = trade(&scene, id).await;
        let newest = scene.predictions().await.remove(0);
        assert_eq!(newest["txHash"], trade["txHash"]);
        assert_eq!((&newest["tokens"], &newest["amount"]), (&trade["tokensOut"], &trade["usdcAmount"]));
        assert_eq!(newest["side"], trade["side"]);
        let [position] = scene.positions().await.try_into().unwrap();
        let held_now = scene.app.tokens(&scene.ada, scene.market, 0).await;
        assert_ne!(held, held_now);
        assert_eq!(text(&position["tokens"]), held_now.to_string());
        let portfolio = scene.portfolio().await;
        assert_eq!(portfolio["reservedUsdc"], "0");
        assert_eq!(portfolio["usdcBalance"], scene.app.balance(&scene.ada).await.to_string());
        while step(&scene).await {}
    }
    scene.app.assert_ledger_equals_chain().await;
}

/// Returns the USDC of the user, and of the hub, which holds funding and fees.
async fn usdc(scene: &Scene) -> (Usdc, U256) {
    let hub = scene.app.ctx.chain.contracts().hub;
    (scene.app.balance(&scene.ada).await, scene.app.ctx.chain.usdc_balance(hub).await.unwrap())
}

#[tokio::test]
async fn the_amounts_of_a_trade_equal_the_changes_of_both_balances() {
    let scene = Scene::new().await;
    for call in [
        scene.client.buy(scene.market, 1, "333.333333"),
        scene.client.buy(scene.market, 1, "10").in_tokens(),
        scene.client.sell(scene.market, 1, "12.345678"),
        scene.client.sell(scene.market, 1, "50").in_tokens(),
        scene.client.sell_all(scene.market, 1),
    ] {
        let (mine, hubs) = usdc(&scene).await;
        let tokens = scene.app.tokens(&scene.ada, scene.market, 1).await;
        let trade = scene.settled(call).await;
        let moved = Usdc::from_atomic(text(&trade["usdcAmount"]).parse().unwrap());
        let moved_tokens: Wad = text(&trade["tokensOut"]).parse().unwrap();
        let (mine_now, hubs_now) = usdc(&scene).await;
        let tokens_now = scene.app.tokens(&scene.ada, scene.market, 1).await;
        if trade["side"] == "buy" {
            assert_eq!(mine.saturating_sub(mine_now), moved);
            assert_eq!(hubs_now - hubs, U256::from(moved.atomic()));
            assert_eq!(tokens_now.checked_sub(tokens), Some(moved_tokens));
        } else {
            assert_eq!(mine_now.saturating_sub(mine), moved);
            assert_eq!(hubs - hubs_now, U256::from(moved.atomic()));
            assert_eq!(tokens.checked_sub(tokens_now), Some(moved_tokens));
        }
        assert!(atomic(&trade["fee"]) > 0 && atomic(&trade["fee"]) < u128::from(moved.atomic()) / 50);
    }
    assert_eq!(scene.app.tokens(&scene.ada, scene.market, 1).await, Wad::ZERO);
    scene.app.assert_ledger_equals_chain().await;
}
