//! Smart accounts: their address is known before they exist, and one batch signed by an owner
//! deploys and enables them.
//!
//! The chain decides who owns an account. Owners are read from it whenever they matter; the
//! database only caches the last result.

use alloy_primitives::{B256, Bytes, U256};
use chain::provision::{self, KeyPolicy, UnsignedBatch};
use chain::{AccountOwner, Call, ChainError, Receipt, Revert, Signer, calls};
use domain::ids::UserId;
use domain::key::Environment;
use domain::limits::sale_cap;
use domain::{ErrorCode, Usdc};
use serde_json::json;
use store::audit_log::{Act, note};
use store::keys::Key;
use store::users::{Account, User};

use crate::audit_log::around;
use crate::{AppError, Ctx};

/// The lifetime of a delegation whose key does not expire earlier: one year.
const DELEGATION_S: u64 = 365 * 24 * 3_600;
/// The contracts' maximum number of owners per account.
const MAX_OWNERS: usize = 16;
/// The maximum number of attempts to sign a batch whose nonce another batch of the account used
/// first.
const SIGN_ATTEMPTS: u32 = 20;
/// The largest cap that the contracts can store (44 bits).
const MAX_POLICY_CAP: u64 = (1 << 44) - 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerChange {
    Add(AccountOwner),
    Remove(AccountOwner),
}

impl OwnerChange {
    pub const fn owner(&self) -> AccountOwner {
        match self {
            Self::Add(owner) | Self::Remove(owner) => *owner,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchPurpose {
    /// Deploy the account and enable keys.
    Enable,
    AddOwner,
    RemoveOwner,
}

impl BatchPurpose {
    /// The action in the audit log.
    const fn as_action(self) -> &'static str {
        match self {
            Self::Enable => "delegation.enable",
            Self::AddOwner => "account.owner.add",
            Self::RemoveOwner => "account.owner.remove",
        }
    }
}

impl From<OwnerChange> for BatchPurpose {
    fn from(change: OwnerChange) -> Self {
        match change {
            OwnerChange::Add(_) => Self::AddOwner,
            OwnerChange::Remove(_) => Self::RemoveOwner,
        }
    }
}

/// Adds a user and the account whose first owner is `owner`. The account's address depends only on
/// that owner and the user's id.
pub async fn create_user(ctx: &Ctx, name: &str, owner: &AccountOwner) -> Result<(User, Account), AppError> {
    if name.is_empty() || name.chars().count() > 100 || name.contains('\0') {
        return Err(AppError::field("/name", "must have 1 to 100 characters"));
    }
    let user = User { id: UserId(ctx.uuid()), name: name.to_owned(), created_at: ctx.now() };
    let salt = B256::left_padding_from(user.id.0.as_bytes());
    let address = ctx.chain.account_address(owner, salt).await?;
    let account =
        Account { user_id: user.id, address, first_owner: owner.to_string(), salt, reserved: Usdc::ZERO };
    ctx.store
        .write((user.clone(), account.clone()), |tx, (user, account)| {
            Box::pin(async move {
                store::users::insert(tx, user).await?;
                store::users::insert_account(tx, account, user.created_at).await?;
                let made =
                    json!({ "name": user.name, "address": account.address, "owner": account.first_owner });
                note(tx, Act::new("user.create", format!("user:{}", user.id)).after(made));
                Ok(())
            })
        })
        .await?;
    Ok((user, account))
}

/// Returns the on-chain policy for a key's limits.
///
/// The chain's 24-hour window starts with the first spend after the last window, so its daily cap
/// is looser. The exact rolling cap is enforced by this service.
pub fn policy_of(key: &Key, now_s: u64) -> KeyPolicy {
    let limits = key.limits();
    let longest = now_s + DELEGATION_S;
    let expiry_s = key.expires_at.map_or(longest, |at| at.s().min(longest));
    let cap = |usdc: Usdc| usdc.atomic().min(MAX_POLICY_CAP);
    KeyPolicy {
        key_index: key.key_index,
        limits: chain::SpendingLimits {
            per_trade_usdc_atomic: cap(limits.per_trade),
            daily_usdc_atomic: cap(limits.daily),
            sale_per_trade_usdc_atomic: cap(sale_cap(limits.per_trade)),
            sale_daily_usdc_atomic: cap(sale_cap(limits.daily)),
            expiry_s: u32::try_from(expiry_s).unwrap_or(u32::MAX),
        },
    }
}

/// Prepares the batch with which an owner deploys the account if needed, lets the Gate move its
/// USDC and enables these keys.
///
/// The content depends only on the keys and `deadline_s`. So the batch that an owner signed can be
/// rebuilt from its deadline. By default the deadline is in an hour.
pub async fn batch_to_enable(
    ctx: &Ctx,
    user_id: UserId,
    keys: &[Key],
    deadline_s: Option<u64>,
) -> Result<UnsignedBatch, AppError> {
    let deadline_s = deadline_or_default(ctx, deadline_s).await?;
    let policies: Vec<KeyPolicy> = keys.iter().map(|key| policy_of(key, deadline_s)).collect();
    let calls = provision::enabling_calls(ctx.chain.contracts(), &policies);
    prepare(ctx, user_id, calls, deadline_s).await
}

/// Prepares the batch with which an owner adds or removes an owner. Like that of
/// [`batch_to_enable`], it can be rebuilt from its deadline.
///
/// # Errors
/// A field error of `/owner` if the contract would reject the change.
pub async fn batch_to_change_owners(
    ctx: &Ctx,
    user_id: UserId,
    change: OwnerChange,
    deadline_s: Option<u64>,
) -> Result<UnsignedBatch, AppError> {
    let deadline_s = deadline_or_default(ctx, deadline_s).await?;
    let address = account_of(ctx, user_id).await?.address;
    let data = match &change {
        OwnerChange::Add(owner) => calls::add_owner(owner),
        OwnerChange::Remove(owner) => calls::remove_owner(owner),
    };
    let batch = prepare(ctx, user_id, vec![Call::new(address, data)], deadline_s).await?;
    let reject = |detail| Err(AppError::field("/owner", detail));
    match change {
        OwnerChange::Add(owner) if batch.owners.contains(&owner) => reject("must not be an owner already"),
        OwnerChange::Add(_) if batch.owners.len() >= MAX_OWNERS => {
            reject("must not be added: the account has the maximum of 16 owners")
        }
        OwnerChange::Remove(owner) if !batch.owners.contains(&owner) => reject("must be an owner"),
        OwnerChange::Remove(_) if batch.owners.len() == 1 => reject("must not be the only owner"),
        _ => Ok(batch),
    }
}

async fn prepare(
    ctx: &Ctx,
    user_id: UserId,
    calls: Vec<Call>,
    deadline_s: u64,
) -> Result<UnsignedBatch, AppError> {
    let account = account_of(ctx, user_id).await?;
    Ok(provision::prepare(&ctx.chain, first_owner_of(&account)?, account.salt, calls, deadline_s).await?)
}

async fn deadline_or_default(ctx: &Ctx, deadline_s: Option<u64>) -> Result<u64, AppError> {
    match deadline_s {
        Some(deadline_s) => Ok(deadline_s),
        None => Ok(provision::signature_deadline_s(&ctx.chain, ctx.now().s()).await?),
    }
}

/// Relays a batch that one of the account's owners has signed. `purpose` is the action in the audit
/// log.
///
/// # Errors
/// A field error of `/signature` if it is not from a current owner over this batch.
pub async fn relay(
    ctx: &Ctx,
    relayer: &Signer,
    user_id: UserId,
    purpose: BatchPurpose,
    batch: &UnsignedBatch,
    signature: Bytes,
) -> Result<Receipt, AppError> {
    let calls: Vec<String> =
        batch.calls.iter().map(|call| format!("{} {}", call.target, call.data)).collect();
    let signer =
        AccountOwner::of_signature(&signature, batch.digest).filter(|owner| batch.owners.contains(owner));
    let Some(signer) = signer else {
        return Err(AppError::field(
            "/signature",
            "must be the signature of a current owner over this batch",
        ));
    };
    let signed = json!({ "digest": batch.digest.to_string(), "calls": calls, "signer": signer });
    let act = Act::new(purpose.as_action(), format!("account:{}", batch.account)).after(signed);
    let relayed = async { Ok(provision::relay(&ctx.chain, relayer, batch, signature).await?) };
    let receipt =
        around(ctx, act, relayed, |receipt: &Receipt| json!({ "txHash": receipt.tx_hash.to_string() }))
            .await?;
    // The batch may contain any call, so its purpose does not show whether owners changed. Read
    // them again.
    owners(ctx, user_id).await?;
    Ok(receipt)
}

/// Prepares, signs and relays a batch with an EOA owner whose key is available (development and
/// tests).
///
/// If several batches of one account are signed concurrently, the chain executes only one. The
/// others are prepared and signed again, so that success always means that the batch was executed.
async fn sign_and_relay<F: Future<Output = Result<UnsignedBatch, AppError>>>(
    ctx: &Ctx,
    relayer: &Signer,
    owner: &Signer,
    prepare: impl Fn() -> F,
) -> Result<(UnsignedBatch, Receipt), AppError> {
    let mut attempt = 1;
    loop {
        let batch = prepare().await?;
        let signature = owner.sign_digest(batch.digest)?;
        match provision::relay(&ctx.chain, relayer, &batch, signature).await {
            Ok(receipt) => return Ok((batch, receipt)),
            Err(error) if attempt < SIGN_ATTEMPTS && was_overtaken(ctx, &batch, &error).await? => {
                attempt += 1
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Deploys the account if needed and enables these keys, signed by an EOA owner whose key is
/// available. In production an owner signs the batch that [`batch_to_enable`] returns.
pub async fn enable_keys(
    ctx: &Ctx,
    relayer: &Signer,
    owner: &Signer,
    user_id: UserId,
    keys: &[Key],
) -> Result<(UnsignedBatch, Receipt), AppError> {
    sign_and_relay(ctx, relayer, owner, || batch_to_enable(ctx, user_id, keys, None)).await
}

/// Adds or removes an owner, signed by an EOA owner whose key is available. In production an owner
/// signs the batch that [`batch_to_change_owners`] returns.
pub async fn change_owners(
    ctx: &Ctx,
    relayer: &Signer,
    owner: &Signer,
    user_id: UserId,
    change: OwnerChange,
) -> Result<(UnsignedBatch, Receipt), AppError> {
    let prepare = || batch_to_change_owners(ctx, user_id, change, None);
    let address = account_of(ctx, user_id).await?.address;
    let changed = json!({ "owner": change.owner(), "signer": owner.owner() });
    let act =
        Act::new(BatchPurpose::from(change).as_action(), format!("account:{address:#x}")).after(changed);
    let tx_hash = |(_, receipt): &(UnsignedBatch, Receipt)| json!({ "txHash": receipt.tx_hash.to_string() });
    let done = around(ctx, act, sign_and_relay(ctx, relayer, owner, prepare), tx_hash).await?;
    owners(ctx, user_id).await?;
    Ok(done)
}

/// Returns whether a batch was rejected because another batch of the account used its nonce.
async fn was_overtaken(ctx: &Ctx, batch: &UnsignedBatch, error: &ChainError) -> Result<bool, AppError> {
    let is_refused = matches!(error, ChainError::Reverted(Revert::SignatureInvalid | Revert::Other(_)));
    Ok(is_refused && ctx.chain.account_nonce(batch.account).await? > batch.nonce)
}

/// Mints test USDC to an account, signed by `minter`. Only works on test chains.
pub async fn fund(ctx: &Ctx, minter: &Signer, user_id: UserId, amount: Usdc) -> Result<Receipt, AppError> {
    if ctx.config.environment == Environment::Live {
        return Err(AppError::new(ErrorCode::ValidationFailed)
            .detail("Real USDC cannot be minted. Send USDC to the account instead."));
    }
    let address = account_of(ctx, user_id).await?.address;
    let mint = calls::mint(address, U256::from(amount.atomic()));
    let act = Act::new("account.fund", format!("user:{user_id}"));
    let act = act.after(json!({ "address": address.to_string(), "usdcAtomic": amount.to_string() }));
    let minted = async { Ok(ctx.chain.transact(minter, Some(ctx.chain.contracts().usdc), mint).await?) };
    around(ctx, act, minted, |receipt: &Receipt| json!({ "txHash": receipt.tx_hash.to_string() })).await
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owners {
    pub account: Account,
    /// The account is deployed on chain. If not, its first owner is the only one.
    pub provisioned: bool,
    /// In the chain's order.
    pub owners: Vec<AccountOwner>,
}

/// Reads the current owners of a user's account from the chain, and stores them if they changed.
pub async fn owners(ctx: &Ctx, user_id: UserId) -> Result<Owners, AppError> {
    let account = account_of(ctx, user_id).await?;
    let on_chain = ctx.chain.account_owners(account.address).await?;
    let provisioned = on_chain.is_some();
    let owners = match on_chain {
        Some(owners) => owners,
        None => vec![first_owner_of(&account)?],
    };
    let texts: Vec<String> = owners.iter().map(AccountOwner::to_string).collect();
    if stored_owners(ctx, user_id).await? != texts {
        ctx.store
            .write((user_id, texts), |tx, (user_id, texts)| {
                Box::pin(store::users::replace_owners(tx, *user_id, texts))
            })
            .await?;
    }
    Ok(Owners { account, provisioned, owners })
}

/// Returns the owners as they were last read from the chain.
pub async fn stored_owners(ctx: &Ctx, user_id: UserId) -> Result<Vec<String>, AppError> {
    Ok(ctx.store.read(user_id, |tx, id| Box::pin(store::users::list_owners(tx, *id))).await?)
}

fn first_owner_of(account: &Account) -> Result<AccountOwner, AppError> {
    account.first_owner.parse().map_err(AppError::internal)
}

/// Returns the account of a user.
pub async fn account_of(ctx: &Ctx, user_id: UserId) -> Result<Account, AppError> {
    let account = ctx.store.read(user_id, |tx, id| Box::pin(store::users::find_account(tx, *id))).await?;
    account.ok_or_else(|| AppError::new(ErrorCode::SmartAccountNotProvisioned))
}
