//! Smart accounts: their address is known before they exist, and the first act of an owner deploys
//! them.
//!
//! The chain decides who owns an account. Owners are read from it whenever they matter; the
//! database only caches the last result.

use alloy_primitives::{Address, B256, U256};
use chain::{AccountOwner, KeyPolicy, Receipt, Signer, calls};
use domain::credential::{CredentialKind, Role};
use domain::ids::UserId;
use domain::key::{Environment, Tier};
use domain::limits::sale_cap;
use domain::text::has_control;
use domain::{ErrorCode, Usdc};
use serde_json::json;
use store::audit_log::{Act, note};
use store::credentials::Credential;
use store::keys::Key;
use store::users::{Account, User};
use store::{StoreError, Tx};

use crate::audit_log::around;
use crate::{AppError, Ctx};

/// The lifetime of a delegation whose key does not expire earlier: one year.
const DELEGATION_S: u64 = 365 * 24 * 3_600;
/// The contracts' maximum number of owners per account.
pub(crate) const MAX_OWNERS: usize = 16;
/// The largest cap that the contracts can store (44 bits).
const MAX_POLICY_CAP: u64 = (1 << 44) - 1;

/// Adds a user and the account whose first owner is `owner`. The account's address depends only on
/// that owner and the user's id.
pub async fn create_user(ctx: &Ctx, name: &str, owner: &AccountOwner) -> Result<(User, Account), AppError> {
    let (user, account) = prepare_user(ctx, UserId(ctx.uuid()), name, owner).await?;
    ctx.store
        .write((user.clone(), account.clone()), |tx, (user, account)| {
            Box::pin(insert_user(tx, user, account))
        })
        .await?;
    Ok((user, account))
}

/// Returns the rows of a new user and the account.
pub(crate) async fn prepare_user(
    ctx: &Ctx,
    id: UserId,
    name: &str,
    owner: &AccountOwner,
) -> Result<(User, Account), AppError> {
    check_name(name)?;
    let (name, created_at) = (name.to_owned(), ctx.now());
    let user = User { id, name, role: Role::User, tier: Tier::Free, created_at };
    let salt = B256::left_padding_from(user.id.0.as_bytes());
    let address = ctx.chain.account_address(owner, salt).await?;
    let account =
        Account { user_id: user.id, address, first_owner: owner.to_string(), salt, reserved: Usdc::ZERO };
    Ok((user, account))
}

pub(crate) async fn insert_user(tx: &mut Tx, user: &User, account: &Account) -> Result<(), StoreError> {
    store::users::insert(tx, user).await?;
    store::users::insert_account(tx, account, user.created_at).await?;
    let made = json!({ "name": user.name, "address": account.address, "owner": account.first_owner });
    note(tx, Act::new("user.create", format!("user:{}", user.id)).after(made));
    Ok(())
}

/// Checks the name that a user gives to something: others read it, also in a terminal.
///
/// # Errors
/// A field error of `/name`
pub(crate) fn check_name(name: &str) -> Result<(), AppError> {
    if name.is_empty() || name.chars().count() > 100 {
        return Err(AppError::field("/name", "must have 1 to 100 characters"));
    }
    if has_control(name, false) {
        return Err(AppError::field("/name", "must not contain control characters"));
    }
    Ok(())
}

/// Returns the on-chain policy for a key's limits.
///
/// The chain's 24-hour window starts with the first spend after the last window, so its daily cap
/// is looser. The exact rolling cap is enforced by this service.
pub fn policy_of(key: &Key, now_s: u64) -> KeyPolicy {
    let limits = key.limits();
    policy_with(key, limits.per_trade, limits.daily, now_s)
}

/// Returns the on-chain policy for a key with these caps.
pub(crate) fn policy_with(key: &Key, per_trade: Usdc, daily: Usdc, now_s: u64) -> KeyPolicy {
    let longest = now_s + DELEGATION_S;
    let expiry_s = key.expires_at.map_or(longest, |at| at.s().min(longest));
    let cap = |usdc: Usdc| usdc.atomic().min(MAX_POLICY_CAP);
    KeyPolicy {
        key_index: key.key_index,
        limits: chain::SpendingLimits {
            per_trade_usdc_atomic: cap(per_trade),
            daily_usdc_atomic: cap(daily),
            sale_per_trade_usdc_atomic: cap(sale_cap(per_trade)),
            sale_daily_usdc_atomic: cap(sale_cap(daily)),
            expiry_s: u32::try_from(expiry_s).unwrap_or(u32::MAX),
        },
    }
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
/// Whoever is no longer an owner is signed out.
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
        let ended = ctx
            .store
            .write((user_id, texts, ctx.now()), |tx, (user_id, texts, now)| {
                Box::pin(async move {
                    store::users::replace_owners(tx, *user_id, texts).await?;
                    store::sessions::mark_ended_of_removed_owners(tx, *user_id, *now).await
                })
            })
            .await?;
        if ended > 0 {
            ctx.process.session_cache.forget(user_id);
        }
    }
    Ok(Owners { account, provisioned, owners })
}

/// Reads the owners again if this credential signs in as one of them: another owner may have removed
/// it on chain, without this service. Its use then fails.
pub(crate) async fn check_owner(ctx: &Ctx, credential: &Credential) -> Result<(), AppError> {
    match credential.kind {
        CredentialKind::Owner => owners(ctx, credential.user_id).await.map(drop),
        CredentialKind::SignIn => Ok(()),
    }
}

/// Returns the owners as they were last read from the chain.
pub async fn stored_owners(ctx: &Ctx, user_id: UserId) -> Result<Vec<String>, AppError> {
    Ok(ctx.store.read(user_id, |tx, id| Box::pin(store::users::list_owners(tx, *id))).await?)
}

pub(crate) fn first_owner_of(account: &Account) -> Result<AccountOwner, AppError> {
    account.first_owner.parse().map_err(AppError::internal)
}

/// Returns the account of a user.
pub async fn account_of(ctx: &Ctx, user_id: UserId) -> Result<Account, AppError> {
    let account = ctx.store.read(user_id, |tx, id| Box::pin(store::users::find_account(tx, *id))).await?;
    account.ok_or_else(|| AppError::new(ErrorCode::SmartAccountNotProvisioned))
}

/// Returns the USDC of an account on chain.
pub async fn balance_of(ctx: &Ctx, account: Address) -> Result<Usdc, AppError> {
    let balance = ctx.chain.usdc_balance(account).await?;
    Ok(Usdc::from_atomic(u64::try_from(balance).unwrap_or(i64::MAX as u64)))
}
