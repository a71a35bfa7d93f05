//! A user's passkeys and wallets.

use domain::ErrorCode;
use domain::credential::CredentialKind;
use domain::ids::CredentialId;
use domain::passkey::ChallengePurpose;
use serde_json::json;
use store::audit_log::note;
use store::credentials::Credential;

use super::profile::check_name;
use crate::passkeys::{NewCredential, insert_credential, use_registration, verify_registration, web};
use crate::sessions::{Person, act_of, store_of_user};
use crate::{AppError, Ctx, PersonError};

/// Lists a user's passkeys and wallets, oldest first.
pub async fn list_credentials(ctx: &Ctx, person: &Person) -> Result<Vec<Credential>, AppError> {
    let user_id = person.user_id();
    Ok(ctx.store.read(user_id, |tx, id| Box::pin(store::credentials::list(tx, *id))).await?)
}

/// Adds a passkey or a wallet that signs in. Requires a step-up. It becomes an owner of the account
/// only by a batch that a present owner signs.
pub async fn add_credential(
    ctx: &Ctx,
    person: &Person,
    new: &NewCredential,
    name: Option<&str>,
) -> Result<Credential, PersonError> {
    person.require_step_up(ctx.now())?;
    let (user_id, purpose) = (person.user_id(), ChallengePurpose::AddKey);
    let (issued, mut credential) =
        verify_registration(ctx, new, purpose, Some(user_id), user_id, CredentialKind::SignIn).await?;
    if let Some(name) = name {
        credential.name = check_name(name)?;
    }
    let rp_id = web(ctx)?.party.id().to_owned();
    let store = store_of_user(ctx, user_id, person.session().ip);
    store
        .try_write((issued, credential.clone(), rp_id, ctx.now()), |tx, (issued, credential, rp_id, now)| {
            Box::pin(async move {
                store::users::lock(tx, credential.user_id).await?;
                use_registration(tx, issued, *now).await?;
                insert_credential(tx, credential, rp_id).await?;
                // A wallet may already own the account.
                store::credentials::mark_owners(tx, credential.user_id).await?;
                let added = json!({ "credentialId": credential.id, "key": credential.key.to_string() });
                note(tx, act_of(credential.user_id, "credential.add").after(added));
                Ok::<_, PersonError>(())
            })
        })
        .await?;
    Ok(credential)
}

/// Removes a passkey or a wallet, and ends the sessions that it signed in. Requires a step-up.
/// It stays an owner of the account if it is one, and the wallet of an owner can sign in again.
///
/// # Errors
/// `LastCredential` if no other credential could sign in.
pub async fn remove_credential(ctx: &Ctx, person: &Person, id: CredentialId) -> Result<(), PersonError> {
    person.require_step_up(ctx.now())?;
    let user_id = person.user_id();
    let store = store_of_user(ctx, user_id, person.session().ip);
    let removed = store
        .try_write((user_id, id, ctx.now()), |tx, (user_id, id, now)| {
            Box::pin(async move {
                // Two concurrent removals must not remove the last two credentials.
                store::users::lock(tx, *user_id).await?;
                if !store::credentials::delete(tx, *user_id, *id).await? {
                    return Err(AppError::new(ErrorCode::ResourceNotFound).into());
                }
                let left = store::credentials::list(tx, *user_id).await?;
                let mut is_any_usable = false;
                for credential in left {
                    is_any_usable |= store::credentials::lock_usable(tx, credential.id).await?;
                }
                if !is_any_usable {
                    return Err(PersonError::LastCredential);
                }
                let ended = store::sessions::mark_ended_of_credential(tx, *user_id, *id, *now).await?;
                let removed = json!({ "credentialId": id, "endedSessions": ended });
                note(tx, act_of(*user_id, "credential.remove").before(removed));
                Ok(())
            })
        })
        .await;
    ctx.process.session_cache.forget(user_id);
    removed
}

/// Renames a passkey or a wallet.
pub async fn rename_credential(
    ctx: &Ctx,
    person: &Person,
    id: CredentialId,
    name: &str,
) -> Result<(), PersonError> {
    let input = (person.user_id(), id, check_name(name)?);
    let renamed = ctx
        .store
        .write(input, |tx, (user_id, id, name)| Box::pin(store::credentials::rename(tx, *user_id, *id, name)))
        .await?;
    match renamed {
        true => Ok(()),
        false => Err(AppError::new(ErrorCode::ResourceNotFound).into()),
    }
}
