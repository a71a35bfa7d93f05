//! Smart accounts: known before they exist, made and enabled by one batch that their owner signs.

use alloy_primitives::{Address, B256, Bytes, U256};
use chain::provision::{self, Batch, KeyPolicy};
use chain::{ChainError, Owner, Receipt, Revert, Signer};
use domain::ids::UserId;
use domain::key::Environment;
use domain::{ErrorCode, Usdc};
use serde_json::json;
use store::StoreError;
use store::audit_log::{Act, note};
use store::keys::Key;
use store::users::{Account, User};

use crate::audit_log::around;
use crate::{AppError, Ctx};

/// How long a delegation lasts where its key does not expire sooner: one year.
const DELEGATION_S: u64 = 365 * 24 * 3_600;
/// How often a batch is signed again because another one of the same account used its nonce.
const SIGN_ATTEMPTS: u32 = 20;
/// The largest cap that the contracts can hold.
const MAX_POLICY_CAP: u64 = (1 << 44) - 1;

/// Adds a user and the account of `owner`, whose address follows from the owner alone.
pub async fn create_user(ctx: &Ctx, name: &str, owner: &Owner) -> Result<(User, Account), AppError> {
    if name.is_empty() || name.chars().count() > 100 || name.contains('\0') {
        return Err(AppError::field("/name", "must have 1 to 100 characters"));
    }
    let user = User { id: UserId(ctx.uuid()), name: name.to_owned(), created_at: ctx.now() };
    let salt = B256::left_padding_from(user.id.0.as_bytes());
    let address = ctx.chain.account_address(owner, salt).await?;
    let account = Account {
        user_id: user.id,
        address: address.to_string().to_lowercase(),
        owner: owner.to_string(),
        salt: salt.to_string(),
        reserved: Usdc::ZERO,
    };
    let written: Result<(), StoreError> = ctx
        .store
        .write((user.clone(), account.clone()), |tx, (user, account)| {
            Box::pin(async move {
                store::users::insert(tx, user).await?;
                store::users::insert_account(tx, account, user.created_at).await?;
                let made = json!({ "name": user.name, "address": account.address, "owner": account.owner });
                note(tx, Act::new("user.create", format!("user:{}", user.id)).after(made));
                Ok(())
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

/// The batch by which an owner makes the account, if it is not there, lets the Gate move its USDC and enables these keys.
///
/// Everything in it follows from the keys and from `deadline_s`, so that the batch that an owner has signed can be made
/// again from its deadline alone. Without one it is good for an hour.
pub async fn batch_to_enable(
    ctx: &Ctx,
    user_id: UserId,
    keys: &[Key],
    deadline_s: Option<u64>,
) -> Result<Batch, AppError> {
    let account = account_of(ctx, user_id).await?;
    let corrupt = |error: Box<dyn std::error::Error + Send + Sync>| {
        AppError::new(ErrorCode::InternalError).caused_by(error)
    };
    let owner: Owner = account.owner.parse().map_err(|error| corrupt(Box::new(error)))?;
    let salt: B256 = account.salt.parse().map_err(|error| corrupt(Box::new(error)))?;
    let deadline_s = match deadline_s {
        Some(deadline_s) => deadline_s,
        None => provision::signature_deadline_s(&ctx.chain, ctx.now().s()).await?,
    };
    let policies: Vec<KeyPolicy> = keys.iter().map(|key| policy_of(key, deadline_s)).collect();
    let calls = provision::enabling_calls(ctx.chain.contracts(), &policies);
    Ok(provision::prepare(&ctx.chain, owner, salt, calls, deadline_s).await?)
}

/// Carries a batch that its owner has signed.
pub async fn relay(
    ctx: &Ctx,
    relayer: &Signer,
    batch: &Batch,
    signature: Bytes,
) -> Result<Receipt, AppError> {
    let calls: Vec<String> =
        batch.calls.iter().map(|call| format!("{} {}", call.target, call.data)).collect();
    let signed = json!({ "digest": batch.digest.to_string(), "calls": calls });
    let act = Act::new("delegation.enable", format!("account:{}", batch.account)).after(signed);
    let relayed = async { Ok(provision::relay(&ctx.chain, relayer, batch, signature).await?) };
    around(ctx, act, relayed, |receipt: &Receipt| json!({ "txHash": receipt.tx_hash.to_string() })).await
}

/// Makes the account if it is not there and enables these keys, signed by an EOA owner whose key is at hand: in
/// development, and in tests. Elsewhere the owner signs the batch that [`batch_to_enable`] gives.
///
/// Of several batches of one account that are signed at the same moment the chain executes one. The others are signed
/// again, so that each caller is told that its keys are enabled only once they are.
pub async fn enable_keys(
    ctx: &Ctx,
    relayer: &Signer,
    owner: &Signer,
    user_id: UserId,
    keys: &[Key],
) -> Result<(Batch, Receipt), AppError> {
    let mut attempt = 1;
    loop {
        let batch = batch_to_enable(ctx, user_id, keys, None).await?;
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

/// Whether a batch was refused because another one of the account used its nonce.
async fn was_overtaken(ctx: &Ctx, batch: &Batch, error: &ChainError) -> Result<bool, AppError> {
    let is_refused = matches!(error, ChainError::Reverted(Revert::SignatureInvalid | Revert::Other(_)));
    Ok(is_refused && ctx.chain.account_nonce(batch.account).await? > batch.nonce)
}

/// Gives an account new test money, made by `minter`. Only test chains have a USDC that allows it.
pub async fn fund(ctx: &Ctx, minter: &Signer, user_id: UserId, amount: Usdc) -> Result<Receipt, AppError> {
    if ctx.config.environment == Environment::Live {
        return Err(AppError::new(ErrorCode::ValidationFailed)
            .detail("Real USDC is not made here: send it to the account."));
    }
    let address = address_of(&account_of(ctx, user_id).await?)?;
    let mint = chain::calls::mint(address, U256::from(amount.atomic()));
    let act = Act::new("account.fund", format!("user:{user_id}"));
    let act = act.after(json!({ "address": address.to_string(), "usdcAtomic": amount.to_string() }));
    let minted = async { Ok(ctx.chain.transact(minter, Some(ctx.chain.contracts().usdc), mint).await?) };
    around(ctx, act, minted, |receipt: &Receipt| json!({ "txHash": receipt.tx_hash.to_string() })).await
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
