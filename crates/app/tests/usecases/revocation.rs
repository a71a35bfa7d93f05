//! Keys that were revoked or have expired: nothing more is signed with them, waiting trades end,
//! and the delegation ends on chain in the order of the lane's nonces.

use app::{delegations, keys};
use chain::{Policy, calls};
use domain::delegation::{Ceilings, DelegationEdit, Status as OnChain};
use domain::key::{LimitOverrides, Tier};
use domain::risk::RiskRefusal;
use domain::time::{HOUR_MS, MINUTE_MS};
use domain::trade::{KEY_ENDED, RiskRejection, State, Status};
use domain::{ErrorCode, Usdc};
use store::Store;
use store::delegations::DelegationChange;
use store::testing::sqlite;
use testkit::{Anvil, Fault, TestApp, TestKey, TestUser, key_of};

use crate::scene::{Scene, assert_refused};

async fn revoke(app: &TestApp, key: &TestKey) -> DelegationChange {
    keys::revoke(&app.ctx, key.caller.key.id).await.unwrap().on_chain
}

async fn change(app: &TestApp, change: &DelegationChange) -> DelegationChange {
    delegations::find(&app.ctx, change.id).await.unwrap().unwrap()
}

async fn policy(app: &TestApp, user: &TestUser, key: &TestKey) -> Policy {
    app.ctx.chain.policy(user.account, key.caller.key.key_index).await.unwrap()
}

const REJECTED: State = State::Rejected(RiskRejection { reason: RiskRefusal::DelegationInactive });

fn assert_ended_with_key(state: &State) {
    match state {
        State::Failed(failure) => {
            assert_eq!(
                (failure.code, failure.message.as_str()),
                (ErrorCode::WalletDelegationNotEnabled, KEY_ENDED)
            );
        }
        other => panic!("not failed: {other:?}"),
    }
}

store::on_each_engine! {
    /// The caller's row was read before the revocation, as in another process. The revocation must
    /// apply anyway.
    async fn a_revoked_key_cannot_trade_and_its_waiting_trades_end(store: Store) {
        let Scene { app, ada, key, market } = Scene::gated(store).await;
        let second = app.key(&ada, Tier::Mm).await;
        let signed = key.buy(&market, 0, "10").await;
        app.faults.next_send(Fault::LostRequest);
        app.workers.execute(&app.ctx).await;
        assert_eq!(app.status(signed.id).await, Status::Executing);
        let (waits, held) = (key.buy(&market, 0, "20").await, key.buy(&market, 0, "100").await);
        let others = second.buy(&market, 0, "10").await;
        revoke(&app, &key).await;
        assert!(key.caller.key.revoked_at.is_none());
        assert_refused(&app, key.buy(&market, 0, "10"), ErrorCode::ApiKeyRevoked).await;
        assert_refused(&app, key.buy(&market, 0, "100").idempotent("k").named("n"), ErrorCode::ApiKeyRevoked).await;

        app.workers.expire(&app.ctx).await;
        assert_eq!(app.trade(waits.id).await.state, REJECTED);
        assert_ended_with_key(&app.trade(held.id).await.state);
        assert_eq!(app.reserved(&ada).await, Usdc::from_whole(20), "of what was signed, and of the other key");
        app.advance_ms(app.ctx.config.resend_after_ms).await;
        app.run_workers().await;
        assert_eq!(app.status(signed.id).await, Status::Completed);
        assert_eq!(app.status(others.id).await, Status::Completed);
        assert_eq!((app.spent(&key).await, app.reserved(&ada).await), (Usdc::from_whole(10), Usdc::ZERO));
        app.assert_ledger_equals_chain().await;
    }

    async fn an_executor_rejects_trades_of_a_revoked_key(store: Store) {
        let Scene { app, ada, key, market } = Scene::gated(store).await;
        let waits = key.buy(&market, 0, "20").await;
        revoke(&app, &key).await;
        app.workers.execute(&app.ctx).await;
        assert_eq!(app.trade(waits.id).await.state, REJECTED);
        assert_eq!((app.spent(&key).await, app.reserved(&ada).await), (Usdc::ZERO, Usdc::ZERO));
        app.workers.synchronise(&app.ctx).await;
        app.assert_ledger_equals_chain().await;
    }

    async fn a_revocation_before_signing_stops_only_its_key(store: Store) {
        let Scene { app, ada, key, market } = Scene::gated(store).await;
        let second = app.key(&ada, Tier::Mm).await;
        let (trade, others) = (key.buy(&market, 0, "10").await, second.buy(&market, 0, "10").await);
        let signing = app.faults.hold("eth_getTransactionCount");
        let signs = async { app.workers.execute(&app.ctx).await };
        let revokes = async {
            signing.reached().await;
            assert_eq!(app.status(trade.id).await, Status::Validating);
            revoke(&app, &key).await;
            signing.release();
        };
        tokio::join!(signs, revokes);
        app.run_workers().await;
        assert_eq!(app.trade(trade.id).await.state, REJECTED);
        assert_eq!(app.status(others.id).await, Status::Completed);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_held_trade_of_a_revoked_key_cannot_be_confirmed(store: Store) {
        let Scene { app, ada, key, market } = Scene::gated(store).await;
        let second = app.key(&ada, Tier::Mm).await;
        let held = key.buy(&market, 0, "100").await;
        let token = key.token(&held);
        revoke(&app, &key).await;
        assert_eq!(key.confirm(&held, &token).await.unwrap_err().code, ErrorCode::ApiKeyRevoked);
        let refused = async || {
            let refusal = second.confirm(&held, &token).await.unwrap_err();
            assert_eq!(refusal.code, ErrorCode::WalletDelegationNotEnabled);
            assert_eq!(refusal.extensions["submission"], "not_submitted");
            assert_eq!(refusal.extensions["tradeId"], held.id.to_string());
        };
        refused().await;
        app.workers.expire(&app.ctx).await;
        assert_ended_with_key(&app.trade(held.id).await.state);
        refused().await;
        assert_eq!(second.confirm(&held, "x").await.unwrap_err().code, ErrorCode::ConfirmationTokenInvalid);
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }

    async fn an_expired_key_stops_like_a_revoked_one(store: Store) {
        let Scene { app, ada, market, .. } = Scene::gated(store).await;
        let expires_at = Some(app.ctx.now().plus_ms(MINUTE_MS));
        let overrides = LimitOverrides { high_value: Some(Usdc::from_whole(100)), ..LimitOverrides::default() };
        let key = app.issue(testkit_key(&ada, expires_at, overrides)).await.unwrap();
        app.enable(&ada, &key).await;
        let (waits, held) = (key.buy(&market, 0, "20").await, key.buy(&market, 0, "100").await);
        app.clock.advance(MINUTE_MS - 1);
        app.workers.expire(&app.ctx).await;
        assert_eq!(app.status(waits.id).await, Status::Pending);
        app.clock.advance(1);
        assert_refused(&app, key.buy(&market, 0, "10"), ErrorCode::ApiKeyExpired).await;
        app.run_workers().await;
        assert_eq!(app.trade(waits.id).await.state, REJECTED);
        assert_ended_with_key(&app.trade(held.id).await.state);
        assert_eq!((app.spent(&key).await, app.reserved(&ada).await), (Usdc::ZERO, Usdc::ZERO));
        app.assert_ledger_equals_chain().await;
    }

    async fn lost_trades_of_a_revoked_key_are_not_signed_again(store: Store) {
        let Scene { app, ada, key, market } = Scene::gated(store).await;
        let second = app.key(&ada, Tier::Mm).await;
        let gate = app.ctx.chain.contracts().gate;
        let (lost, others) = (key.buy(&market, 0, "10").await, second.buy(&market, 0, "10").await);
        // The guardian pauses the Gate while the batch is in flight, so it reverts as a whole.
        let held = app.faults.hold("eth_sendRawTransaction");
        let pauses = async {
            held.reached().await;
            app.send(&app.roles.guardian, gate, calls::set_paused(true)).await;
            held.release();
        };
        tokio::join!(async { app.workers.execute(&app.ctx).await }, pauses);
        revoke(&app, &key).await;
        app.send(&app.roles.guardian, gate, calls::set_paused(false)).await;
        app.run_workers().await;
        assert_eq!(app.status(others.id).await, Status::Completed);
        assert_ended_with_key(&app.trade(lost.id).await.state);
        assert_eq!(app.reserved(&ada).await, Usdc::ZERO);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_delegation_ends_on_chain_after_batches_signed_before(store: Store) {
        let Scene { app, ada, key, market } = Scene::on(store).await;
        let trade = key.buy(&market, 0, "10").await;
        app.faults.next_send(Fault::LostRequest);
        app.workers.execute(&app.ctx).await;
        let queued = revoke(&app, &key).await;
        assert_eq!((queued.status, queued.change), (OnChain::Queued, DelegationEdit::Revoke));
        assert!(policy(&app, &ada, &key).await.expiry_s > 0);
        app.advance_ms(app.ctx.config.resend_after_ms).await;
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
        assert_eq!(policy(&app, &ada, &key).await.expiry_s, 0);
        let mined = change(&app, &queued).await;
        assert_eq!(mined.status, OnChain::Mined);
        let receipt = app.ctx.chain.receipt(mined.tx_hash.unwrap()).await.unwrap().unwrap();
        assert!(receipt.success);
        app.assert_ledger_equals_chain().await;
    }

    async fn a_revocation_is_sent_once_after_a_crash_anywhere(store: Store) {
        let Scene { mut app, ada, .. } = Scene::on(store).await;
        for (method, fault) in [
            ("eth_call", Fault::LostRequest),
            ("eth_estimateGas", Fault::LostRequest),
            ("eth_feeHistory", Fault::LostRequest),
            ("eth_sendRawTransaction", Fault::LostRequest),
            ("eth_sendRawTransaction", Fault::LostAnswer),
            ("eth_getTransactionReceipt", Fault::LostRequest),
        ] {
            let key = app.key(&ada, Tier::Mm).await;
            let sent = app.faults.sent().len();
            let queued = revoke(&app, &key).await;
            app.faults.next(method, fault);
            drop(app.workers.try_run(&app.ctx).await);
            app.restart(&format!("{method} {fault:?}")).await;
            app.run_workers().await;
            // The next tick finds the resent transaction mined.
            app.run_workers().await;
            assert_eq!(change(&app, &queued).await.status, OnChain::Mined, "{method} {fault:?}");
            assert_eq!(policy(&app, &ada, &key).await.expiry_s, 0);
            let mut sent = app.faults.sent().split_off(sent);
            sent.dedup();
            assert_eq!(sent.len(), 1, "{method} {fault:?}");
        }
    }

    async fn a_key_is_revoked_without_a_node_and_on_chain_later(store: Store) {
        let Scene { app, ada, key, .. } = Scene::on(store).await;
        for method in ["eth_call", "eth_estimateGas", "eth_getBlockByNumber"] {
            app.faults.always(method, Fault::LostRequest);
        }
        let queued = revoke(&app, &key).await;
        let authenticated = keys::authenticate(&app.ctx, Some(&key.plaintext), [192, 0, 2, 1].into()).await;
        assert_eq!(authenticated.unwrap_err().code, ErrorCode::ApiKeyRevoked);
        drop(app.workers.try_run(&app.ctx).await);
        assert_eq!(change(&app, &queued).await.status, OnChain::Queued);
        app.faults.heal();
        app.run_workers().await;
        assert_eq!(change(&app, &queued).await.status, OnChain::Mined);
        assert_eq!(policy(&app, &ada, &key).await.expiry_s, 0);
    }

    async fn revoking_a_key_again_is_idempotent(store: Store) {
        let Scene { app, ada, key, .. } = Scene::on(store).await;
        let queued = revoke(&app, &key).await;
        assert_eq!(revoke(&app, &key).await, queued);
        app.run_workers().await;
        let again = revoke(&app, &key).await;
        assert_ne!(again.id, queued.id);
        let sent = app.faults.sent().len();
        app.run_workers().await;
        assert_eq!(change(&app, &again).await.status, OnChain::NotNeeded);
        let never = app.disabled_key(&ada, Tier::Mm).await;
        let never = revoke(&app, &never).await;
        app.run_workers().await;
        assert_eq!(change(&app, &never).await.status, OnChain::NotNeeded);
        assert_eq!(app.faults.sent().len(), sent);
    }

    async fn a_change_the_gate_would_reject_is_retried_without_gas(store: Store) {
        let Scene { app, ada, key, .. } = Scene::on(store).await;
        let executor = app.roles.executors[0].address();
        let gate = app.ctx.chain.contracts().gate;
        app.send(&app.roles.guardian, gate, calls::lower_executor(executor, 0)).await;
        let queued = revoke(&app, &key).await;
        let sent = app.faults.sent().len();
        for _ in 0..3 {
            app.run_workers().await;
        }
        assert_eq!(app.faults.sent().len(), sent);
        let refused = change(&app, &queued).await;
        assert_eq!((refused.status, refused.error.as_deref()), (OnChain::Queued, Some("notAuthorized")));
        app.send(&app.roles.owner, gate, calls::propose_executor(executor, u64::MAX)).await;
        app.send(&app.roles.owner, gate, calls::enact_executor(executor)).await;
        app.advance_ms(MINUTE_MS).await;
        app.run_workers().await;
        assert_eq!(change(&app, &queued).await.status, OnChain::Mined);
        assert_eq!(policy(&app, &ada, &key).await.expiry_s, 0);
    }

    async fn a_delegation_is_reduced_and_never_raised(store: Store) {
        let Scene { app, ada, key, .. } = Scene::on(store).await;
        let id = key.caller.key.id;
        let before = policy(&app, &ada, &key).await;
        let ends = app.ctx.now().plus_ms(HOUR_MS);
        let ceilings = |per_trade, daily, expires_at| DelegationEdit::Reduce(Ceilings { per_trade, daily, expires_at });
        let lower = ceilings(Some(Usdc::from_whole(7)), None, Some(ends));
        let queued = delegations::queue(&app.ctx, id, lower).await.unwrap();
        app.run_workers().await;
        assert_eq!(change(&app, &queued).await.status, OnChain::Mined);
        let after = Policy {
            per_trade_usdc_atomic: 7_000_000,
            sale_per_trade_usdc_atomic: 70_000_000,
            expiry_s: ends.s(),
            ..before
        };
        assert_eq!(policy(&app, &ada, &key).await, after);

        let sent = app.faults.sent().len();
        let higher = ceilings(Some(Usdc::from_whole(8)), Some(Usdc::from_whole(10_000_000)), None);
        let queued = delegations::queue(&app.ctx, id, higher).await.unwrap();
        app.run_workers().await;
        assert_eq!(change(&app, &queued).await.status, OnChain::NotNeeded);
        assert_eq!((policy(&app, &ada, &key).await, app.faults.sent().len()), (after, sent));
        let nothing = delegations::queue(&app.ctx, id, ceilings(None, None, None)).await.unwrap_err();
        assert_eq!(nothing.code, ErrorCode::ValidationFailed);
    }
}

/// The node's mempool holds a batch back. A second transaction with the same nonce would be
/// underpriced.
#[tokio::test]
async fn a_revocation_waits_in_the_pool_behind_an_unmined_batch() {
    let Some(anvil) = Anvil::start() else { return };
    let app = TestApp::with().over(anvil.provider.clone()).on(sqlite().await).start().await;
    let Scene { app, ada, key, market } = Scene::of(app).await;
    anvil.mine_by_itself(false).await;
    let trade = key.buy(&market, 0, "10").await;
    app.run_workers().await;
    let queued = revoke(&app, &key).await;
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, Status::Executing);
    assert_eq!(change(&app, &queued).await.status, OnChain::Sent);
    app.mine(1).await;
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, Status::Completed);
    assert_eq!(change(&app, &queued).await.status, OnChain::Mined);
    assert_eq!(policy(&app, &ada, &key).await.expiry_s, 0);
    app.assert_ledger_equals_chain().await;
}

fn testkit_key(
    user: &TestUser,
    expires_at: Option<domain::Timestamp>,
    overrides: LimitOverrides,
) -> keys::IssueKey {
    keys::IssueKey { expires_at, overrides, ..key_of(user, Tier::Enterprise) }
}
