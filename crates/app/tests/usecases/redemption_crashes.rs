//! Redemptions through crashes at any step and reorganizations: every claim is completed once, with
//! the amount that the chain paid.

use alloy_primitives::U256;
use app::worker::Worker;
use domain::ids::RedemptionId;
use domain::key::Tier;
use domain::redemption::RedemptionStatus;
use domain::{ErrorCode, Usdc};
use store::{Store, StoreError};
use testkit::{Fault, TestApp};

use crate::scene::Scene;

const RECEIPT: &str = "eth_getTransactionReceipt";

/// Ada has claimed both outcomes of a market that pays both.
async fn two_claims(app: TestApp) -> (Scene, [RedemptionId; 2]) {
    let scene = Scene::of(app).await;
    let Scene { app, key, market, .. } = &scene;
    key.buy(market, 0, "100").await;
    key.buy(market, 1, "40").await;
    app.run_workers().await;
    app.mine(4).await;
    app.resolve_in_parts(*market, &[50, 50]).await;
    app.run_workers().await;
    app.mine(4).await;
    app.run_workers().await;
    let claims = [key.redeemed(market, 0).await.id, key.redeemed(market, 1).await.id];
    (scene, claims)
}

async fn on(store: Store) -> TestApp {
    TestApp::with().on(store).start().await
}

async fn assert_all(scene: &Scene, claims: &[RedemptionId], status: RedemptionStatus) {
    for id in claims {
        assert_eq!(scene.app.claim_status(&scene.ada, *id).await, status);
    }
}

store::on_each_engine! {
    async fn redemptions_stay_pending_after_a_crash_before_signing(store: Store) {
        let (mut scene, claims) = two_claims(on(store).await).await;
        let batches = scene.app.rows().await.batches;
        for method in ["eth_call", "eth_estimateGas", "eth_feeHistory"] {
            scene.app.faults.next(method, Fault::LostRequest);
            scene.app.workers.try_run(&scene.app.ctx).await.unwrap_err();
            assert_all(&scene, &claims, RedemptionStatus::Pending).await;
            assert_eq!(scene.app.rows().await.batches, batches);
        }
        scene.app.restart("two").await;
        scene.app.run_workers().await;
        assert_all(&scene, &claims, RedemptionStatus::Completed).await;
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn redemptions_stored_and_not_sent_are_sent_unchanged(store: Store) {
        let (mut scene, claims) = two_claims(on(store).await).await;
        let before = scene.app.faults.sent().len();
        scene.app.faults.next_send(Fault::LostRequest);
        scene.app.workers.execute(&scene.app.ctx).await;
        assert_all(&scene, &claims, RedemptionStatus::Executing).await;

        scene.app.restart("two").await;
        scene.app.run_workers().await;
        assert_all(&scene, &claims, RedemptionStatus::Completed).await;
        let sent = scene.app.faults.sent().split_off(before);
        assert_eq!(sent.len(), 2);
        assert_eq!(sent[0], sent[1]);
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn mined_redemptions_are_not_sent_again(store: Store) {
        let (mut scene, claims) = two_claims(on(store).await).await;
        let before = scene.app.faults.sent().len();
        scene.app.faults.next_send(Fault::LostAnswer);
        scene.app.faults.next(RECEIPT, Fault::LostRequest);
        scene.app.workers.try_run(&scene.app.ctx).await.unwrap_err();
        assert_all(&scene, &claims, RedemptionStatus::Executing).await;

        scene.app.restart("two").await;
        scene.app.run_workers().await;
        assert_all(&scene, &claims, RedemptionStatus::Completed).await;
        assert_eq!(scene.app.faults.sent().len(), before + 1);
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn paid_redemptions_are_completed_after_a_restart(store: Store) {
        let (mut scene, claims) = two_claims(on(store).await).await;
        scene.app.workers.execute(&scene.app.ctx).await;
        scene.app.faults.next("eth_getLogs", Fault::LostAnswer);
        scene.app.workers.try_run(&scene.app.ctx).await.unwrap_err();
        assert_all(&scene, &claims, RedemptionStatus::Executing).await;
        scene.app.restart("two").await;
        scene.app.run_workers().await;
        assert_all(&scene, &claims, RedemptionStatus::Completed).await;
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn crashes_at_random_requests_pay_every_position_once(store: Store) {
        const METHODS: [&str; 5] =
            ["eth_sendRawTransaction", RECEIPT, "eth_call", "eth_estimateGas", "eth_getLogs"];
        let mut app = TestApp::with().on(store).automatic_redemptions().start().await;
        let mut markets = Vec::new();
        for _ in 0..3 {
            markets.push(app.market(&["A", "B", "C"]).await);
        }
        let mut users = Vec::new();
        for n in 0..4 {
            let user = app.user(&format!("user {n}")).funded("1000").await;
            let key = app.key(&user, Tier::Mm).await;
            for (market, outcome) in markets.iter().flat_map(|market| [(market, 0), (market, 1), (market, 2)]) {
                key.buy(market, outcome, "5").await;
            }
            users.push(user);
        }
        app.run_workers().await;
        for market in &markets {
            app.resolve_in_parts(*market, &[60, 40, 0]).await;
        }
        app.run_workers().await;
        for round in 0..20 {
            let [method, fault, skip] = app.ctx.random::<3>();
            let method = METHODS[usize::from(method) % METHODS.len()];
            let faults = [Fault::LostRequest, Fault::LostAnswer];
            app.faults.after(usize::from(skip % 7), method, faults[usize::from(fault) % 2]);
            drop(app.workers.try_run(&app.ctx).await);
            app.faults.heal();
            app.restart(&format!("life {round}")).await;
        }
        app.run_workers().await;
        assert_eq!(app.rows().await.redemptions, 4 * 3 * 2);
        for user in &users {
            assert!(app.claims(user).await.iter().all(|claim| claim.status == RedemptionStatus::Completed));
        }
        app.assert_ledger_equals_chain().await;
    }

    async fn a_frozen_payer_changes_nothing_later(store: Store) {
        let app = TestApp::with().on(store).automatic_redemptions().start().await;
        let Scene { app, ada, key, market } = Scene::of(app).await;
        key.buy(&market, 0, "100").await;
        app.run_workers().await;
        app.resolve(market, 0).await;
        app.workers.synchronise(&app.ctx).await;
        let frozen = app.another_process("frozen");
        app.workers.release(&app.ctx).await;
        let held = app.faults.hold("eth_call");
        let ctx = app.ctx.clone();
        let thaws = tokio::spawn(async move { frozen.payer.tick(&ctx).await });
        held.reached().await;
        app.advance_ms(app.ctx.config.lease_ms).await;
        app.workers.run(&app.ctx).await;
        held.release();
        let refusal = thaws.await.unwrap().unwrap_err();
        assert_eq!(refusal.code, ErrorCode::DependencyUnavailable);
        app.run_workers().await;
        let [claim] = app.claims(&ada).await.try_into().unwrap();
        assert_eq!(claim.status, RedemptionStatus::Completed);
        app.assert_ledger_equals_chain().await;
    }

    async fn redemptions_of_an_abandoned_branch_are_paid_on_the_other(store: Store) {
        let forkable = TestApp::with().on(store).forkable().confirmations(4).start().await;
        let (scene, claims) = two_claims(forkable).await;
        let Scene { app, ada, .. } = &scene;
        app.branches().part();
        app.run_workers().await;
        app.mine(1).await;
        app.run_workers().await;
        assert_all(&scene, &claims, RedemptionStatus::Executing).await;
        let before = app.balance(ada).await;

        app.branches().switch();
        app.mine(6).await;
        app.workers.synchronise(&app.ctx).await;
        assert!(app.balance(ada).await < before, "the payment is gone");
        assert_all(&scene, &claims, RedemptionStatus::Executing).await;
        app.advance_ms(app.ctx.config.resend_after_ms).await;
        app.run_workers().await;
        app.mine(4).await;
        app.run_workers().await;
        assert_all(&scene, &claims, RedemptionStatus::Completed).await;
        assert_eq!(app.balance(ada).await, before);
        app.assert_ledger_equals_chain().await;
    }
}

#[tokio::test]
async fn redemptions_that_lost_their_nonce_are_signed_again() {
    let (scene, claims) = two_claims(TestApp::new().await).await;
    let app = &scene.app;
    app.faults.next_send(Fault::LostRequest);
    app.workers.execute(&app.ctx).await;
    let first = app.claim(&scene.ada, claims[0]).await.batch_id;
    let executor = &app.roles.executors[0];
    app.ctx.chain.send_native(executor, executor.address(), U256::from(1)).await.unwrap();
    app.advance_ms(app.ctx.config.resend_after_ms).await;
    app.run_workers().await;
    assert_all(&scene, &claims, RedemptionStatus::Completed).await;
    assert_ne!(app.claim(&scene.ada, claims[0]).await.batch_id, first);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn unmined_redemptions_are_replaced_at_a_higher_fee() {
    let (scene, claims) = two_claims(TestApp::new().await).await;
    let app = &scene.app;
    let before = app.faults.sent().len();
    app.faults.every_send(Fault::NeverMined);
    app.workers.execute(&app.ctx).await;
    app.advance_ms(app.ctx.config.replace_after_ms).await;
    app.workers.execute(&app.ctx).await;
    let sent = app.faults.sent().split_off(before);
    assert_eq!(sent.len(), 2);
    assert_ne!(sent[0], sent[1]);
    app.faults.heal();
    app.advance_ms(app.ctx.config.resend_after_ms).await;
    app.run_workers().await;
    assert_all(&scene, &claims, RedemptionStatus::Completed).await;
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_payment_called_by_a_stranger_completes_a_sent_claim() {
    let (scene, claims) = two_claims(TestApp::new().await).await;
    let Scene { app, ada, market, .. } = &scene;
    app.faults.next_send(Fault::LostRequest);
    app.workers.execute(&app.ctx).await;
    let receipt = app.stranger_redeems(ada, *market, 0).await;
    app.advance_ms(app.ctx.config.resend_after_ms).await;
    app.run_workers().await;
    assert_all(&scene, &claims, RedemptionStatus::Completed).await;
    let [one, other] = [app.claim(ada, claims[0]).await, app.claim(ada, claims[1]).await];
    assert_eq!(one.tx_hash, Some(receipt.tx_hash));
    assert_ne!(other.tx_hash, one.tx_hash);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_claim_that_can_never_pay_fails_and_can_be_created_again() {
    let scene = Scene::new().await;
    let Scene { app, ada, key, market } = &scene;
    key.buy(market, 0, "100").await;
    app.run_workers().await;
    app.resolve(*market, 0).await;
    app.run_workers().await;
    let claim = key.redeemed(market, 0).await;
    // As if the claim were for the outcome that pays nothing.
    set_outcome(app, claim.id, 1).await;
    app.workers.execute(&app.ctx).await;
    let failed = app.claim(ada, claim.id).await;
    assert_eq!((failed.status, failed.paid), (RedemptionStatus::Failed, Usdc::ZERO));
    assert_eq!(failed.failure.map(|(code, _)| code), Some(ErrorCode::PositionNotClaimable));

    set_outcome(app, claim.id, 0).await;
    let again = key.redeemed_before(market, 0).await;
    assert_eq!((again.id, again.status, again.failure), (claim.id, RedemptionStatus::Pending, None));
    app.run_workers().await;
    assert_eq!(app.claim_status(ada, claim.id).await, RedemptionStatus::Completed);
    app.assert_ledger_equals_chain().await;
}

async fn set_outcome(app: &TestApp, id: RedemptionId, outcome: i64) {
    const SQL: &str = "UPDATE redemptions SET outcome_index = $1 WHERE id = $2";
    let done: Result<u64, StoreError> = app
        .ctx
        .store
        .write((id, outcome), |tx, (id, outcome)| {
            Box::pin(async move {
                let bound = [store::SqlValue::from(*outcome), store::SqlValue::from(*id)];
                tx.exec(SQL, &bound).await
            })
        })
        .await;
    assert_eq!(done.unwrap(), 1);
}
