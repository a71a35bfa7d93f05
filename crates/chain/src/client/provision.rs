//! Batches that an owner of a smart account signs and a relayer sends. The first batch of an
//! account typically allows the Gate to move USDC and sets the policies of its keys.
//!
//! Call `prepare`, have any owner sign `UnsignedBatch::digest`, then call `relay`. The relayer
//! creates the account in the same transaction if it does not exist. A relayed batch consumes the
//! account's nonce, so the same batch cannot be relayed twice.

use alloy::providers::Provider;
use alloy_primitives::{Address, B256, Bytes, U256};

use super::batch::{Call, batch_digest};
use super::calls;
use super::chain::{Chain, Contracts};
use super::owner::AccountOwner;
use super::signer::Signer;
use super::state::SpendingLimits;
use super::transactions::Receipt;
use crate::error::ChainError;

/// The time for which an owner's signature is valid.
const SIGNATURE_LIFE_S: u64 = 3_600;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPolicy {
    /// The key's index among the account's policies.
    pub key_index: u32,
    pub limits: SpendingLimits,
}

/// A batch that waits for an owner's signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsignedBatch {
    /// The account's first owner, which determines the account's address.
    pub first_owner: AccountOwner,
    /// Distinguishes several accounts of the same first owner.
    pub salt: B256,
    /// The account's current owners. The signature of any one of them is enough.
    pub owners: Vec<AccountOwner>,
    pub account: Address,
    pub calls: Vec<Call>,
    /// The account's nonce for which the batch is valid.
    pub nonce: u64,
    /// The end of the batch's validity, in Unix seconds.
    pub deadline_s: u64,
    /// The digest to sign: with ECDSA, or with WebAuthn as the challenge.
    pub digest: B256,
}

/// Returns the calls with which an account allows the Gate to move its USDC and sets the policies
/// of its keys.
pub fn enabling_calls(contracts: &Contracts, policies: &[KeyPolicy]) -> Vec<Call> {
    // The allowance is unlimited, because the policies limit what the keys can spend.
    let approval = Call::new(contracts.usdc, calls::approve(contracts.gate, U256::MAX));
    let policies = policies
        .iter()
        .map(|policy| Call::new(contracts.gate, calls::set_policy(policy.key_index, policy.limits)));
    std::iter::once(approval).chain(policies).collect()
}

/// Returns the deadline of a batch created now: one hour after the later of the newest block and
/// `now_s` (Unix seconds). The newest block of a quiet chain may be hours old, and a chain may be
/// ahead of the caller's clock.
pub async fn signature_deadline_s(chain: &Chain, now_s: u64) -> Result<u64, ChainError> {
    Ok(chain.head().await?.timestamp_s.max(now_s).saturating_add(SIGNATURE_LIFE_S))
}

/// Prepares a batch of these calls for an owner's signature, at the account's current nonce.
pub async fn prepare(
    chain: &Chain,
    first_owner: AccountOwner,
    salt: B256,
    calls: Vec<Call>,
    deadline_s: u64,
) -> Result<UnsignedBatch, ChainError> {
    let account = chain.account_address(&first_owner, salt).await?;
    let nonce = chain.account_nonce(account).await?;
    // Before the account exists, its first owner is its only owner.
    let owners = chain.account_owners(account).await?.unwrap_or_else(|| vec![first_owner]);
    let digest = batch_digest(chain.chain_id(), account, &calls, nonce, deadline_s);
    Ok(UnsignedBatch { first_owner, salt, owners, account, calls, nonce, deadline_s, digest })
}

/// Returns the contract and the calldata that relay a signed batch, depending on whether the
/// account exists now.
pub async fn relaying(
    chain: &Chain,
    batch: &UnsignedBatch,
    signature: Bytes,
) -> Result<(Address, Bytes), ChainError> {
    let code = chain.provider().get_code_at(batch.account).await.map_err(ChainError::of_read)?;
    let UnsignedBatch { first_owner, salt, account, calls: inner, deadline_s, .. } = batch;
    // An account that does not exist yet is created in the same transaction.
    Ok(if code.is_empty() {
        let data = calls::create_and_execute(first_owner, *salt, inner, *deadline_s, signature);
        (chain.contracts().account_factory, data)
    } else {
        (*account, calls::execute_signed(inner, *deadline_s, signature))
    })
}

/// Relays a signed batch and waits for its receipt.
///
/// # Errors
///
/// As for [`Chain::transact`]. `Reverted` with `SignatureInvalid`, `DeadlinePassed` or the reason
/// of a call.
pub async fn relay(
    chain: &Chain,
    relayer: &Signer,
    batch: &UnsignedBatch,
    signature: Bytes,
) -> Result<Receipt, ChainError> {
    let (to, data) = relaying(chain, batch, signature).await?;
    chain.transact(relayer, Some(to), data).await
}

/// Provisions an account for a first owner whose key this process holds. Creates the account if
/// necessary, allows the Gate to move its USDC and sets the policies. Returns the account's
/// address. Safe to repeat. `now_s` is the caller's time in Unix seconds.
///
/// # Errors
///
/// As for [`relay`].
pub async fn provision(
    chain: &Chain,
    relayer: &Signer,
    owner: &Signer,
    salt: B256,
    policies: &[KeyPolicy],
    now_s: u64,
) -> Result<Address, ChainError> {
    let calls = enabling_calls(chain.contracts(), policies);
    let deadline_s = signature_deadline_s(chain, now_s).await?;
    let batch = prepare(chain, owner.owner(), salt, calls, deadline_s).await?;
    let signature = owner.sign_digest(batch.digest)?;
    relay(chain, relayer, &batch, signature).await?;
    Ok(batch.account)
}
