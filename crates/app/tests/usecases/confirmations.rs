//! Trades of high value: held until they are confirmed, and failed otherwise.

use domain::key::Tier;
use domain::trade::{State, Status};
use domain::{ErrorCode, Usdc};
use store::Store;
use store::testing::sqlite;
use store::trades::Trade;
use testkit::{Fault, TestApp};

use crate::scene::{Scene, assert_refused};

async fn gated() -> Scene {
    Scene::gated(sqlite().await).await
}

fn failure(trade: &Trade) -> ErrorCode {
    match &trade.state {
        State::Failed(failure) => failure.code,
        state => panic!("{}", state.status()),
    }
}

#[tokio::test]
async fn a_buy_of_exactly_the_default_cap_is_held_and_more_is_rejected() {
    for (tier, held, above, below) in [
        (Tier::Enterprise, "25000", "25000.000001", "24999.999999"),
        (Tier::Mm, "50000", "50000.000001", "49999.999999"),
    ] {
        let Scene { app, key, .. } = Scene::with(TestApp::new().await, "200000", tier).await;
        let market = app.market_with(&["Yes", "No"], |new| new.liquidity = Usdc::from_whole(50_000)).await;
        assert_refused(&app, key.buy(&market, 0, above), ErrorCode::SpendingLimitExceeded).await;
        assert_eq!(key.buy(&market, 0, held).await.state.status(), Status::PendingConfirmation);
        assert_eq!(key.buy(&market, 0, below).await.state, State::Pending);
    }
}

#[tokio::test]
async fn a_tier_without_a_threshold_holds_nothing() {
    let Scene { key, market, .. } = Scene::with(TestApp::new().await, "10000", Tier::Developer).await;
    assert_eq!(key.buy(&market, 0, "2500").await.state, State::Pending);
}

#[tokio::test]
async fn sales_and_token_amounts_are_held_by_their_usdc_value() {
    let Scene { app, ada, key, market } = gated().await;
    let free = app.key(&ada, Tier::Mm).await;
    free.buy(&market, 0, "2000").await;
    app.run_workers().await;
    let held =
        async |request: testkit::Request<'_>| request.await.state.status() == Status::PendingConfirmation;
    assert!(!held(key.sell(&market, 0, "99.999999")).await);
    assert!(held(key.sell(&market, 0, "100")).await);
    assert!(held(key.sell_all(&market, 0)).await);
    assert!(!held(key.buy(&market, 1, "1").in_tokens()).await);
    // At about 0.14 USDC per token, this is well above 100 USDC.
    assert!(held(key.buy(&market, 1, "1500").in_tokens()).await);
    assert!(key.buy(&market, 0, "100").dry_run().await.unwrap().is_held);
    assert!(!key.buy(&market, 0, "99").dry_run().await.unwrap().is_held);
}

#[tokio::test]
async fn a_held_trade_reserves_its_usdc_and_waits() {
    let Scene { app, ada, key, market } = gated().await;
    let trade = key.buy(&market, 0, "100").await;
    let aside = Usdc::from_whole(100);
    assert_eq!((app.spent(&key).await, app.reserved(&ada).await), (aside, aside));
    app.advance_ms(app.ctx.config.confirmation_window_ms - 1).await;
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, Status::PendingConfirmation);
    assert_eq!((app.rows().await.batches, app.spent(&key).await), (0, aside));
    assert_refused(&app, key.buy(&market, 0, "901"), ErrorCode::SpendingLimitExceeded).await;
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_confirmed_trade_executes_like_any_other() {
    let Scene { app, ada, key, market } = gated().await;
    let trade = key.buy(&market, 0, "100").await;
    let token = key.token(&trade);
    let confirmed = key.confirm(&trade, &token).await.unwrap();
    assert_eq!((confirmed.id, &confirmed.state), (trade.id, &State::Pending));
    assert_eq!(app.trade(trade.id).await, confirmed);
    app.run_workers().await;
    let expected = [
        Status::PendingConfirmation,
        Status::Pending,
        Status::Validating,
        Status::Executing,
        Status::Completed,
    ];
    assert_eq!(app.history(trade.id).await, expected);
    let made = app.trade(trade.id).await;
    assert_eq!(made.held_until, trade.held_until, "it stays known that the trade was held");
    assert_eq!(app.reserved(&ada).await, Usdc::ZERO);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn only_keys_of_the_user_can_confirm() {
    let Scene { app, ada, key, market } = gated().await;
    let second = app.disabled_key(&ada, Tier::Free).await;
    let bob = app.user("bob").funded("100").await;
    let bobs = app.key(&bob, Tier::Mm).await;
    let trade = key.buy(&market, 0, "100").await;
    let token = key.token(&trade);
    let refusal = bobs.confirm(&trade, &token).await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::ResourceNotFound);
    assert_eq!(refusal.extensions.get("tradeId"), None);
    second.confirm(&trade, &token).await.unwrap();
}

#[tokio::test]
async fn a_rejected_confirm_reports_the_first_reason_in_order() {
    let Scene { app, key, market, .. } = gated().await;
    let plain = key.buy(&market, 0, "10").await;
    let held = key.buy(&market, 0, "100").await;
    let used = key.buy(&market, 0, "100").await;
    let (token, used_token) = (key.token(&held), key.token(&used));
    key.confirm(&used, &used_token).await.unwrap();
    let refused = async |trade: &Trade, token: &str| {
        let before = app.rows().await;
        let refusal = key.confirm(trade, token).await.unwrap_err();
        assert_eq!(refusal.extensions["tradeId"], trade.id.to_string());
        assert_eq!(app.rows().await, before);
        (refusal.code, refusal.extensions["submission"].as_str().unwrap().to_owned())
    };
    let told = |code, submission: &str| (code, submission.to_owned());
    let never = told(ErrorCode::TradeNotAwaitingConfirmation, "submitted");
    assert_eq!(refused(&plain, &token).await, never);
    for wrong in ["", "ct_", "nonsense", &used_token] {
        let expected = told(ErrorCode::ConfirmationTokenInvalid, "not_submitted");
        assert_eq!(refused(&held, wrong).await, expected, "{wrong}");
    }
    assert_eq!(refused(&used, "x").await, told(ErrorCode::ConfirmationTokenInvalid, "submitted"));
    assert_eq!(refused(&used, &used_token).await, told(ErrorCode::ConfirmationTokenUsed, "submitted"));

    app.advance_ms(app.ctx.config.confirmation_window_ms).await;
    // Both before and after the expiry worker has run, because the clock decides.
    let expired = told(ErrorCode::ConfirmationExpired, "not_submitted");
    assert_eq!(refused(&held, &token).await, expired);
    assert_eq!(refused(&held, "x").await, expired);
    app.run_workers().await;
    assert_eq!(refused(&held, &token).await, expired);
    assert_eq!(refused(&plain, &token).await, never);
    // A trade that was confirmed in time has not expired.
    assert_eq!(refused(&used, &used_token).await, told(ErrorCode::ConfirmationTokenUsed, "submitted"));
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_used_token_reports_if_the_trade_reached_the_chain() {
    let Scene { app, key, market, .. } = gated().await;
    let trade = key.buy(&market, 0, "100").await;
    let token = key.token(&trade);
    key.confirm(&trade, &token).await.unwrap();
    app.freeze(market).await;
    app.workers.synchronise(&app.ctx).await;
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, Status::Rejected);
    let refusal = key.confirm(&trade, &token).await.unwrap_err();
    assert_eq!(refusal.code, ErrorCode::ConfirmationTokenUsed);
    assert_eq!(refusal.extensions["submission"], "not_submitted");
}

#[tokio::test]
async fn unknown_and_malformed_ids_are_not_found() {
    let Scene { app, key, .. } = gated().await;
    let unknown = app.ctx.uuid().to_string();
    for id in [unknown.as_str(), "", "7", "\u{e9}"] {
        let refusal = app::trades::confirm(&app.ctx, &key.caller, id, "ct_").await.unwrap_err();
        assert_eq!(refusal.code, ErrorCode::ResourceNotFound, "{id}");
        assert_eq!(refusal.extensions["submission"], "not_submitted");
    }
}

#[tokio::test]
async fn a_late_confirm_gives_the_trade_a_full_lifetime() {
    let Scene { app, key, market, .. } = gated().await;
    let trade = key.buy(&market, 0, "100").await;
    app.advance_ms(app.ctx.config.confirmation_window_ms - 1).await;
    let confirmed = key.confirm(&trade, &key.token(&trade)).await.unwrap();
    assert_eq!(confirmed.deadline, app.ctx.now().plus_ms(app.ctx.config.intent_lifetime_ms));
    app.advance_ms(app.ctx.config.intent_lifetime_ms - 2_000).await;
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, Status::Completed);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_confirm_does_not_move_the_callers_deadline() {
    let Scene { app, key, market, .. } = gated().await;
    let deadline = app.ctx.now().plus_ms(60_000);
    let far = app.ctx.now().plus_ms(7 * domain::time::DAY_MS);
    let until = |at: domain::Timestamp| {
        key.buy(&market, 0, "100").with(move |draft| draft.deadline = Some(at.to_string()))
    };
    let (near, far) = (until(deadline).await, until(far).await);
    app.advance_ms(120_000).await;
    // The deadline has passed, but the confirmation is accepted. The risk engine checks the
    // deadline next.
    assert_eq!(key.confirm(&near, &key.token(&near)).await.unwrap().deadline, deadline);
    let longest = app.ctx.now().plus_ms(app.ctx.config.intent_lifetime_ms);
    assert_eq!(key.confirm(&far, &key.token(&far)).await.unwrap().deadline, longest);
    app.run_workers().await;
    assert_eq!(failure(&app.trade(near.id).await), ErrorCode::RequestTimeout);
    assert_eq!(app.status(far.id).await, Status::Completed);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_trade_confirmed_in_a_frozen_market_is_rejected() {
    let Scene { app, key, market, .. } = gated().await;
    let trade = key.buy(&market, 0, "100").await;
    app.freeze(market).await;
    app.run_workers().await;
    key.confirm(&trade, &key.token(&trade)).await.unwrap();
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, Status::Rejected);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_replay_of_a_held_trade_finds_it_and_confirms_it() {
    let Scene { app, key, market, .. } = gated().await;
    let request = || key.buy(&market, 0, "100").idempotent("k").named("n");
    let trade = request().await;
    let token = key.token(&trade);
    let replayed = request().replayed().await;
    assert_eq!(replayed, trade);
    assert_eq!(key.buy(&market, 0, "100").named("n").found().await, trade);
    assert_eq!(key.token(&replayed), token);
    key.confirm(&replayed, &token).await.unwrap();
    assert_eq!(request().replayed().await.state, State::Pending);
    assert!(app::trades::held_until(&app.ctx, &request().replayed().await).is_none());
}

#[tokio::test]
async fn tokens_differ_by_trade_and_are_not_stored() {
    let Scene { app, key, market, .. } = gated().await;
    let (one, other) = (key.buy(&market, 0, "100").await, key.buy(&market, 0, "100").await);
    assert_ne!(key.token(&one), key.token(&other));
    let stored: Result<Vec<String>, store::StoreError> = app
        .ctx
        .store
        .read((), |tx, ()| {
            const SQL: &str = "SELECT request_hash || metadata || attributes FROM trades
                JOIN trace_events ON trade_id = trades.id";
            Box::pin(tx.list(SQL, &[], |row| row.only::<String>()))
        })
        .await;
    assert!(stored.unwrap().iter().all(|text| !text.contains(&key.token(&one)) && !text.contains("ct_")));
}

store::on_each_engine! {
    async fn an_unconfirmed_trade_fails_and_releases_its_usdc_once(store: Store) {
        let Scene { app, ada, key, market } = Scene::gated(store).await;
        let mut trades = Vec::new();
        for _ in 0..3 {
            trades.push(key.buy(&market, 0, "300").await);
        }
        app.advance_ms(1).await;
        let later = key.buy(&market, 0, "100").await;
        app.advance_ms(app.ctx.config.confirmation_window_ms - 1).await;
        app.workers.expire(&app.ctx).await;
        for trade in &trades {
            let trade = app.trade(trade.id).await;
            assert_eq!((failure(&trade), trade.ended_at), (ErrorCode::ConfirmationExpired, Some(app.ctx.now())));
        }
        assert_eq!(app.status(later.id).await, Status::PendingConfirmation);
        let left = Usdc::from_whole(100);
        assert_eq!((app.spent(&key).await, app.reserved(&ada).await), (left, left));
        let rows = app.rows().await;
        app.workers.expire(&app.ctx).await;
        app.another_process("two").run(&app.ctx).await;
        assert_eq!(app.rows().await.reserved, rows.reserved);
        key.buy(&market, 0, "900").await;
        app.assert_ledger_equals_chain().await;
    }

    async fn all_held_trades_expire_over_several_ticks(store: Store) {
        let Scene { app, ada, key, market } = Scene::gated(store).await;
        let second = app.key(&ada, Tier::Mm).await;
        second.buy(&market, 0, "3000").await;
        app.run_workers().await;
        // Sales reserve nothing, so no cap limits their number.
        for _ in 0..120 {
            key.sell(&market, 0, "100").await;
        }
        app.advance_ms(app.ctx.config.confirmation_window_ms).await;
        app.workers.expire(&app.ctx).await;
        assert_eq!(app.open_trades().await, 0);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_confirmed_trade_survives_a_crash(store: Store) {
        let Scene { mut app, key, market, .. } = Scene::gated(store).await;
        let trade = key.buy(&market, 0, "100").await;
        key.confirm(&trade, &key.token(&trade)).await.unwrap();
        for (life, (method, fault)) in [
            ("eth_feeHistory", Fault::LostRequest),
            ("eth_sendRawTransaction", Fault::LostAnswer),
            ("eth_getTransactionReceipt", Fault::LostRequest),
            ("eth_getLogs", Fault::LostAnswer),
        ].into_iter().enumerate() {
            app.faults.next(method, fault);
            drop(app.workers.try_run(&app.ctx).await);
            app.faults.heal();
            app.restart(&format!("life {life}")).await;
        }
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        app.assert_ledger_equals_chain().await;
    }
}
