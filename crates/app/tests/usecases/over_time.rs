//! The value and the profit of an account over time.

use app::owner_acts::OwnerActRequest;
use app::portfolio::{PortfolioOverTime, PortfolioPoint, Timeframe, list_deposits, read_over_time};
use domain::page::Page;
use domain::{Usdc, UsdcDelta, Wad};
use store::Store;
use testkit::TestKey;

use crate::scene::Scene;

const HOUR_MS: i64 = 3_600_000;

async fn last_day(scene: &Scene) -> PortfolioOverTime {
    let person = scene.app.person_of(&scene.ada).await;
    read_over_time(&scene.app.ctx, &person, Timeframe::OneDay).await.unwrap()
}

fn last(read: &PortfolioOverTime) -> PortfolioPoint {
    *read.points.last().unwrap()
}

async fn buy(scene: &Scene, key: &TestKey, usdc: &str) {
    key.buy(&scene.market, 0, usdc).await;
    scene.app.run_workers().await;
}

async fn deposits(scene: &Scene) -> Vec<UsdcDelta> {
    let page = Page { limit: 10, after: None };
    let listed = list_deposits(&scene.app.ctx, scene.ada.id, &page).await.unwrap();
    listed.into_iter().map(|flow| flow.usdc).collect()
}

store::on_each_engine! {
    async fn the_history_follows_deposits_trades_and_prices(store: Store) {
        let scene = Scene::on(store).await;
        let start = last(&last_day(&scene).await);
        assert_eq!((start.cash, start.positions), (Usdc::from_whole(10_000), Usdc::ZERO));
        assert_eq!((start.deposited, start.profit()), (UsdcDelta(10_000_000_000), UsdcDelta(0)));

        scene.app.advance_ms(2 * HOUR_MS).await;
        buy(&scene, &scene.key, "1000").await;
        let bought = last(&last_day(&scene).await);
        assert_eq!(bought.cash, Usdc::from_whole(9_000));
        assert!(bought.positions > Usdc::ZERO);
        let fee_and_rounding = bought.profit();

        scene.app.advance_ms(2 * HOUR_MS).await;
        scene.app.stranger_buys(scene.market, 0, "500").await;
        scene.app.mint(scene.ada.account, Usdc::from_whole(7)).await;
        scene.app.run_workers().await;
        let read = last_day(&scene).await;
        let now = last(&read);
        assert!(now.profit() > fee_and_rounding, "{now:?}");
        assert_eq!((now.cash, now.deposited), (Usdc::from_whole(9_007), UsdcDelta(10_007_000_000)));
        assert_eq!(deposits(&scene).await, [UsdcDelta(7_000_000), UsdcDelta(10_000_000_000)]);

        // An hour ago: before the stranger's purchase and the second deposit. Three hours ago: before
        // Ada's own purchase. A day ago there was no account.
        let at = |hours: i64| {
            *read.points.iter().rfind(|point| point.at <= now.at.plus_ms(-hours * HOUR_MS)).unwrap()
        };
        assert_eq!((at(1).cash, at(1).deposited), (bought.cash, bought.deposited));
        let difference = at(1).positions.atomic().abs_diff(bought.positions.atomic());
        assert!(difference < 100_000, "{:?} {bought:?}", at(1));
        assert_eq!((at(3).cash, at(3).positions, at(3).profit()), (start.cash, Usdc::ZERO, UsdcDelta(0)));
        let first = read.points[0];
        assert_eq!((first.value(), first.deposited), (Usdc::ZERO, UsdcDelta(0)));
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn a_settled_market_keeps_its_earlier_prices_in_the_history(store: Store) {
        let scene = Scene::on(store).await;
        buy(&scene, &scene.key, "1000").await;
        let bought = last(&last_day(&scene).await);
        scene.app.advance_ms(2 * HOUR_MS).await;
        scene.app.resolve(scene.market, 1).await;
        scene.app.run_workers().await;
        let read = last_day(&scene).await;
        assert_eq!(last(&read).positions, Usdc::ZERO, "the tokens lost");
        let earlier = read.points.iter().rfind(|point| point.at <= bought.at.plus_ms(HOUR_MS)).unwrap();
        assert!(earlier.positions.atomic().abs_diff(bought.positions.atomic()) < 100_000, "{earlier:?}");
    }

    async fn stored_flows_that_do_not_sum_up_to_the_balance_are_read_again(store: Store) {
        let scene = Scene::on(store).await;
        assert_eq!(deposits(&scene).await, [UsdcDelta(10_000_000_000)]);
        let wrong = "UPDATE cash_flows SET usdc_atomic = usdc_atomic + 1";
        let changed = scene.app.ctx.store.write(wrong, |tx, sql| Box::pin(tx.exec(sql, &[]))).await;
        assert_eq!(changed, Ok(1));
        scene.app.mint(scene.ada.account, Usdc::from_whole(1)).await;
        assert_eq!(deposits(&scene).await, [UsdcDelta(1_000_000), UsdcDelta(10_000_000_000)]);
    }

    async fn tokens_that_were_sent_away_leave_the_history_at_their_time(store: Store) {
        let scene = Scene::on(store).await;
        let ben = scene.app.user("ben").funded("1").await;
        scene.app.advance_ms(HOUR_MS).await;
        buy(&scene, &scene.key, "100").await;
        let bought = last(&last_day(&scene).await);
        scene.app.advance_ms(2 * HOUR_MS).await;
        let tokens = scene.app.ctx.chain.position(scene.ada.account, scene.market.number, 0).await.unwrap();
        let send = OwnerActRequest::SendPosition {
            to: ben.account,
            market_id: scene.market.id,
            outcome_index: 0,
            tokens: Wad(tokens),
        };
        scene.app.act(&scene.ada, &send).await;
        scene.app.run_workers().await;
        let read = last_day(&scene).await;
        assert_eq!(last(&read).positions, Usdc::ZERO);
        let before = read.points.iter().rfind(|point| point.at <= bought.at.plus_ms(HOUR_MS)).unwrap();
        assert!(before.positions.atomic().abs_diff(bought.positions.atomic()) < 100_000, "{before:?}");
    }
}
