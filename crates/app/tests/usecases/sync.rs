//! The sync's results from the contracts' events.

use alloy_primitives::U256;
use app::worker::Worker;
use chain::calls;
use domain::ids::MarketId;
use domain::market::MarketStatus;
use domain::position::Position;
use domain::time::HOUR_MS;
use domain::{Timestamp, Usdc, Wad};
use store::markets::{ChangeBlock, Market};
use store::movements::{Movement, MovementKind};
use store::{Store, params};
use testkit::{TestApp, TestMarket, hub};

use crate::scene::Scene;

async fn movements(app: &TestApp, market: TestMarket) -> Vec<Movement> {
    let read = app
        .ctx
        .store
        .read(market.id, |tx, id| Box::pin(store::movements::list_of_market(tx, *id, "", 1_000)))
        .await;
    read.unwrap()
}

async fn position(
    app: &TestApp,
    account: alloy_primitives::Address,
    market: TestMarket,
    outcome: u8,
) -> Position {
    let input = (account, market.id, outcome);
    let read = app
        .ctx
        .store
        .read(input, |tx, (account, id, outcome)| {
            Box::pin(store::movements::find_position(tx, *account, *id, *outcome))
        })
        .await;
    read.unwrap().expect("the position is in the ledger").position
}

/// Returns the number of markets with this status, and the number that lists show with it.
async fn counted(app: &TestApp, status: &'static str) -> (i64, i64) {
    const SQL: &str = "SELECT (SELECT COUNT(*) FROM markets WHERE status = $1) AS stored,
        (SELECT COUNT(*) FROM listed_markets WHERE list_status = $1) AS listed";
    let read = app
        .ctx
        .store
        .read(status, |tx, status| {
            Box::pin(async move {
                tx.find(SQL, &params![*status], |row| Ok((row.get("stored")?, row.get("listed")?))).await
            })
        })
        .await;
    read.unwrap().unwrap()
}

store::on_each_engine! {
    async fn markets_ending_at_one_instant_freeze_in_one_tick(store: Store) {
        let Scene { app, market, .. } = Scene::on(store).await;
        let (like, outcomes) = app.market_row(market).await;
        let copies: Vec<Market> = (1..250)
            .map(|n| Market { id: MarketId(app.ctx.uuid()), chain_market_id: Some(10_000 + n), ..like.clone() })
            .collect();
        let written = app
            .ctx
            .store
            .write((copies, outcomes), |tx, (copies, outcomes)| {
                Box::pin(async move {
                    let labels: Vec<_> = outcomes.iter().map(|outcome| outcome.label.clone()).collect();
                    let quantities: Vec<_> = outcomes.iter().map(|outcome| outcome.opening).collect();
                    for copy in copies {
                        let number = copy.chain_market_id.unwrap_or_default();
                        let at = ChangeBlock { block: copy.as_of_block, time: copy.as_of };
                        store::markets::insert(tx, copy, &labels).await?;
                        store::markets::mark_created(tx, copy.id, number, copy.cost, &quantities, at).await?;
                    }
                    Ok(())
                })
            })
            .await;
        written.unwrap();
        app.clock.advance(like.end_time.since_ms(app.ctx.now()) - 1);
        app.workers.sync.tick(&app.ctx).await.unwrap();
        assert_eq!(counted(&app, "OPEN").await, (250, 250));
        app.clock.advance(1);
        app.workers.sync.tick(&app.ctx).await.unwrap();
        assert_eq!(counted(&app, "FROZEN").await, (250, 250));
        assert_eq!(app.market_row(market).await.0.frozen_at, Some(like.end_time));
        app.assert_aggregates().await;
    }

    async fn trades_outside_the_service_are_in_the_ledger(store: Store) {
        let Scene { app, ada, key, market } = Scene::on(store).await;
        let contracts = app.ctx.chain.contracts().clone();
        app.stranger_buys(market, 0, "30").await;
        key.buy(&market, 0, "20").await;
        app.run_workers().await;
        // Ada also trades directly on chain.
        app.as_owner(&ada, contracts.usdc, calls::approve(contracts.hub, U256::MAX)).await;
        app.as_owner(&ada, contracts.hub, hub::buy(market, 1, Usdc::from_whole(5))).await;
        let half = U256::from(10u64.pow(18));
        app.as_owner(&ada, contracts.hub, hub::sell(market, 0, half)).await;
        app.run_workers().await;

        let moved = movements(&app, market).await;
        let told: Vec<_> = moved.iter().map(|m| (m.kind, m.outcome_index, m.trade_id.is_some())).collect();
        let sold = (MovementKind::Sell, 0, false);
        assert_eq!(told, [(MovementKind::Buy, 0, false), (MovementKind::Buy, 0, true), (MovementKind::Buy, 1, false), sold]);
        assert_eq!(moved[0].account, app.roles.stranger.address());
        assert_eq!(moved[0].usdc, Usdc::from_whole(30));
        app.assert_ledger_equals_chain().await;
    }

    async fn a_position_has_the_average_cost_of_its_buys(store: Store) {
        let Scene { app, ada, key, market } = Scene::on(store).await;
        for usdc in ["100", "50.123457", "7"] {
            app.clock.advance(1);
            key.buy(&market, 0, usdc).await;
            app.run_workers().await;
        }
        let bought = position(&app, ada.account, market, 0).await;
        assert_eq!(bought.cost_basis, "157.123457".parse().unwrap());
        let sold = key.sell(&market, 0, "60").in_tokens().await;
        app.run_workers().await;

        let domain::trade::State::Completed(settlement) = app.trade(sold.id).await.state else { panic!() };
        let after = position(&app, ada.account, market, 0).await;
        let cost = bought.cost_of(settlement.tokens);
        assert_eq!(after.cost_basis, bought.cost_basis.saturating_sub(cost));
        assert_eq!(after.realized_pnl.0, settlement.usdc.atomic() as i64 - cost.atomic() as i64);
        assert!(after.fees_paid > bought.fees_paid && bought.fees_paid > Usdc::ZERO);

        key.sell_all(&market, 0).await;
        app.run_workers().await;
        let closed = position(&app, ada.account, market, 0).await;
        assert_eq!((closed.tokens, closed.cost_basis), (Wad::ZERO, Usdc::ZERO));
        app.assert_ledger_equals_chain().await;
    }

    async fn recomputing_a_market_gives_the_same_rows(store: Store) {
        let Scene { app, ada, key, market } = Scene::on(store).await;
        let other = app.market(&["A", "B", "C"]).await;
        for n in 0..6u8 {
            key.buy(&market, n % 2, "12.34").await;
            key.buy(&other, n % 3, "3.21").await;
            app.run_workers().await;
        }
        key.sell_all(&market, 1).await;
        app.stranger_buys(market, 0, "77").await;
        let tokens = U256::from(3 * 10u64.pow(18));
        let to_stranger = hub::transfer(app.roles.stranger.address(), market, 0, tokens);
        app.as_owner(&ada, app.ctx.chain.contracts().hub, to_stranger).await;
        app.run_workers().await;
        app.resolve(market, 0).await;
        app.run_workers().await;
        let redeem = calls::redeem(ada.account, market.number, 0);
        app.send(&app.roles.relayer, app.ctx.chain.contracts().hub, redeem).await;
        app.run_workers().await;

        let before = (app.market_row(market).await, app.positions().await);
        let as_of = ChangeBlock { block: before.0.0.as_of_block, time: Timestamp::from_ms(0) };
        let rebuilt: Result<(), app::AppError> = app
            .ctx
            .store
            .try_write((market.id, as_of), |tx, (id, as_of)| {
                Box::pin(async move { Ok(app::ledger::rebuild(tx, *id, None, *as_of).await?) })
            })
            .await;
        rebuilt.unwrap();
        assert_eq!((app.market_row(market).await, app.positions().await), before);
        app.assert_ledger_equals_chain().await;
    }

    async fn reading_all_blocks_at_once_gives_the_same_rows(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let mut by_blocks = Vec::new();
        for n in 0..5u8 {
            key.buy(&market, n % 2, "12.34").await;
            app.stranger_buys(market, n % 2, "5").await;
            app.run_workers().await;
            by_blocks.push(movements(&app, market).await.len());
        }
        assert_eq!(by_blocks, [2, 4, 6, 8, 10]);
        let rows = (app.market_row(market).await, app.positions().await, movements(&app, market).await);
        app.forget_what_was_read().await;
        assert_eq!(movements(&app, market).await, []);
        app.run_workers().await;
        assert_eq!((app.market_row(market).await, app.positions().await, movements(&app, market).await), rows);
        app.assert_ledger_equals_chain().await;
    }
}

async fn assert_status(app: &TestApp, market: TestMarket, status: MarketStatus) -> Market {
    app.run_workers().await;
    let (row, _) = app.market_row(market).await;
    assert_eq!(row.status, status);
    app.assert_ledger_equals_chain().await;
    row
}

#[tokio::test]
async fn a_market_follows_its_status_on_chain() {
    let Scene { app, market, .. } = Scene::new().await;
    assert_eq!(assert_status(&app, market, MarketStatus::Open).await.frozen_at, None);
    app.advance_ms(HOUR_MS).await;
    app.freeze(market).await;
    let frozen = assert_status(&app, market, MarketStatus::Frozen).await;
    assert_eq!(frozen.frozen_at, Some(app.ctx.now()));
    app.advance_ms(HOUR_MS).await;
    app.unfreeze(market).await;
    assert_eq!(assert_status(&app, market, MarketStatus::Open).await.frozen_at, None);
    app.advance_ms(HOUR_MS).await;
    app.resolve(market, 1).await;
    let resolved = assert_status(&app, market, MarketStatus::Resolved).await;
    assert_eq!(resolved.payouts, Some(vec![Wad::ZERO, Wad::ONE]));
    assert_eq!(resolved.resolved_at, Some(app.ctx.now()));
    assert!(resolved.resolution_tx_hash.is_some());
}

#[tokio::test]
async fn a_cancelled_market_pays_its_reference_prices() {
    let Scene { app, ada, key, market } = Scene::new().await;
    key.buy(&market, 0, "100").await;
    key.buy(&market, 1, "50").await;
    app.run_workers().await;
    let tokens = app.tokens(&ada, market, 0).await;
    let refund = app.refund(market, 0, tokens).await;
    app.cancel(market).await;
    let cancelled = assert_status(&app, market, MarketStatus::Cancelled).await;
    let half = Wad(Wad::ONE.0 / U256::from(2));
    assert_eq!(cancelled.payouts, Some(vec![half, half]));
    let redeemable = app.ctx.chain.redeemable(ada.account, market.number, 0).await.unwrap();
    assert_eq!(redeemable, refund.atomic());
}

#[tokio::test]
async fn complete_sets_change_no_price_volume_or_candle() {
    let Scene { app, ada, key, market } = Scene::new().await;
    key.buy(&market, 0, "100").await;
    app.run_workers().await;
    let prices = app.ctx.chain.prices(market.number).await.unwrap();
    let (before, _) = app.market_row(market).await;
    app.stranger_splits(market, "70").await;
    app.run_workers().await;
    let (after, outcomes) = app.market_row(market).await;
    let tokens = Wad::from_amount(Usdc::from_whole(70));
    assert_eq!(after.cost, before.cost.checked_add(tokens).unwrap());
    assert_eq!((after.volume, after.trade_count), (before.volume, before.trade_count));
    assert_eq!(app.ctx.chain.prices(market.number).await.unwrap(), prices);
    assert_eq!(outcomes[1].quantity, outcomes[1].opening.checked_add(tokens).unwrap());
    let stranger = app.roles.stranger.address();
    let [yes, no] = [0, 1].map(|outcome| position(&app, stranger, market, outcome));
    let (yes, no) = (yes.await, no.await);
    assert_eq!((yes.tokens, no.tokens), (tokens, tokens));
    assert_eq!(yes.cost_basis.checked_add(no.cost_basis), Some(Usdc::from_whole(70)));
    assert!(yes.cost_basis > no.cost_basis, "the likelier outcome cost more");

    // Trades before and after it are in the same candle, and one is in the next.
    key.buy(&market, 1, "30").await;
    app.run_workers().await;
    app.stranger_merges(market, "20").await;
    app.advance_ms(60_000).await;
    key.sell_all(&market, 0).await;
    app.run_workers().await;
    assert_eq!(app.tokens(&ada, market, 0).await, Wad::ZERO);
    let left = position(&app, stranger, market, 0).await;
    assert_eq!(left.tokens, Wad::from_amount(Usdc::from_whole(50)));
    app.assert_ledger_equals_chain().await;
    app.assert_aggregates().await;
}

#[tokio::test]
async fn a_market_past_its_end_is_frozen_without_an_event() {
    let app = TestApp::new().await;
    let end: Timestamp = app.ctx.now().plus_ms(HOUR_MS);
    let market = app.market_with(&["Yes", "No"], |new| new.end_time = end).await;
    app.advance_ms(HOUR_MS - 1_000).await;
    assert_status(&app, market, MarketStatus::Open).await;
    app.advance_ms(1_000).await;
    assert_eq!(assert_status(&app, market, MarketStatus::Frozen).await.frozen_at, Some(end));
    app.resolve(market, 0).await;
    assert_status(&app, market, MarketStatus::Resolved).await;
}

#[tokio::test]
async fn a_redemption_closes_the_position_at_its_payout() {
    let Scene { app, ada, key, market } = Scene::new().await;
    key.buy(&market, 0, "100").await;
    key.buy(&market, 1, "40").await;
    app.run_workers().await;
    let tokens = app.tokens(&ada, market, 0).await;
    app.resolve(market, 0).await;
    app.run_workers().await;
    let before = app.balance(&ada).await;
    let hub = app.ctx.chain.contracts().hub;
    app.send(&app.roles.relayer, hub, calls::redeem(ada.account, market.number, 0)).await;
    app.run_workers().await;

    let paid = app.balance(&ada).await.saturating_sub(before);
    let moved = movements(&app, market).await.pop().unwrap();
    assert_eq!((moved.kind, moved.usdc, moved.tokens), (MovementKind::Redeem, paid, tokens));
    let closed = position(&app, ada.account, market, 0).await;
    assert_eq!((closed.tokens, closed.cost_basis), (Wad::ZERO, Usdc::ZERO));
    assert_eq!(closed.realized_pnl.0, paid.atomic() as i64 - 100_000_000);
    // The losing side still has its cost, because it was not redeemed.
    assert_eq!(position(&app, ada.account, market, 1).await.cost_basis, Usdc::from_whole(40));
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_transfer_carries_its_share_of_the_cost_to_the_receiver() {
    let Scene { app, ada, key, market } = Scene::new().await;
    key.buy(&market, 0, "100").await;
    app.run_workers().await;
    let before = position(&app, ada.account, market, 0).await;
    let stranger = app.roles.stranger.address();
    let tokens = Wad::from_amount(Usdc::from_whole(30));
    let hub = app.ctx.chain.contracts().hub;
    app.as_owner(&ada, hub, hub::transfer(stranger, market, 0, tokens.0)).await;
    // A transfer to itself changes nothing.
    app.as_owner(&ada, hub, hub::transfer(ada.account, market, 0, tokens.0)).await;
    app.run_workers().await;

    let cost = before.cost_of(tokens);
    let received = position(&app, stranger, market, 0).await;
    assert_eq!((received.tokens, received.cost_basis), (tokens, cost));
    let left = position(&app, ada.account, market, 0).await;
    assert_eq!(left.cost_basis, before.cost_basis.saturating_sub(cost));
    assert_eq!(left.realized_pnl.0, 0);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_trade_completes_only_at_the_configured_depth() {
    let scene = Scene::of(TestApp::with().confirmations(3).start().await).await;
    let Scene { app, key, market, .. } = scene;
    let trade = key.buy(&market, 0, "10").await;
    for _ in 0..2 {
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, domain::trade::Status::Executing);
        // The tables already show the newest block.
        assert_eq!(movements(&app, market).await.len(), 1);
        app.mine(1).await;
    }
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, domain::trade::Status::Completed);
    app.assert_ledger_equals_chain().await;
}
