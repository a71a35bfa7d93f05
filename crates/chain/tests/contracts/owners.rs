//! Tests of accounts with several owners.

use alloy_primitives::{Address, B256, Bytes};
use chain::{AccountOwner, Call, ChainError, Revert, calls, provision};
use p256::ecdsa::SigningKey;

use crate::passkey::{assert_challenge, owner as passkey_owner};
use crate::world::{Node, World, key};

on_both_nodes!(
    a_lost_device_is_replaced,
    owners_are_known_before_and_after_the_account_exists,
    rejected_changes_have_their_reason,
    an_overtaken_relayer_of_the_first_batch_does_not_fail,
);

/// Relays calls of the account of `key(9)`, signed by `sign`.
async fn relay(
    world: &World,
    calls: Vec<Call>,
    sign: impl FnOnce(B256) -> Bytes,
) -> Result<Vec<AccountOwner>, ChainError> {
    let batch = world.prepare(key(9).owner(), calls).await;
    let signature = sign(batch.digest);
    provision::relay(&world.chain, &world.relayer, &batch, signature).await?;
    Ok(world.chain.account_owners(batch.account).await.unwrap().unwrap())
}

fn add(account: Address, owner: &AccountOwner) -> Vec<Call> {
    vec![Call::new(account, calls::add_owner(owner))]
}

fn remove(account: Address, owner: &AccountOwner) -> Vec<Call> {
    vec![Call::new(account, calls::remove_owner(owner))]
}

async fn a_lost_device_is_replaced(node: Node) {
    let world = World::new(node).await;
    let account = world.account(9, 0).await;
    let passkey = SigningKey::from_slice(&[42; 32]).unwrap();
    let (first, second) = (key(9).owner(), passkey_owner(&passkey));
    let by_passkey = |digest: B256| {
        assert_challenge(&passkey, digest, false).to_signature(&passkey_owner(&passkey)).unwrap()
    };
    let by_first = |digest: B256| key(9).sign_digest(digest).unwrap();

    assert_eq!(relay(&world, add(account, &second), by_first).await.unwrap(), [first, second]);
    assert_eq!(relay(&world, remove(account, &first), by_passkey).await.unwrap(), [second]);
    let refused = relay(&world, vec![], by_first).await;
    assert_eq!(refused, Err(ChainError::Reverted(Revert::SignatureInvalid)));
    assert_eq!(relay(&world, add(account, &key(8).owner()), by_passkey).await.unwrap().len(), 2);
    // The address still depends on the first owner, although it has been removed.
    assert_eq!(world.chain.account_address(&first, B256::ZERO).await.unwrap(), account);
}

async fn owners_are_known_before_and_after_the_account_exists(node: Node) {
    let world = World::new(node).await;
    let batch = world.prepare(key(9).owner(), vec![]).await;
    assert_eq!(world.chain.account_owners(batch.account).await.unwrap(), None);
    assert_eq!(batch.owners, [key(9).owner()]);
    let account = world.account(9, 0).await;
    assert_eq!(world.chain.account_owners(account).await.unwrap(), Some(vec![key(9).owner()]));
    let by_first = |digest: B256| key(9).sign_digest(digest).unwrap();
    relay(&world, add(account, &key(8).owner()), by_first).await.unwrap();
    assert_eq!(world.prepare(key(9).owner(), vec![]).await.owners, [key(9).owner(), key(8).owner()]);
}

async fn rejected_changes_have_their_reason(node: Node) {
    let world = World::new(node).await;
    let account = world.account(9, 0).await;
    let by_first = |digest: B256| key(9).sign_digest(digest).unwrap();
    let off_curve = AccountOwner::Passkey { x: B256::repeat_byte(1), y: B256::repeat_byte(2) };
    for (change, revert) in [
        (add(account, &key(9).owner()), Revert::OwnerExists),
        (add(account, &AccountOwner::Eoa(Address::ZERO)), Revert::OwnerInvalid),
        (add(account, &off_curve), Revert::OwnerInvalid),
        (remove(account, &key(8).owner()), Revert::OwnerUnknown),
        (remove(account, &key(9).owner()), Revert::LastOwner),
    ] {
        assert_eq!(relay(&world, change, by_first).await, Err(ChainError::Reverted(revert)));
    }
    let more = (10..25).flat_map(|n| add(account, &key(n).owner()));
    assert_eq!(relay(&world, more.collect(), by_first).await.unwrap().len(), 16);
    let refused = relay(&world, add(account, &key(25).owner()), by_first).await;
    assert_eq!(refused, Err(ChainError::Reverted(Revert::OwnerLimitReached)));
}

async fn an_overtaken_relayer_of_the_first_batch_does_not_fail(node: Node) {
    let world = World::new(node).await;
    let batch = world.prepare(key(9).owner(), vec![]).await;
    let signature = key(9).sign_digest(batch.digest).unwrap();
    let (to, data) = provision::relaying(&world.chain, &batch, signature).await.unwrap();
    world.send(&key(8), to, data.clone()).await.unwrap();
    world.send(&world.relayer, to, data).await.unwrap();
    assert_eq!(world.chain.account_nonce(batch.account).await.unwrap(), 1);
}
