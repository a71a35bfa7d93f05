//! Acts whose process dies at any step, whose nonce or deadline passes meanwhile, or that share the
//! lane with trades: every act is executed at most once, and its row tells the truth.

use alloy_primitives::{Address, U256};
use app::owner_acts::{self, OwnerActRequest, WithdrawalAmount};
use chain::calls;
use domain::key::Tier;
use domain::owner_act::{OwnerActFailure, OwnerActStatus};
use domain::time::MINUTE_MS;
use domain::trade::Status;
use domain::{ErrorCode, Usdc};
use futures::future::join_all;
use store::Store;
use store::owner_acts::OwnerAct;
use testkit::{Anvil, Fault, TestApp, TestUser};

use crate::scene::Scene;

const TO: Address = Address::repeat_byte(0xaa);
const RECEIPT: &str = "eth_getTransactionReceipt";

fn withdrawal(usdc: u32) -> OwnerActRequest {
    OwnerActRequest::Withdraw { to: TO, amount: WithdrawalAmount::Exact(Usdc::from_whole(usdc)) }
}

/// Ada, whose withdrawal of 100 USDC is signed.
async fn signed_withdrawal(store: Store) -> (TestApp, TestUser, OwnerAct) {
    let Scene { app, ada, .. } = Scene::on(store).await;
    let act = app.signed_act(&ada, &withdrawal(100)).await;
    (app, ada, act)
}

/// Steps the workers, and the executors once more: a tick that sends stored bytes again leaves the
/// receipt to the next one.
async fn run_and_look_again(app: &TestApp) {
    app.run_workers().await;
    app.workers.execute(&app.ctx).await;
}

async fn status(app: &TestApp, act: &OwnerAct) -> OwnerActStatus {
    app.stored_act(act.id).await.status
}

/// Asserts that the act is done and that the withdrawal has happened once.
async fn assert_withdrawn_once(app: &TestApp, act: &OwnerAct) {
    let act = app.stored_act(act.id).await;
    assert_eq!((act.status, act.failure, act.error.as_deref()), (OwnerActStatus::Done, None, None));
    let received = app.ctx.chain.usdc_balance(TO).await.unwrap();
    assert_eq!(received, U256::from(Usdc::from_whole(100).atomic()));
    let receipt = app.ctx.chain.receipt(act.tx_hash.unwrap()).await.unwrap().unwrap();
    assert!(receipt.success);
    let executed = app.ctx.chain.executed_batch(act.account, act.nonce, 0).await.unwrap().unwrap();
    assert_eq!((executed.digest, executed.tx_hash), (act.digest, receipt.tx_hash));
}

store::on_each_engine! {
    async fn a_crash_before_signing_the_transaction_executes_the_act_once(store: Store) {
        let (mut app, _, act) = signed_withdrawal(store).await;
        app.faults.next("eth_feeHistory", Fault::LostRequest);
        app.workers.try_run(&app.ctx).await.unwrap_err();
        assert_eq!(status(&app, &act).await, OwnerActStatus::Signed);
        app.restart("two").await;
        run_and_look_again(&app).await;
        assert_withdrawn_once(&app, &act).await;
    }

    async fn a_crash_before_sending_executes_the_act_once(store: Store) {
        let (mut app, _, act) = signed_withdrawal(store).await;
        let before = app.faults.sent().len();
        app.faults.next_send(Fault::LostRequest);
        app.workers.execute(&app.ctx).await;
        assert_eq!(status(&app, &act).await, OwnerActStatus::Sent);
        app.restart("two").await;
        run_and_look_again(&app).await;
        assert_withdrawn_once(&app, &act).await;
        let sent = app.faults.sent().split_off(before);
        assert_eq!(sent.len(), 2);
        assert_eq!(sent[0], sent[1], "the same bytes are sent again");
    }

    async fn a_crash_before_the_receipt_executes_the_act_once(store: Store) {
        let (mut app, _, act) = signed_withdrawal(store).await;
        let before = app.faults.sent().len();
        app.faults.next_send(Fault::LostAnswer);
        app.faults.next(RECEIPT, Fault::LostRequest);
        app.workers.try_run(&app.ctx).await.unwrap_err();
        assert_eq!(status(&app, &act).await, OwnerActStatus::Sent);
        app.restart("two").await;
        run_and_look_again(&app).await;
        assert_withdrawn_once(&app, &act).await;
        assert_eq!(app.faults.sent().len(), before + 1, "what is mined is not sent again");
    }

    async fn crashes_at_random_requests_execute_every_act_once(store: Store) {
        const METHODS: [&str; 7] = ["eth_sendRawTransaction", RECEIPT, "eth_call", "eth_feeHistory",
            "eth_estimateGas", "eth_getTransactionCount", "eth_getCode"];
        let Scene { mut app, ada, key, market } = Scene::on(store).await;
        for round in 0..18 {
            let act = app.signed_act(&ada, &withdrawal(1)).await;
            let trade = key.buy(&market, 0, "2").await;
            let [method, fault, skip] = app.ctx.random::<3>();
            let method = METHODS[usize::from(method) % METHODS.len()];
            let faults = [Fault::LostRequest, Fault::LostAnswer];
            app.faults.after(usize::from(skip % 5), method, faults[usize::from(fault) % 2]);
            // The tick fails or survives the fault, depending on the request.
            drop(app.workers.try_run(&app.ctx).await);
            app.faults.heal();
            app.restart(&format!("life {round}")).await;
            run_and_look_again(&app).await;
            assert_eq!(status(&app, &act).await, OwnerActStatus::Done, "round {round}");
            assert_eq!(app.status(trade.id).await, Status::Completed, "round {round}");
        }
        let received = app.ctx.chain.usdc_balance(TO).await.unwrap();
        assert_eq!(received, U256::from(Usdc::from_whole(18).atomic()));
        app.assert_ledger_equals_chain().await;
    }

    async fn an_act_whose_nonce_another_batch_used_fails(store: Store) {
        let (app, ada, act) = signed_withdrawal(store).await;
        let usdc = app.ctx.chain.contracts().usdc;
        app.as_owner(&ada, usdc, calls::transfer(Address::repeat_byte(1), U256::from(1))).await;
        app.workers.execute(&app.ctx).await;
        let failed = app.stored_act(act.id).await;
        assert_eq!((failed.status, failed.failure), (OwnerActStatus::Failed, Some(OwnerActFailure::NonceUsed)));
        assert_eq!(failed.batch_id, None, "nothing was sent");
        assert!(owner_acts::error_of(&failed).unwrap().detail.contains("executed another batch first"));
        assert_eq!(app.ctx.chain.usdc_balance(TO).await.unwrap(), U256::ZERO);
    }

    async fn an_act_whose_nonce_was_used_after_it_was_sent_fails(store: Store) {
        let (app, ada, act) = signed_withdrawal(store).await;
        app.faults.next_send(Fault::LostRequest);
        app.workers.execute(&app.ctx).await;
        let usdc = app.ctx.chain.contracts().usdc;
        app.as_owner(&ada, usdc, calls::transfer(Address::repeat_byte(1), U256::from(1))).await;
        app.advance_ms(app.ctx.config.resend_after_ms).await;
        run_and_look_again(&app).await;
        let failed = app.stored_act(act.id).await;
        assert_eq!((failed.status, failed.failure), (OwnerActStatus::Failed, Some(OwnerActFailure::NonceUsed)));
        assert_eq!(app.ctx.chain.usdc_balance(TO).await.unwrap(), U256::ZERO);
        app.assert_ledger_equals_chain().await;
    }

    /// Any address can relay an owner's signature once it is public.
    async fn an_act_that_another_address_relayed_is_done(store: Store) {
        let (app, ada, act) = signed_withdrawal(store).await;
        let signature = act.signature.clone().unwrap().into();
        let relayed = calls::execute_signed(&owner_acts::calls_of(&act).unwrap(), act.deadline_s, signature);
        let receipt = app.send(&app.roles.stranger, ada.account, relayed).await;
        app.workers.execute(&app.ctx).await;
        assert_eq!(app.stored_act(act.id).await.tx_hash, Some(receipt.tx_hash));
        assert_withdrawn_once(&app, &act).await;
    }

    async fn an_act_that_waits_past_its_deadline_expires(store: Store) {
        let (app, _, act) = signed_withdrawal(store).await;
        app.advance_ms(10 * MINUTE_MS + 1_000).await;
        app.workers.execute(&app.ctx).await;
        let expired = app.stored_act(act.id).await;
        assert_eq!((expired.status, expired.batch_id), (OwnerActStatus::Expired, None));
        let error = owner_acts::error_of(&expired).unwrap();
        assert_eq!(error.code, ErrorCode::ValidationFailed);
        assert!(error.detail.contains("expired at"), "{error}");
    }

    async fn an_act_that_is_mined_after_its_deadline_expires(store: Store) {
        let (app, ada, act) = signed_withdrawal(store).await;
        app.faults.every_send(Fault::LostRequest);
        app.workers.execute(&app.ctx).await;
        assert_eq!(status(&app, &act).await, OwnerActStatus::Sent);
        app.advance_ms(10 * MINUTE_MS + 1_000).await;
        app.faults.heal();
        run_and_look_again(&app).await;
        assert_eq!(status(&app, &act).await, OwnerActStatus::Expired);
        assert_eq!(app.ctx.chain.usdc_balance(TO).await.unwrap(), U256::ZERO);
        // The account is free again.
        let next = app.act(&ada, &withdrawal(100)).await;
        assert_withdrawn_once(&app, &next).await;
    }

    async fn an_act_whose_transaction_lost_its_nonce_is_signed_again(store: Store) {
        let (app, _, act) = signed_withdrawal(store).await;
        app.faults.next_send(Fault::LostRequest);
        app.workers.execute(&app.ctx).await;
        let first = app.stored_act(act.id).await.tx_hash;
        let executor = &app.roles.executors[0];
        app.ctx.chain.send_native(executor, executor.address(), U256::from(1)).await.unwrap();
        app.advance_ms(app.ctx.config.resend_after_ms).await;
        run_and_look_again(&app).await;
        assert_ne!(app.stored_act(act.id).await.tx_hash, first);
        assert_withdrawn_once(&app, &act).await;
    }

    /// The account factory takes a batch with the calls and the deadline of the last one for the same.
    async fn equal_acts_of_one_second_all_happen(store: Store) {
        let Scene { app, ada, .. } = Scene::on(store).await;
        for _ in 0..3 {
            assert_eq!(app.act(&ada, &withdrawal(10)).await.status, OwnerActStatus::Done);
        }
        let received = app.ctx.chain.usdc_balance(TO).await.unwrap();
        assert_eq!(received, U256::from(Usdc::from_whole(30).atomic()));
    }

    async fn two_executors_of_one_lane_execute_an_act_once(store: Store) {
        let (app, _, act) = signed_withdrawal(store).await;
        let other = app.another_process("two");
        let ctx = app.ctx_of_another_process();
        tokio::join!(app.workers.execute(&app.ctx), other.execute(&ctx));
        app.workers.execute(&app.ctx).await;
        assert_withdrawn_once(&app, &act).await;
    }

    /// Without a lane, six simultaneous batches would compete for the sender's nonces.
    async fn simultaneous_acts_and_trades_of_one_lane_all_happen_once(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let mut users = Vec::new();
        for name in ["bob", "cleo", "dora", "emil", "fritz", "gina"] {
            users.push(app.user(name).funded("100").await);
        }
        let keys = join_all(users.iter().map(|user| app.disabled_key(user, Tier::Mm))).await;
        let acts = users.iter().zip(&keys).map(|(user, one)| {
            let request = OwnerActRequest::Enable { keys: vec![one.caller.key.id] };
            let (app, key, market) = (&app, &key, &market);
            async move {
                key.buy(market, 0, "10").await;
                app.signed_act(user, &request).await
            }
        });
        let acts = join_all(acts).await;
        app.workers.execute(&app.ctx).await;
        app.run_workers().await;
        for ((user, one), act) in users.iter().zip(&keys).zip(&acts) {
            let done = app.stored_act(act.id).await;
            assert_eq!(done.status, OwnerActStatus::Done, "{done:?}");
            assert_eq!(app.ctx.chain.account_nonce(user.account).await.unwrap(), 1);
            let policy = app.ctx.chain.policy(user.account, one.caller.key.key_index).await.unwrap();
            assert!(policy.is_live(app.ctx.now().s()));
            // The new key trades at once.
            one.buy(&market, 1, "10").await;
        }
        app.run_workers().await;
        assert_eq!(app.open_trades().await, 0);
        let bought = app.rows().await;
        assert_eq!((bought.trades, bought.movements), (12, 12));
        app.assert_ledger_equals_chain().await;
    }
}

#[tokio::test]
async fn an_act_waits_for_its_turn_between_trades() {
    let Scene { app, ada, key, market } = Scene::new().await;
    let act = app.signed_act(&ada, &withdrawal(1)).await;
    let trade = key.buy(&market, 0, "10").await;
    app.workers.execute_once(&app.ctx).await.unwrap();
    assert_eq!(status(&app, &act).await, OwnerActStatus::Done);
    assert_eq!(app.status(trade.id).await, Status::Pending);
    let act = app.signed_act(&ada, &withdrawal(1)).await;
    app.workers.execute_once(&app.ctx).await.unwrap();
    assert_eq!(app.status(trade.id).await, Status::Executing, "the trade is next");
    assert_eq!(status(&app, &act).await, OwnerActStatus::Signed);
    app.run_workers().await;
    assert_eq!(status(&app, &act).await, OwnerActStatus::Done);
}

#[tokio::test]
async fn an_act_ends_when_its_block_is_final() {
    let scene = Scene::of(TestApp::with().confirmations(3).start().await).await;
    let Scene { app, ada, .. } = scene;
    let act = app.act(&ada, &withdrawal(100)).await;
    assert_eq!(act.status, OwnerActStatus::Sent);
    let receipt = owner_acts::find_receipt(&app.ctx, &act).await.unwrap().unwrap();
    assert_eq!(Some(receipt.tx_hash), act.tx_hash);
    app.mine(1).await;
    app.workers.execute(&app.ctx).await;
    assert_eq!(status(&app, &act).await, OwnerActStatus::Sent);
    app.mine(1).await;
    app.workers.execute(&app.ctx).await;
    assert_withdrawn_once(&app, &act).await;
}

#[tokio::test]
async fn acts_are_executed_on_a_real_node() {
    let Some(anvil) = Anvil::start() else { return };
    let scene = Scene::of(TestApp::with().over(anvil.provider.clone()).start().await).await;
    let Scene { app, ada, .. } = scene;
    let act = app.act(&ada, &withdrawal(100)).await;
    app.run_workers().await;
    assert_withdrawn_once(&app, &act).await;
}
