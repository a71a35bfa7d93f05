//! A key whose holder has paused its trading.

use chain::calls;
use domain::key::Tier;
use domain::risk::RiskRefusal;
use domain::trade::{RiskRejection, State, Status};
use domain::{ErrorCode, Usdc};
use store::Store;
use store::testing::sqlite;
use testkit::Fault;

use crate::scene::{Scene, assert_refused};

store::on_each_engine! {
    /// The caller's row was read before the pause, as in another process. The pause must apply
    /// anyway.
    async fn a_pause_stops_only_its_key(store: Store) {
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
        // Trades that were created before are still returned.
        assert_eq!(buy().idempotent("k").replayed().await.id, first.id);
        second.buy(&market, 0, "10").await;

        app::keys::resume(&app.ctx, key.caller.key.id).await.unwrap();
        buy().idempotent("new").named("n").await;
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }

    async fn a_pause_rejects_unsigned_trades_and_signed_ones_continue(store: Store) {
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
        let refusal = RiskRejection { reason: RiskRefusal::DelegationInactive };
        assert_eq!(app.trade(waits.id).await.state, State::Rejected(refusal));
        assert_eq!(app.status(others.id).await, Status::Completed);
        assert_eq!(app.status(held.id).await, Status::PendingConfirmation);
        app.advance_ms(app.ctx.config.confirmation_window_ms).await;
        app.run_workers().await;
        assert_eq!(app.status(held.id).await, Status::Failed);
        assert_eq!((app.spent(&key).await, app.reserved(&ada).await), (Usdc::from_whole(10), Usdc::ZERO));
        app.assert_ledger_equals_chain().await;
    }

    async fn lost_trades_of_a_paused_key_wait_without_delaying_others(store: Store) {
        let Scene { app, ada, key, market } = Scene::gated(store).await;
        let second = app.key(&ada, Tier::Mm).await;
        let gate = app.ctx.chain.contracts().gate;
        let mut paused = Vec::new();
        for _ in 0..100 {
            paused.push(key.buy(&market, 0, "1").await.id);
        }
        // The guardian pauses the Gate while the batch is in flight, so it reverts as a whole.
        let held = app.faults.hold("eth_sendRawTransaction");
        let pauses = async {
            held.reached().await;
            app.send(&app.roles.guardian, gate, calls::set_paused(true)).await;
            held.release();
        };
        tokio::join!(async { app.workers.execute(&app.ctx).await }, pauses);
        key.pause().await;
        app.send(&app.roles.guardian, gate, calls::set_paused(false)).await;
        let others = second.buy(&market, 0, "1").await;
        app.run_workers().await;
        assert_eq!(app.status(others.id).await, Status::Completed);
        assert_eq!(app.status(paused[0]).await, Status::Executing);

        app::keys::resume(&app.ctx, key.caller.key.id).await.unwrap();
        app.run_workers().await;
        for id in paused {
            assert_eq!(app.status(id).await, Status::Completed);
        }
        app.assert_ledger_equals_chain().await;
    }

    async fn a_pause_between_validation_and_signing_takes_effect(store: Store) {
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
async fn a_paused_key_cannot_confirm_and_its_trades_stay_unconfirmed() {
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
    // Without the right token, the response reveals nothing.
    let refusal = second.confirm(&mine, "x").await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::ConfirmationTokenInvalid);
    app::keys::resume(&app.ctx, key.caller.key.id).await.unwrap();
    key.confirm(&mine, &token).await.unwrap();
    app.run_workers().await;
    assert_eq!(app.status(mine.id).await, Status::Completed);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn pausing_and_resuming_are_idempotent() {
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
