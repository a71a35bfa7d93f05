//! Prepares acts: checks the request, builds the calls and stores the act with its nonce and
//! deadline.

use chain::{AccountOwner, Call, UnsignedBatch, batch_digest, calls};
use domain::ids::{OwnerActId, UserId};
use domain::lane::assign;
use domain::owner_act::OwnerActStatus;
use domain::{ErrorCode, Timestamp};
use serde_json::json;
use store::audit_log::{Act, note};
use store::owner_acts::OwnerAct;
use store::{StoreError, Tx};

use super::limits::{ActOrigin, check_count, check_sponsored};
use super::request::{CallBuilder, OwnerActRequest};
use super::{calls_to_json, expired};
use crate::accounts::{self, Owners, first_owner_of};
use crate::passkeys::owner_of;
use crate::sessions::{Person, context_of};
use crate::{AppError, Ctx, PersonError};

/// The time for which a prepared act can be signed and executed. Short, because a passkey cannot
/// display what it signs.
const ACT_LIFE_S: u64 = 600;

/// An act and everything that its owner must know to sign it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedAct {
    pub act: OwnerAct,
    pub batch: UnsignedBatch,
}

/// Prepares an act for an owner's signature.
///
/// If the account is not deployed yet, the act also deploys it and adds the chosen second owner.
/// Preparing the same batch again, with the same deadline, returns the same act. By default the
/// deadline is ten minutes after the later of the newest block and the clock.
///
/// # Errors
/// Those of [`CallBuilder::calls_of`] and of the limits. An invalid state if the deadline has
/// passed.
pub async fn prepare(
    ctx: &Ctx,
    user_id: UserId,
    request: &OwnerActRequest,
    origin: ActOrigin,
    deadline_s: Option<u64>,
) -> Result<PreparedAct, AppError> {
    let (now_s, head) = (ctx.now().s(), ctx.chain.head().await?);
    let now_s = head.timestamp_s.max(now_s);
    let deadline_s = deadline_s.unwrap_or_else(|| now_s.saturating_add(ACT_LIFE_S));
    if deadline_s < now_s {
        return Err(expired(deadline_s));
    }
    let owners = accounts::owners(ctx, user_id).await?;
    check_sponsored(ctx, origin, &owners.account).await?;
    if let OwnerActRequest::AddOwner(owner) = request
        && origin != ActOrigin::Operator
    {
        check_new_owner(ctx, user_id, owner).await?;
    }
    let builder = CallBuilder { ctx, user_id, owners: &owners, deadline_s };
    let mut calls = builder.calls_of(request).await?;
    calls.extend(add_second_owner(ctx, &owners, request).await?);
    let batch = unsigned_batch(ctx, &owners, calls, deadline_s).await?;
    let caps = request.caps();
    let act = OwnerAct {
        id: OwnerActId(ctx.uuid()),
        user_id,
        account: batch.account,
        // Known when it is stored.
        lane: 0,
        kind: request.kind(),
        calls: calls_to_json(&batch.calls)?,
        nonce: batch.nonce,
        deadline_s,
        digest: batch.digest,
        status: OwnerActStatus::Prepared,
        signer: None,
        signature: None,
        signed_at: None,
        batch_id: None,
        tx_hash: None,
        failure: None,
        error: None,
        caps_key_id: caps.map(|(key, _)| key),
        caps_daily: caps.map(|(_, caps)| caps.daily),
        caps_per_trade: caps.map(|(_, caps)| caps.per_trade),
        created_at: ctx.now(),
        ended_at: None,
    };
    let act = insert(ctx, act, origin).await?;
    Ok(PreparedAct { act, batch })
}

/// Stores a prepared act, or returns the open one with the same digest.
async fn insert(ctx: &Ctx, act: OwnerAct, origin: ActOrigin) -> Result<OwnerAct, AppError> {
    let (user_id, input) = (act.user_id, (act, origin, ctx.config.owner_acts.per_day, ctx.now()));
    ctx.write_of_user(user_id, input, |tx, (act, origin, per_day, now)| {
        Box::pin(async move {
            store::users::lock(tx, act.user_id).await?;
            if let Some(same) = store::owner_acts::find_open_by_digest(tx, act.account, act.digest).await? {
                return Ok(same);
            }
            check_count(tx, *origin, act.user_id, *per_day, *now).await?;
            let lane = assign(act.account, &store::lanes::list_assignable(tx).await?);
            let act = OwnerAct { lane, ..act.clone() };
            store::owner_acts::insert(tx, &act).await?;
            Ok(act)
        })
    })
    .await
}

/// Returns the batch of these calls at the account's current nonce.
pub(super) async fn unsigned_batch(
    ctx: &Ctx,
    owners: &Owners,
    calls: Vec<Call>,
    deadline_s: u64,
) -> Result<UnsignedBatch, AppError> {
    let Owners { account, owners, .. } = owners;
    let nonce = ctx.chain.account_nonce(account.address).await?;
    let digest = batch_digest(ctx.chain.chain_id(), account.address, &calls, nonce, deadline_s);
    Ok(UnsignedBatch {
        first_owner: first_owner_of(account)?,
        salt: account.salt,
        owners: owners.clone(),
        account: account.address,
        calls,
        nonce,
        deadline_s,
        digest,
    })
}

/// Returns the call that adds the chosen second owner, if the act deploys the account.
async fn add_second_owner(
    ctx: &Ctx,
    owners: &Owners,
    request: &OwnerActRequest,
) -> Result<Option<Call>, AppError> {
    if owners.provisioned {
        return Ok(None);
    }
    let user_id = owners.account.user_id;
    let Some(chosen) = find_second_owner(ctx, user_id).await? else { return Ok(None) };
    let chosen: AccountOwner = chosen.parse().map_err(AppError::internal)?;
    if owners.owners.contains(&chosen) || *request == OwnerActRequest::AddOwner(chosen) {
        return Ok(None);
    }
    Ok(Some(Call::new(owners.account.address, calls::add_owner(&chosen))))
}

/// Returns the owner that the first act of the account will add.
pub async fn find_second_owner(ctx: &Ctx, user_id: UserId) -> Result<Option<String>, AppError> {
    Ok(ctx.store.read(user_id, |tx, id| Box::pin(store::users::find_second_owner(tx, *id))).await?)
}

/// Stores the owner to add with the act that deploys the account; `None` removes the choice. An
/// owner of the account signs that act, so the choice gives the second owner no power. Requires a
/// step-up.
///
/// # Errors
/// An invalid state if the account is deployed: then adding an owner is an act of its own. A field
/// error if the owner is the first one.
pub async fn choose_second_owner(
    ctx: &Ctx,
    person: &Person,
    owner: Option<AccountOwner>,
) -> Result<(), PersonError> {
    person.require_step_up(ctx.now())?;
    let (ctx, user_id) = (&context_of(ctx, person), person.user_id());
    Ok(set_second_owner(ctx, user_id, owner).await?)
}

async fn set_second_owner(ctx: &Ctx, user_id: UserId, owner: Option<AccountOwner>) -> Result<(), AppError> {
    let Owners { owners, provisioned, .. } = accounts::owners(ctx, user_id).await?;
    if provisioned {
        return Err(AppError::invalid_state(
            ErrorCode::ValidationFailed,
            "the account is on chain already: add the owner with an act",
        ));
    }
    if owner.is_some_and(|owner| owners.contains(&owner)) {
        return Err(AppError::field("/owner", "must not be an owner already"));
    }
    if let Some(owner) = &owner {
        check_new_owner(ctx, user_id, owner).await?;
    }
    let input = (user_id, owner.map(|owner| owner.to_string()));
    ctx.write_of_user(user_id, input, |tx, (user_id, owner)| {
        Box::pin(
            async move { put_second_owner(tx, *user_id, owner.as_deref()).await.map_err(AppError::from) },
        )
    })
    .await
}

/// Stores the choice of a second owner, and notes it in the audit log.
pub(crate) async fn put_second_owner(
    tx: &mut Tx,
    user_id: UserId,
    owner: Option<&str>,
) -> Result<(), StoreError> {
    let chosen = json!({ "owner": owner });
    note(tx, Act::new("account.second_owner", format!("user:{user_id}")).after(chosen));
    store::users::put_second_owner(tx, user_id, owner).await
}

/// Rejects a passkey that the user has not added: it could own the account, but neither sign in nor
/// sign an act on this site. Only for acts of users: the operator may know passkeys of other sites.
async fn check_new_owner(ctx: &Ctx, user_id: UserId, owner: &AccountOwner) -> Result<(), AppError> {
    if matches!(owner, AccountOwner::Eoa(_)) {
        return Ok(());
    }
    let own = ctx.store.read(user_id, |tx, id| Box::pin(store::credentials::list(tx, *id))).await?;
    match own.iter().any(|credential| owner_of(&credential.key) == *owner) {
        true => Ok(()),
        false => {
            Err(AppError::field("/owner", "must be a passkey that signs in: add it as a sign-in key first"))
        }
    }
}

/// Returns whether an act with this deadline can no longer be executed.
pub(super) async fn is_expired(ctx: &Ctx, deadline_s: u64, now: Timestamp) -> Result<bool, AppError> {
    Ok(ctx.chain.head().await?.timestamp_s.max(now.s()) > deadline_s)
}
