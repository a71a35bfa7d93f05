//! How a smart account comes to be and gets its delegations: its owner signs one batch (the Gate may move
//! USDC, the keys' policies), and the relayer carries it, making the account in the same transaction if it is
//! not there yet.
//!
//! `prepare`, then the owner's signature over `Batch::digest`, then `relay`. A batch that was relayed is
//! spent with its nonce; the same one again is refused.

use alloy::providers::Provider;
use alloy_primitives::{Address, B256, Bytes, U256};

use super::batch::{Call, batch_digest};
use super::calls;
use super::chain::{Chain, Contracts};
use super::error::ChainError;
use super::owner::Owner;
use super::signer::Signer;
use super::transactions::Receipt;

/// How long an owner's signature stays good.
const SIGNATURE_LIFE_S: u64 = 3_600;

/// The caps of one API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPolicy {
    /// The key's index in the account's policies.
    pub key_index: u32,
    /// Cap on one trade, below 2^44.
    pub per_trade_usdc_atomic: u64,
    /// Cap on a window of 24 hours, below 2^44.
    pub daily_usdc_atomic: u64,
    /// When the delegation ends, Unix seconds.
    pub expiry_s: u32,
}

/// A batch that waits for its owner's signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Whose account.
    pub owner: Owner,
    /// Which of the owner's accounts.
    pub salt: B256,
    /// The account's address.
    pub account: Address,
    /// What the account is to do.
    pub calls: Vec<Call>,
    /// The account's nonce that it is for.
    pub nonce: u64,
    /// Until when it may be relayed, Unix seconds.
    pub deadline_s: u64,
    /// What the owner signs: ECDSA over it, or WebAuthn with it as the challenge.
    pub digest: B256,
}

/// The calls by which an account lets the Gate move its USDC and its keys spend it.
pub fn enabling_calls(contracts: &Contracts, policies: &[KeyPolicy]) -> Vec<Call> {
    let approval = Call::new(contracts.usdc, calls::approve(contracts.gate, U256::MAX));
    let policies = policies.iter().map(|policy| {
        let KeyPolicy { key_index, per_trade_usdc_atomic, daily_usdc_atomic, expiry_s } = *policy;
        Call::new(
            contracts.gate,
            calls::set_policy(key_index, per_trade_usdc_atomic, daily_usdc_atomic, expiry_s),
        )
    });
    std::iter::once(approval).chain(policies).collect()
}

/// The deadline of a batch that is made now, an hour ahead. It counts from the later of the newest block and `now_s` (Unix
/// seconds): a quiet chain's newest block may be hours old, and a chain may be ahead of the caller's clock.
///
/// # Errors
/// What a read gives.
pub async fn signature_deadline_s(chain: &Chain, now_s: u64) -> Result<u64, ChainError> {
    Ok(chain.head().await?.timestamp_s.max(now_s).saturating_add(SIGNATURE_LIFE_S))
}

/// Makes a batch of these calls ready for the owner's signature, at the account's present nonce.
///
/// # Errors
/// What a read gives.
pub async fn prepare(
    chain: &Chain,
    owner: Owner,
    salt: B256,
    calls: Vec<Call>,
    deadline_s: u64,
) -> Result<Batch, ChainError> {
    let account = chain.account_address(&owner, salt).await?;
    let nonce = chain.account_nonce(account).await?;
    let digest = batch_digest(chain.chain_id(), account, &calls, nonce, deadline_s);
    Ok(Batch { owner, salt, account, calls, nonce, deadline_s, digest })
}

/// The contract and the calldata that relay a signed batch, as the chain stands now.
///
/// # Errors
/// What a read gives.
pub async fn relaying(
    chain: &Chain,
    batch: &Batch,
    signature: Bytes,
) -> Result<(Address, Bytes), ChainError> {
    let code = chain.provider().get_code_at(batch.account).await.map_err(ChainError::of_read)?;
    let Batch { owner, salt, account, calls: inner, deadline_s, .. } = batch;
    Ok(if code.is_empty() {
        let data = calls::create_and_execute(owner, *salt, inner, *deadline_s, signature);
        (chain.contracts().account_factory, data)
    } else {
        (*account, calls::execute_signed(inner, *deadline_s, signature))
    })
}

/// Relays a signed batch and waits for it.
///
/// # Errors
/// `Reverted` with `SignatureInvalid`, `NonceInvalid`, `DeadlinePassed` or what the calls gave; else as
/// [`Chain::transact`].
pub async fn relay(
    chain: &Chain,
    relayer: &Signer,
    batch: &Batch,
    signature: Bytes,
) -> Result<Receipt, ChainError> {
    let (to, data) = relaying(chain, batch, signature).await?;
    chain.transact(relayer, Some(to), data).await
}

/// The whole path for an owner whose key is at hand: makes the account if needed, lets the Gate move its USDC
/// and sets the policies. Gives the account's address. Again is harmless. `now_s` is the caller's time, Unix seconds.
///
/// # Errors
/// As [`relay`].
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
