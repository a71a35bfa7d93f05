//! A key whose holder has stopped its trading.

use domain::key::Tier;
use domain::risk::RiskRefusal;
use domain::trade::{Refusal, State, Status};
use domain::{ErrorCode, Usdc};
use store::Store;
use store::testing::sqlite;
use testkit::Fault;

use crate::scene::{Scene, assert_refused};

store::on_each_engine! {
    /// The caller's row was read before the pause, as that of another process may be: the pause holds all the same.
    async fn a_paused_key_makes_no_trade_and_the_others_trade_on(store: Store) {
        let Scene { app, ada, key, market } = Scene::gated(store).await;
        let second = app.key(&ada, Tier::Mm).await;
        let first = key.buy(&market, 0, "10").idempotent("k").await;
        app.run_workers().await;
        assert!(key.caller.key.paused_at.is_none());
        key.pause().await;
        let buy = || key.buy(&market, 0, "10");
        assert_refused(&app, buy(), ErrorCode::ApiKeyPaused).await;
        assert_refused(&app, buy().idempotent("new").named("n"), ErrorCode::ApiKeyPaused).await;
        assert_refused(&app, key.buy(&market, 0, "100"), ErrorCode::ApiKeyPaused).await;
        assert_refused(&app, key.sell(&market, 0, "1"), ErrorCode::ApiKeyPaused).await;
        // What was made before is still told.
        assert_eq!(buy().idempotent("k").replayed().await.id, first.id);
        second.buy(&market, 0, "10").await;

        app::keys::resume(&app.ctx, key.caller.key.id).await.unwrap();
        buy().idempotent("new").named("n").await;
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }

    async fn what_waits_to_be_signed_is_rejected_and_what_is_signed_goes_on(store: Store) {
        let Scene { app, ada, key, market } = Scene::gated(store).await;
        let second = app.key(&ada, Tier::Mm).await;
        let signed = key.buy(&market, 0, "10").await;
        app.faults.next_send(Fault::LostRequest);
        app.workers.execute(&app.ctx).await;
        assert_eq!(app.status(signed.id).await, Status::Executing);
        let (waits, held) = (key.buy(&market, 0, "10").await, key.buy(&market, 0, "100").await);
        let others = second.buy(&market, 0, "10").await;
        key.pause().await;
        app.advance_ms(app.ctx.config.resend_after_ms).await;
        app.run_workers().await;
        assert_eq!(app.status(signed.id).await, Status::Completed);
        let refusal = Refusal { reason: RiskRefusal::DelegationInactive };
        assert_eq!(app.trade(waits.id).await.state, State::Rejected(refusal));
        assert_eq!(app.status(others.id).await, Status::Completed);
        assert_eq!(app.status(held.id).await, Status::PendingConfirmation);
        app.advance_ms(app.ctx.config.confirmation_window_ms).await;
        app.run_workers().await;
        assert_eq!(app.status(held.id).await, Status::Failed);
        assert_eq!((app.spent(&key).await, app.reserved(&ada).await), (Usdc::from_whole(10), Usdc::ZERO));
        app.assert_ledger_equals_chain().await;
    }

    async fn a_pause_between_judging_and_signing_still_holds(store: Store) {
        let Scene { app, key, market, .. } = Scene::gated(store).await;
        let trade = key.buy(&market, 0, "10").await;
        let signing = app.faults.hold("eth_getTransactionCount");
        let signs = async { app.workers.execute(&app.ctx).await };
        let pauses = async {
            signing.reached().await;
            assert_eq!(app.status(trade.id).await, Status::Validating);
            key.pause().await;
            signing.release();
        };
        tokio::join!(signs, pauses);
        assert_eq!(app.rows().await.batches, 0);
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Rejected);
        app.assert_ledger_equals_chain().await;
    }
}

#[tokio::test]
async fn a_paused_key_confirms_nothing_and_what_it_made_is_confirmed_by_no_key() {
    let Scene { app, ada, key, market } = Scene::gated(sqlite().await).await;
    let second = app.key(&ada, Tier::Mm).await;
    let large = app.market_with(&["Yes", "No"], |new| new.liquidity = Usdc::from_whole(50_000)).await;
    let (mine, others) = (key.buy(&market, 0, "100").await, second.buy(&large, 0, "50000").await);
    let (token, others_token) = (key.token(&mine), second.token(&others));
    key.pause().await;
    let refusal = key.confirm(&others, &others_token).await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::ApiKeyPaused);
    let refusal = second.confirm(&mine, &token).await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::ApiKeyPaused);
    assert_eq!(refusal.extensions["submission"], "not_submitted");
    assert_eq!(refusal.extensions["tradeId"], mine.id.to_string());
    // Without the right token nothing is told of it.
    let refusal = second.confirm(&mine, "x").await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::ConfirmationTokenInvalid);
    app::keys::resume(&app.ctx, key.caller.key.id).await.unwrap();
    key.confirm(&mine, &token).await.unwrap();
    app.run_workers().await;
    assert_eq!(app.status(mine.id).await, Status::Completed);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn pausing_and_resuming_twice_change_nothing() {
    let Scene { app, key, .. } = Scene::gated(sqlite().await).await;
    let since = app::keys::pause(&app.ctx, &key.caller).await.unwrap();
    assert_eq!(since, app.ctx.now());
    app.advance_ms(1_000).await;
    assert_eq!(app::keys::pause(&app.ctx, &key.caller).await.unwrap(), since);
    for _ in 0..2 {
        assert_eq!(app::keys::resume(&app.ctx, key.caller.key.id).await.unwrap().paused_at, None);
    }
    let unknown = domain::ids::KeyId(app.ctx.uuid());
    assert_eq!(app::keys::resume(&app.ctx, unknown).await.unwrap_err().code, ErrorCode::ResourceNotFound);
}
