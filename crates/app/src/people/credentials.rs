//! A user's passkeys and wallets.

use alloy_primitives::Address;
use chain::AccountOwner;
use domain::credential::CredentialKind;
use domain::ids::CredentialId;
use domain::passkey::ChallengePurpose;
use domain::{ErrorCode, Timestamp};
use serde_json::json;
use store::Tx;
use store::audit_log::note;
use store::credentials::Credential;

use super::profile::check_name;
use crate::accounts::{self, Owners};
use crate::owner_acts::{changes_owners, put_second_owner};
use crate::passkeys::{
    NewCredential, insert_credential, owner_of, use_registration, verify_registration, web,
};
use crate::sessions::{Person, act_of, require_step_up_of_owners};
use crate::{AppError, Ctx, PersonError, user_log};

/// Lists a user's passkeys and wallets, oldest first.
pub async fn list_credentials(ctx: &Ctx, person: &Person) -> Result<Vec<Credential>, AppError> {
    let user_id = person.user_id();
    Ok(ctx.store.read(user_id, |tx, id| Box::pin(store::credentials::list(tx, *id))).await?)
}

/// Returns the number of owners that another person may hold. They can move the money of the account,
/// too.
///
/// Whoever signed up for the account has let all of its passkeys and wallets in. To a wallet that has
/// entered an account of somebody else, every other owner may be a stranger.
pub async fn count_other_owners(
    ctx: &Ctx,
    person: &Person,
    owners: &[AccountOwner],
) -> Result<usize, AppError> {
    let credentials = list_credentials(ctx, person).await?;
    let used = person.session().credential_id;
    let signed_up = credentials.iter().any(|it| it.id == used && it.signed_up);
    let own: Vec<AccountOwner> =
        credentials.iter().filter(|it| signed_up || it.id == used).map(|it| owner_of(&it.key)).collect();
    Ok(owners.iter().filter(|owner| !own.contains(owner)).count())
}

/// Adds a passkey or a wallet that signs in. Requires a step-up. A wallet signs the address of the
/// account. It becomes an owner of the account only by a batch that a present owner signs.
pub async fn add_credential(
    ctx: &Ctx,
    person: &Person,
    new: &NewCredential,
    name: Option<&str>,
) -> Result<Credential, PersonError> {
    require_step_up_of_owners(ctx, person).await?;
    let (user_id, purpose) = (person.user_id(), ChallengePurpose::AddKey);
    let (issued, mut credential) =
        verify_registration(ctx, new, purpose, Some(user_id), user_id, CredentialKind::SignIn).await?;
    if let Some(name) = name {
        credential.name = check_name(name)?;
    }
    let rp_id = web(ctx)?.party.id().to_owned();
    let store = user_log::acting(ctx, user_id, person.session().ip, None);
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

/// Removes a passkey or a wallet, and ends the sessions that it signed in. Requires a step-up. If it
/// is the chosen second owner, that choice ends too.
///
/// A key that only signs in must not take an owner's way in. So an owner is first removed from the
/// account, by an act that an owner signs.
///
/// # Errors
/// `CredentialOwnsAccount` if it owns the account now, `OwnersChanging` if a signed act may change
/// that, and an error of the chain if it cannot be asked. `LastCredential` if no other credential
/// could sign in.
pub async fn remove_credential(ctx: &Ctx, person: &Person, id: CredentialId) -> Result<(), PersonError> {
    require_step_up_of_owners(ctx, person).await?;
    let credentials = list_credentials(ctx, person).await?;
    let missing = || AppError::new(ErrorCode::ResourceNotFound);
    let credential = credentials.into_iter().find(|it| it.id == id).ok_or_else(missing)?;
    let user_id = person.user_id();
    let Owners { account, owners, .. } = accounts::owners(ctx, user_id).await?;
    if owners.contains(&owner_of(&credential.key)) {
        return Err(PersonError::CredentialOwnsAccount);
    }
    let store = user_log::acting(ctx, user_id, person.session().ip, None);
    let input = (credential, account.address, ctx.now());
    let removed = store
        .try_write(input, |tx, (credential, account, now)| {
            Box::pin(async move {
                // Two concurrent removals must not remove the last two credentials, and no act is
                // signed meanwhile.
                store::users::lock(tx, credential.user_id).await?;
                check_no_owner(tx, credential, *account).await?;
                delete(tx, credential, *now).await
            })
        })
        .await;
    ctx.process.session_cache.forget(user_id);
    removed
}

/// Rejects a credential that has become an owner since the chain was asked, or that a signed act may
/// make one.
async fn check_no_owner(tx: &mut Tx, credential: &Credential, account: Address) -> Result<(), PersonError> {
    if store::users::list_owners(tx, credential.user_id).await?.contains(&credential.key.to_string()) {
        return Err(PersonError::CredentialOwnsAccount);
    }
    match store::owner_acts::find_in_progress(tx, account).await? {
        Some(act) if changes_owners(&act)? => Err(PersonError::OwnersChanging),
        _ => Ok(()),
    }
}

async fn delete(tx: &mut Tx, credential: &Credential, now: Timestamp) -> Result<(), PersonError> {
    let Credential { id, user_id, key, .. } = credential;
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
    if store::users::find_second_owner(tx, *user_id).await? == Some(key.to_string()) {
        put_second_owner(tx, *user_id, None).await?;
    }
    let ended = store::sessions::mark_ended_of_credential(tx, *user_id, *id, now).await?;
    let removed = json!({ "credentialId": id, "endedSessions": ended });
    note(tx, act_of(*user_id, "credential.remove").before(removed));
    Ok(())
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
