//! Smart accounts: known before they exist, made and enabled by one batch that their owner signs.

use alloy_primitives::{Address, B256};
use chain::provision::KeyPolicy;
use chain::{Owner, Signer};
use domain::ErrorCode;
use domain::ids::UserId;
use store::StoreError;
use store::keys::Key;
use store::users::{Account, User};

use crate::{AppError, Ctx};

/// How long a delegation lasts where its key does not expire sooner: one year.
const DELEGATION_S: u64 = 365 * 24 * 3_600;
/// The largest cap that the contracts can hold.
const MAX_POLICY_CAP: u64 = (1 << 44) - 1;

/// Adds a user and the account of `owner`, whose address follows from the owner alone.
pub async fn create_user(ctx: &Ctx, name: &str, owner: &Owner) -> Result<(User, Account), AppError> {
    if name.is_empty() || name.chars().count() > 100 || name.contains('\0') {
        return Err(AppError::field("/name", "is 1 to 100 characters"));
    }
    let user = User { id: UserId(ctx.uuid()), name: name.to_owned(), created_at: ctx.now() };
    let salt = B256::left_padding_from(user.id.0.as_bytes());
    let address = ctx.chain.account_address(owner, salt).await?;
    let account = Account {
        user_id: user.id,
        address: address.to_string().to_lowercase(),
        owner: owner.to_string(),
        salt: salt.to_string(),
        reserved: domain::Usdc::ZERO,
    };
    let written: Result<(), StoreError> = ctx
        .store
        .write((user.clone(), account.clone()), |tx, (user, account)| {
            Box::pin(async move {
                store::users::insert(tx, user).await?;
                store::users::insert_account(tx, account, user.created_at).await
            })
        })
        .await;
    written?;
    Ok((user, account))
}

/// The policy that lets a key spend within its limits on chain. The chain's window opens at the first spend, so its daily
/// cap is an outer fence around the exact one kept here.
pub fn policy_of(key: &Key, now_s: u64) -> KeyPolicy {
    let limits = key.limits();
    let longest = now_s + DELEGATION_S;
    let expiry_s = key.expires_at.map_or(longest, |at| at.s().min(longest));
    KeyPolicy {
        key_index: key.key_index,
        per_trade_usdc_atomic: limits.per_trade.atomic().min(MAX_POLICY_CAP),
        daily_usdc_atomic: limits.daily.atomic().min(MAX_POLICY_CAP),
        expiry_s: u32::try_from(expiry_s).unwrap_or(u32::MAX),
    }
}

/// Makes the account if it is not there and enables these keys, signed by an EOA owner whose key is at hand: in
/// development, and in tests. Elsewhere the owner signs the batch that [`chain::provision::prepare`] gives.
pub async fn enable_keys(
    ctx: &Ctx,
    relayer: &Signer,
    owner: &Signer,
    user_id: UserId,
    keys: &[Key],
) -> Result<Address, AppError> {
    let account = account_of(ctx, user_id).await?;
    let salt: B256 = account.salt.parse().map_err(|error| AppError::new(ErrorCode::InternalError).caused_by(error))?;
    let policies: Vec<KeyPolicy> = keys.iter().map(|key| policy_of(key, ctx.now().s())).collect();
    Ok(chain::provision::provision(&ctx.chain, relayer, owner, salt, &policies).await?)
}

/// Ends a key's delegation on chain. `executor` may always do that; it can only reduce.
pub async fn revoke_delegation(ctx: &Ctx, executor: &Signer, key: &Key) -> Result<(), AppError> {
    let account = account_of(ctx, key.user_id).await?;
    let address = address_of(&account)?;
    let gate = ctx.chain.contracts().gate;
    let call = chain::calls::revoke_policy(address, key.key_index);
    ctx.chain.transact(executor, Some(gate), call).await?;
    Ok(())
}

/// The account of a user.
pub async fn account_of(ctx: &Ctx, user_id: UserId) -> Result<Account, AppError> {
    let account: Result<_, StoreError> =
        ctx.store.read(user_id, |tx, id| Box::pin(store::users::find_account(tx, *id))).await;
    account?.ok_or_else(|| AppError::new(ErrorCode::SmartAccountNotProvisioned))
}

/// The address of an account.
pub fn address_of(account: &Account) -> Result<Address, AppError> {
    account.address.parse().map_err(|error| AppError::new(ErrorCode::InternalError).caused_by(error))
}
