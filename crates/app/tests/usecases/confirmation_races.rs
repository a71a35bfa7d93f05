//! Concurrent confirmations and expiries: each held trade moves once.

use std::sync::Arc;

use app::trades::{Expiry, confirm};
use app::worker::Worker;
use app::{AppError, Ctx};
use domain::time::ManualClock;
use domain::trade::{State, Status};
use domain::{ErrorCode, Usdc};
use futures::future::join_all;
use store::Store;
use store::testing::{TestDatabase, block_on};
use store::trades::Trade;
use testkit::TestKey;

use crate::scene::Scene;

/// Confirms one trade twenty times concurrently, through these contexts in turn.
async fn twenty_confirms(contexts: &[Ctx], key: &TestKey, trade: &Trade) -> Vec<Result<(), AppError>> {
    let (id, token) = (trade.id.to_string(), key.token(trade));
    let confirms = (0..20).map(|n| {
        let (ctx, caller) = (contexts[n % contexts.len()].clone(), key.caller.clone());
        let (id, token) = (id.clone(), token.clone());
        tokio::spawn(async move { confirm(&ctx, &caller, &id, &token).await.map(drop) })
    });
    join_all(confirms).await.into_iter().map(Result::unwrap).collect()
}

fn assert_one_of_twenty(outcomes: &[Result<(), AppError>]) {
    let refusals: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    assert_eq!((outcomes.len(), refusals.len()), (20, 19));
    for refusal in refusals {
        assert_eq!(refusal.code, ErrorCode::ConfirmationTokenUsed, "{refusal} {:?}", refusal.source);
        assert_eq!(refusal.extensions["submission"], "submitted");
    }
}

store::on_each_engine! {
    async fn one_of_20_concurrent_confirms_succeeds(store: Store) {
        let Scene { app, key, market, .. } = Scene::gated(store).await;
        for _ in 0..5 {
            let trade = key.buy(&market, 0, "100").await;
            assert_one_of_twenty(&twenty_confirms(std::slice::from_ref(&app.ctx), &key, &trade).await);
            assert_eq!(app.history(trade.id).await, [Status::PendingConfirmation, Status::Pending]);
        }
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }

    async fn a_concurrent_confirm_and_expiry_have_one_winner(store: Store) {
        let Scene { app, ada, key, market } = Scene::gated(store).await;
        let mut trades = Vec::new();
        for _ in 0..10 {
            trades.push(key.buy(&market, 0, "100").await);
        }
        // A process with a fast clock.
        let mut late = app.ctx.clone();
        late.clock = Arc::new(ManualClock::new(trades[9].held_until.unwrap()));
        let confirms = trades.iter().map(|trade| {
            let (ctx, caller) = (app.ctx.clone(), key.caller.clone());
            let (id, token) = (trade.id.to_string(), key.token(trade));
            tokio::spawn(async move { confirm(&ctx, &caller, &id, &token).await.map(drop) })
        });
        let confirms: Vec<_> = confirms.collect();
        let expiries = (0..2).map(|_| {
            let ctx = late.clone();
            tokio::spawn(async move { Expiry.tick(&ctx).await.map(drop) })
        });
        let expiries: Vec<_> = expiries.collect();
        let confirms = join_all(confirms).await;
        for expiry in join_all(expiries).await {
            expiry.unwrap().unwrap();
        }
        let mut released = 0;
        for (trade, confirmed) in trades.iter().zip(confirms) {
            match (confirmed.unwrap(), app.trade(trade.id).await.state) {
                (Ok(()), State::Pending) => released += 1,
                (Err(refusal), State::Failed(failure)) => {
                    assert_eq!(refusal.code, ErrorCode::ConfirmationExpired, "{refusal} {:?}", refusal.source);
                    assert_eq!(failure.code, ErrorCode::ConfirmationExpired);
                }
                (confirmed, state) => panic!("{confirmed:?} and {}", state.status()),
            }
        }
        let aside = Usdc::from_whole(100 * released);
        assert_eq!((app.spent(&key).await, app.reserved(&ada).await), (aside, aside));
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }

    async fn fifty_parallel_held_buys_at_the_edge_fill_the_daily_cap_exactly(store: Store) {
        let Scene { app, ada, key, market } = Scene::gated(store).await;
        let buys = (0..50).map(|_| {
            let key = key.clone();
            tokio::spawn(async move { key.buy(&market, 0, "111").send().await.map(drop) })
        });
        let outcomes: Vec<_> = join_all(buys).await.into_iter().map(Result::unwrap).collect();
        for refusal in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
            assert_eq!(refusal.code, ErrorCode::SpendingLimitExceeded, "{refusal} {:?}", refusal.source);
        }
        // Nine times 111 is 999; the cap is 1,000.
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 9);
        key.buy(&market, 0, "1").await;
        assert_eq!(app.spent(&key).await, Usdc::from_whole(1_000));
        app.advance_ms(app.ctx.config.confirmation_window_ms).await;
        app.run_workers().await;
        assert_eq!((app.spent(&key).await, app.reserved(&ada).await), (Usdc::from_whole(1), Usdc::ZERO));
        app.assert_ledger_equals_chain().await;
    }
}

#[test]
fn one_of_20_confirms_over_two_processes_succeeds() {
    block_on(async {
        let Some(database) = TestDatabase::create().await else { return };
        let stores = [Store::open(&database.url).await.unwrap(), Store::open(&database.url).await.unwrap()];
        let [one, two] = stores;
        one.migrate(testkit::START).await.unwrap();
        let Scene { app, key, market, .. } = Scene::gated(one).await;
        let mut other = app.ctx.clone();
        other.store = two;
        for _ in 0..5 {
            let trade = key.buy(&market, 0, "100").await;
            assert_one_of_twenty(&twenty_confirms(&[app.ctx.clone(), other.clone()], &key, &trade).await);
        }
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
        other.store.close().await;
        app.ctx.store.close().await;
    });
}
