//! Scenarios of the sandbox: each name has its outcome, by the ordinary machinery, and none outside
//! of the sandbox.

use domain::key::Tier;
use domain::risk::RiskRefusal;
use domain::sandbox::{MEMBER, Scenario};
use domain::trade::{State, Status};
use domain::{ErrorCode, Usdc};
use store::Store;
use store::trades::Trade;
use testkit::{Request, TestApp};

use crate::scene::{Scene, assert_refused};

async fn sandbox(store: Store) -> Scene {
    Scene::of(TestApp::with().on(store).sandbox().start().await).await
}

/// Names a scenario in a request's metadata.
fn playing<'a>(request: Request<'a>, name: &str) -> Request<'a> {
    let metadata = [(MEMBER.to_owned(), name.to_owned())].into();
    request.with(|draft| draft.metadata = Some(metadata))
}

fn fails(code: ErrorCode) -> String {
    Scenario::Fail(code).to_string()
}

/// Returns the code of a failed trade, and whether it failed on chain.
fn failure(trade: &Trade) -> (ErrorCode, bool) {
    match &trade.state {
        State::Failed(failure) => (failure.code, failure.tx_hash.is_some()),
        state => panic!("{}", state.status()),
    }
}

#[tokio::test]
async fn outside_of_the_sandbox_a_scenario_is_plain_metadata() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let reject = Scenario::REJECTIONS.iter().copied().map(Scenario::Reject);
    let fail = Scenario::FAILURES.iter().copied().map(Scenario::Fail);
    let risk = RiskRefusal::ALL.iter().copied().map(Scenario::Risk);
    let others = [Scenario::Slow { seconds: 600 }, Scenario::Hold, Scenario::Lose];
    let names = reject.chain(fail).chain(risk).chain(others).map(|scenario| scenario.to_string());
    for name in names.chain(["nonsense".to_owned()]) {
        let trade = playing(key.buy(&market, 0, "1"), &name).await;
        assert_eq!((trade.state, trade.held_until), (State::Pending, None), "{name}");
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed, "{name}");
        assert!(playing(key.buy(&market, 0, "1"), &name).dry_run().await.is_ok(), "{name}");
    }
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn an_unknown_scenario_is_a_validation_error_before_any_check_of_the_market() {
    let Scene { app, key, market, .. } = sandbox(store::testing::sqlite().await).await;
    app.freeze(market).await;
    app.run_workers().await;
    let request = playing(key.buy(&market, 0, "1"), "explode");
    let refusal = assert_refused(&app, request, ErrorCode::ValidationFailed).await;
    assert_eq!(refusal.extensions["errors"][0]["pointer"], "/metadata/sandbox");
}

#[tokio::test]
async fn a_rejection_stores_nothing_and_leaves_the_idempotency_key_free() {
    let Scene { app, key, market, .. } = sandbox(store::testing::sqlite().await).await;
    for code in Scenario::REJECTIONS.iter().copied() {
        let name = Scenario::Reject(code).to_string();
        let before = app.rows().await;
        for _ in 0..2 {
            let refusal = playing(key.buy(&market, 0, "1"), &name).idempotent("k").refused().await;
            assert_eq!(refusal.code, code);
        }
        let refusal = playing(key.buy(&market, 0, "1"), &name).dry_run().await.unwrap_err();
        assert_eq!(refusal.code, code);
        assert_eq!(app.rows().await, before, "{name}");
    }
    let trade = key.buy(&market, 0, "1").idempotent("k").await;
    let name = Scenario::Reject(ErrorCode::SlippageExceeded).to_string();
    let request = playing(key.buy(&market, 0, "1"), &name).idempotent("k");
    let conflict = request.refused().await;
    assert_eq!(conflict.code, ErrorCode::IdempotencyKeyConflict);
    assert_eq!(conflict.extensions["tradeId"], trade.id.to_string());
}

#[tokio::test]
async fn the_request_is_checked_before_its_scenario() {
    let Scene { app, key, market, .. } = sandbox(store::testing::sqlite().await).await;
    let request = playing(key.buy(&market, 0, "10001"), "reject:RATE_LIMIT_EXCEEDED");
    assert_refused(&app, request.with(|draft| draft.outcome_index = Some(9)), ErrorCode::OutcomeIndexInvalid)
        .await;
}

store::on_each_engine! {
    async fn a_failure_is_that_of_the_chain_and_releases_the_funds(store: Store) {
        let Scene { app, ada, key, market } = sandbox(store).await;
        key.buy(&market, 0, "50").await;
        app.run_workers().await;
        let (spent, balance) = (app.spent(&key).await, app.balance(&ada).await);
        let kinds = [
            key.buy(&market, 0, "5"),
            key.buy(&market, 1, "5").in_tokens(),
            key.sell(&market, 0, "5"),
            key.sell(&market, 0, "5").in_tokens(),
            key.sell_all(&market, 0),
        ];
        for code in Scenario::FAILURES.iter().copied() {
            let mut trades = Vec::new();
            for kind in &kinds {
                let trade = playing(kind.clone(), &fails(code)).await;
                assert_eq!(trade.state, State::Pending);
                trades.push(trade.id);
            }
            app.run_workers().await;
            for id in trades {
                // Only a deadline ends before anything is sent.
                let on_chain = code != ErrorCode::RequestTimeout;
                assert_eq!(failure(&app.trade(id).await), (code, on_chain));
                let last = if on_chain { Status::Executing } else { Status::Validating };
                assert_eq!(app.history(id).await.iter().rev().nth(1), Some(&last));
            }
        }
        assert_eq!((app.reserved(&ada).await, app.spent(&key).await), (Usdc::ZERO, spent));
        assert_eq!(app.balance(&ada).await, balance);
        // The nonces of the key continue.
        let trade = key.buy(&market, 0, "5").await;
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_reason_of_the_risk_engine_rejects_the_accepted_trade(store: Store) {
        let Scene { app, ada, key, market } = sandbox(store).await;
        for reason in RiskRefusal::ALL.iter().copied() {
            let rejected = playing(key.buy(&market, 0, "5"), &Scenario::Risk(reason).to_string()).await;
            let other = key.buy(&market, 0, "5").await;
            app.run_workers().await;
            match app.trade(rejected.id).await.state {
                State::Rejected(rejection) => assert_eq!(rejection.reason, reason),
                state => panic!("{reason}: {}", state.status()),
            }
            assert_eq!(app.status(other.id).await, Status::Completed);
        }
        assert_eq!(app.reserved(&ada).await, Usdc::ZERO);
    }
}

#[tokio::test]
async fn failures_of_a_missing_delegation_do_not_share_nonces_between_keys() {
    let Scene { app, ada, key, market } = sandbox(store::testing::sqlite().await).await;
    let second = app.key(&ada, Tier::Mm).await;
    let name = fails(ErrorCode::WalletDelegationNotEnabled);
    for _ in 0..3 {
        let mut trades = Vec::new();
        for key in [&key, &second] {
            trades.push(playing(key.buy(&market, 0, "5"), &name).await.id);
        }
        app.run_workers().await;
        for id in trades {
            assert_eq!(failure(&app.trade(id).await), (ErrorCode::WalletDelegationNotEnabled, true));
        }
    }
    for key in [&key, &second] {
        let trade = key.buy(&market, 0, "5").await;
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
    }
}

#[tokio::test]
async fn a_failing_trade_whose_batch_was_not_sent_fails_after_a_restart() {
    let mut scene = sandbox(store::testing::sqlite().await).await;
    let name = fails(ErrorCode::SlippageExceeded);
    let trade = playing(scene.key.buy(&scene.market, 0, "5"), &name).await;
    scene.app.faults.every_send(testkit::Fault::LostRequest);
    assert!(scene.app.workers.execute_once(&scene.app.ctx).await.is_ok());
    assert_eq!(scene.app.status(trade.id).await, Status::Executing);
    scene.app.faults.heal();
    scene.app.restart("two").await;
    scene.app.run_workers().await;
    assert_eq!(failure(&scene.app.trade(trade.id).await), (ErrorCode::SlippageExceeded, true));
}

#[tokio::test]
async fn a_slow_trade_executes_after_its_delay_and_delays_no_other() {
    let Scene { app, key, market, .. } = sandbox(store::testing::sqlite().await).await;
    let slow = playing(key.buy(&market, 0, "5"), "slow:600").await;
    let other = key.buy(&market, 1, "5").await;
    app.run_workers().await;
    assert_eq!(
        (app.status(slow.id).await, app.status(other.id).await),
        (Status::Validating, Status::Completed)
    );
    app.advance_ms(599_999).await;
    app.run_workers().await;
    assert_eq!(app.status(slow.id).await, Status::Validating);
    app.advance_ms(1).await;
    app.run_workers().await;
    assert_eq!(app.status(slow.id).await, Status::Completed);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_slow_trade_fails_at_its_own_deadline() {
    let Scene { app, key, market, .. } = sandbox(store::testing::sqlite().await).await;
    let deadline = app.ctx.now().plus_ms(30_000).to_string();
    let request = key.buy(&market, 0, "5").with(|draft| draft.deadline = Some(deadline));
    let slow = playing(request, "slow:60").await;
    app.run_workers().await;
    app.advance_ms(30_000).await;
    app.run_workers().await;
    assert_eq!(failure(&app.trade(slow.id).await), (ErrorCode::RequestTimeout, false));
}

#[tokio::test]
async fn a_held_trade_is_confirmed_or_expires_like_any_other() {
    let Scene { app, ada, key, market } = sandbox(store::testing::sqlite().await).await;
    assert!(playing(key.buy(&market, 0, "5"), "hold").dry_run().await.unwrap().is_held);
    let (confirmed, left) =
        (playing(key.buy(&market, 0, "5"), "hold").await, playing(key.buy(&market, 0, "5"), "hold").await);
    app.run_workers().await;
    for held in [&confirmed, &left] {
        assert_eq!(app.trade(held.id).await, *held);
        assert_eq!(held.state.status(), Status::PendingConfirmation);
    }
    key.confirm(&confirmed, &key.token(&confirmed)).await.unwrap();
    app.run_workers().await;
    assert_eq!(app.status(confirmed.id).await, Status::Completed);
    app.advance_ms(app.ctx.config.confirmation_window_ms).await;
    app.run_workers().await;
    assert_eq!(failure(&app.trade(left.id).await), (ErrorCode::ConfirmationExpired, false));
    assert_eq!(app.reserved(&ada).await, Usdc::ZERO);
}

#[tokio::test]
async fn a_lost_answer_is_unknown_and_the_retry_finds_the_one_trade() {
    let Scene { app, key, market, .. } = sandbox(store::testing::sqlite().await).await;
    let call = || playing(key.buy(&market, 0, "5"), "lose").idempotent("k");
    let refusal = call().refused().await;
    assert_eq!((refusal.code, refusal.retry_after_s), (ErrorCode::DependencyUnavailable, Some(1)));
    assert_eq!(refusal.extensions["submission"], "unknown");
    let trade = call().replayed().await;
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, Status::Completed);
    assert_eq!(app.rows().await.trades, 1);
}
