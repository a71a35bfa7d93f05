//! New passkeys and wallets.

use domain::Timestamp;
use domain::credential::{CredentialKey, CredentialKind};
use domain::ids::{CredentialId, UserId};
use domain::passkey::{self, ChallengePurpose, Registration};
use store::Tx;
use store::credentials::{Credential, MAX_PER_USER};

use super::proof::{verify_wallet_signature, wallet_credential};
use super::{IssuedChallenge, RP_ID, WalletProof, find_open, web};
use crate::{Ctx, PersonError};

/// A new passkey or wallet that a page sends.
#[derive(Debug, Clone)]
pub enum NewCredential {
    Passkey(Registration),
    Wallet(WalletProof),
}

/// Verifies a new passkey or wallet for a challenge of this purpose. Returns the challenge, and the
/// credential of `owner`, the user who will have it. `session_user` is the user of the session, or
/// `None` to sign up.
pub async fn verify_registration(
    ctx: &Ctx,
    new: &NewCredential,
    purpose: ChallengePurpose,
    session_user: Option<UserId>,
    owner: UserId,
    kind: CredentialKind,
) -> Result<(IssuedChallenge, Credential), PersonError> {
    let registration = match new {
        NewCredential::Passkey(registration) => registration,
        NewCredential::Wallet(wallet) => {
            let issued = verify_wallet_signature(ctx, wallet, purpose, session_user).await?;
            return Ok((issued, wallet_credential(ctx, owner, kind, wallet.address)));
        }
    };
    let challenge = passkey::challenge_of(&registration.client_data_json)?;
    let issued = find_open(ctx, challenge, purpose, session_user).await?;
    let passkey = passkey::verify_registration(&web(ctx)?.party, &challenge, registration)?;
    let credential = Credential {
        id: CredentialId(ctx.uuid()),
        user_id: owner,
        kind,
        name: "Passkey".to_owned(),
        signed_up: false,
        key: CredentialKey::Passkey(passkey.key),
        passkey_id: Some(passkey.credential_id),
        user_handle: Some(challenge.user_handle().to_vec()),
        counter: passkey.counter,
        backup: Some(passkey.backup),
        transports: passkey.transports,
        created_at: ctx.now(),
        last_used_at: None,
    };
    Ok((issued, credential))
}

/// Uses the challenge of a registration in the transaction that inserts the credential.
pub async fn use_registration(
    tx: &mut Tx,
    issued: &IssuedChallenge,
    now: Timestamp,
) -> Result<(), PersonError> {
    match store::challenges::mark_used(tx, &issued.challenge, now).await? {
        true => Ok(()),
        false => Err(PersonError::ChallengeUnusable),
    }
}

/// Inserts a credential. The first passkey fixes the relying-party id of the database. The caller
/// holds the lock on the user's row.
///
/// # Errors
/// `CredentialTaken`, `TooManyCredentials`
pub async fn insert_credential(tx: &mut Tx, credential: &Credential, rp_id: &str) -> Result<(), PersonError> {
    let existing = store::credentials::list(tx, credential.user_id).await?;
    if i64::try_from(existing.len()).unwrap_or(i64::MAX) >= MAX_PER_USER {
        return Err(PersonError::TooManyCredentials);
    }
    store::credentials::insert(tx, credential).await.map_err(|error| match error.is_conflict() {
        true => PersonError::CredentialTaken,
        false => error.into(),
    })?;
    if credential.passkey_id.is_some() {
        store::sync::keep_setting(tx, RP_ID, rp_id).await?;
    }
    Ok(())
}
