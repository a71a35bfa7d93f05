//! Tests of smart accounts: addresses, signed batches and policies.

use alloy_primitives::{B256, U256};
use chain::{AccountOwner, Call, ChainError, Policy, Revert, batch_digest, calls, provision};

use crate::world::{CLOSE_S, KEY, Node, START_S, USDC, World, key, limits, policy};

on_both_nodes!(
    provisioning_prepares_an_account_for_trading,
    provisioning_again_goes_through_the_account,
    computed_digest_equals_the_accounts,
    batch_signed_by_a_stranger_is_rejected,
    batch_is_rejected_after_its_deadline,
    relayed_batch_cannot_be_relayed_again,
    executor_can_only_lower_and_revoke_a_policy,
);

async fn provisioning_prepares_an_account_for_trading(node: Node) {
    let world = World::new(node).await;
    let owner = key(9);
    let address = world.chain.account_address(&owner.owner(), B256::ZERO).await.unwrap();
    let before = world.chain.account_state(address, KEY).await.unwrap();
    assert!(!before.provisioned);
    assert_eq!((before.gate_allowance_atomic, before.policy), (U256::ZERO, Policy::default()));

    let account = world.account(9, 50 * USDC).await;
    assert_eq!(account, address);
    let after = world.chain.account_state(account, KEY).await.unwrap();
    assert!(after.provisioned);
    assert_eq!(after.usdc_balance_atomic, U256::from(50 * USDC));
    assert_eq!(after.gate_allowance_atomic, U256::MAX);
    assert_eq!(after.policy.per_trade_usdc_atomic, 1_000 * USDC);
    assert_eq!(after.policy.daily_usdc_atomic, 5_000 * USDC);
    assert!(after.policy.is_live(START_S) && !after.policy.is_live(u64::from(CLOSE_S) + 86_401));
    assert_eq!(world.chain.account_nonce(account).await.unwrap(), 1);
}

async fn provisioning_again_goes_through_the_account(node: Node) {
    let world = World::new(node).await;
    let account = world.account(9, 0).await;
    let policies = [policy(8, 2 * USDC, 3 * USDC)];
    let again =
        provision::provision(&world.chain, &world.relayer, &key(9), B256::ZERO, &policies, 0).await.unwrap();
    assert_eq!(again, account);
    assert_eq!(world.chain.policy(account, 8).await.unwrap().daily_usdc_atomic, 3 * USDC);
    assert_eq!(world.chain.account_nonce(account).await.unwrap(), 2);
}

async fn computed_digest_equals_the_accounts(node: Node) {
    let world = World::new(node).await;
    let account = world.account(9, 0).await;
    let one = Call { target: key(1).address(), value: U256::from(3), data: vec![1, 2, 3].into() };
    let two = Call::new(key(2).address(), calls::freeze(1));
    for calls in [vec![], vec![one.clone()], vec![one, two]] {
        let there = world.chain.digest_of(account, &calls, 5, 1_234).await.unwrap();
        assert_eq!(batch_digest(world.chain.chain_id(), account, &calls, 5, 1_234), there);
    }
}

async fn batch_signed_by_a_stranger_is_rejected(node: Node) {
    let world = World::new(node).await;
    let batch = world.prepare(key(9).owner(), vec![]).await;
    let signature = key(8).sign_digest(batch.digest).unwrap();
    let refused = provision::relay(&world.chain, &world.relayer, &batch, signature).await;
    assert_eq!(refused, Err(ChainError::Reverted(Revert::SignatureInvalid)));
    let nobody = AccountOwner::Eoa(alloy_primitives::Address::ZERO);
    let batch = world.prepare(nobody, vec![]).await;
    let signature = key(8).sign_digest(batch.digest).unwrap();
    let refused = provision::relay(&world.chain, &world.relayer, &batch, signature).await;
    assert_eq!(refused, Err(ChainError::Reverted(Revert::OwnerInvalid)));
}

async fn batch_is_rejected_after_its_deadline(node: Node) {
    let world = World::new(node).await;
    let batch = world.prepare(key(9).owner(), vec![]).await;
    let signature = key(9).sign_digest(batch.digest).unwrap();
    world.advance(3_700).await;
    let refused = provision::relay(&world.chain, &world.relayer, &batch, signature).await;
    assert_eq!(refused, Err(ChainError::Reverted(Revert::DeadlinePassed)));
}

async fn relayed_batch_cannot_be_relayed_again(node: Node) {
    let world = World::new(node).await;
    let batch = world.prepare(key(9).owner(), vec![]).await;
    let signature = key(9).sign_digest(batch.digest).unwrap();
    provision::relay(&world.chain, &world.relayer, &batch, signature.clone()).await.unwrap();
    let refused = provision::relay(&world.chain, &world.relayer, &batch, signature).await;
    assert_eq!(refused, Err(ChainError::Reverted(Revert::SignatureInvalid)));
}

async fn executor_can_only_lower_and_revoke_a_policy(node: Node) {
    let world = World::new(node).await;
    let account = world.account(9, 0).await;
    let lower = calls::reduce_policy(account, KEY, limits(10 * USDC, 9_000 * USDC, CLOSE_S));
    world.gate(&world.executor, lower.clone()).await.unwrap();
    let policy = world.chain.policy(account, KEY).await.unwrap();
    assert_eq!(policy.per_trade_usdc_atomic, 10 * USDC);
    assert_eq!(policy.daily_usdc_atomic, 5_000 * USDC);
    assert_eq!(policy.expiry_s, u64::from(CLOSE_S));

    let events = world.gate(&world.executor, calls::revoke_policy(account, KEY)).await.unwrap();
    assert!(
        matches!(events[..], [chain::EventKind::PolicySet { key_index: KEY, expiry_s: 0, .. }]),
        "{events:?}"
    );
    assert_eq!(world.chain.policy(account, KEY).await.unwrap().expiry_s, 0);
    for data in [lower, calls::revoke_policy(account, KEY)] {
        assert_eq!(world.gate(&world.relayer, data).await, Err(Revert::NotAuthorized));
    }
}
