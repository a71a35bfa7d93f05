//! The sample users of a demonstration. The service has the keys of their owners, so that a visitor
//! can be one of them at the press of a button. A real service never has such keys.

use alloy_primitives::eip191_hash_message;
use domain::ErrorCode;
use domain::ids::UserId;
use domain::passkey::ChallengePurpose;

use crate::config::SampleUser;
use crate::owner_acts::{self, ActOrigin, OwnerActRequest, OwnerSignature};
use crate::passkeys::{Proof, WalletProof, issue_challenge, wallet_text};
use crate::sessions::{self, Device, SignedIn};
use crate::{AppError, Ctx, PersonError, accounts};

/// Signs in as a sample user, with the signature of the account's owner, and lets the site trade
/// for the account if it cannot yet.
///
/// # Errors
/// `RESOURCE_NOT_FOUND` if the service has no such sample user.
pub async fn sign_in(ctx: &Ctx, user_id: UserId, device: &Device) -> Result<SignedIn, PersonError> {
    let known = ctx.config.sample_users.iter().find(|user| user.user_id == user_id);
    let user = known.ok_or_else(|| AppError::new(ErrorCode::ResourceNotFound))?;
    let issued = issue_challenge(ctx, ChallengePurpose::SignIn, None).await?;
    let address = user.owner.address();
    let text = wallet_text(ctx, &issued, address, None).await?;
    let signature = user.owner.sign_digest(eip191_hash_message(&text)).map_err(AppError::from)?;
    let proof = Proof::Wallet(WalletProof { challenge: issued.challenge, address, account: None, signature });
    let account = accounts::account_of(ctx, user_id).await?.address;
    let signed_in = sessions::sign_in(ctx, &proof, Some(account), device).await?;
    enable_trading(ctx, user).await?;
    Ok(signed_in)
}

async fn enable_trading(ctx: &Ctx, user: &SampleUser) -> Result<(), AppError> {
    let web_key = ctx.store.read(user.user_id, |tx, id| Box::pin(store::keys::find_web(tx, *id))).await?;
    // A revoked key stays disabled: the operator has stopped the user's trading.
    let Some(key) = web_key.filter(|key| key.revoked_at.is_none()) else { return Ok(()) };
    let account = accounts::account_of(ctx, user.user_id).await?.address;
    if ctx.chain.account_state(account, key.key_index).await?.lets_spend(ctx.now().s()) {
        return Ok(());
    }
    let request = OwnerActRequest::Enable { keys: vec![key.id] };
    let prepared = owner_acts::prepare(ctx, user.user_id, &request, ActOrigin::Operator, None).await?;
    let signature = OwnerSignature::Encoded(user.owner.sign_digest(prepared.act.digest)?);
    match owner_acts::sign(ctx, user.user_id, prepared.act.id, &signature, ActOrigin::Operator).await {
        // Another visitor signed in as the same user a moment ago, and that act is in progress.
        Err(error) if error.code == ErrorCode::ValidationFailed => Ok(()),
        done => done.map(drop),
    }
}
