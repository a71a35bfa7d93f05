//! Proofs of who a user is: an assertion of a passkey, or a wallet's signature.

use alloy_primitives::{Address, Bytes, eip191_hash_message};
use chain::AccountOwner;
use domain::Timestamp;
use domain::credential::{CredentialKey, CredentialKind};
use domain::ids::{CredentialId, UserId};
use domain::passkey::{self, Assertion, Challenge, ChallengePurpose, Passkey, PasskeyUse};
use store::Tx;
use store::credentials::Credential;

use super::{IssuedChallenge, find_open, wallet_text, web};
use crate::{Ctx, PersonError};

/// A proof that a page sends.
#[derive(Debug, Clone)]
pub enum Proof {
    Passkey(Assertion),
    Wallet(WalletProof),
}

/// A wallet's signature over the text of [`wallet_text`].
#[derive(Debug, Clone)]
pub struct WalletProof {
    pub challenge: Challenge,
    pub address: Address,
    /// 65 bytes
    pub signature: Bytes,
}

/// A valid proof that has not been used yet.
#[derive(Debug, Clone)]
pub struct VerifiedProof {
    issued: IssuedChallenge,
    pub credential: Credential,
    /// The new state of a passkey.
    used: Option<PasskeyUse>,
    /// The wallet owns an account but has never signed in.
    is_new: bool,
}

impl VerifiedProof {
    /// Returns the challenge that the proof answers.
    pub const fn challenge(&self) -> Challenge {
        self.issued.challenge
    }
}

/// Verifies a proof for a challenge of this purpose. `user_id` is the user of the session, or
/// `None` to sign in.
pub async fn verify_proof(
    ctx: &Ctx,
    proof: &Proof,
    purpose: ChallengePurpose,
    user_id: Option<UserId>,
) -> Result<VerifiedProof, PersonError> {
    let verified = match proof {
        Proof::Passkey(assertion) => verify_passkey(ctx, assertion, purpose, user_id).await?,
        Proof::Wallet(wallet) => verify_wallet(ctx, wallet, purpose, user_id).await?,
    };
    match user_id {
        Some(user_id) if verified.credential.user_id != user_id => Err(PersonError::UnknownCredential),
        _ => Ok(verified),
    }
}

async fn verify_passkey(
    ctx: &Ctx,
    assertion: &Assertion,
    purpose: ChallengePurpose,
    user_id: Option<UserId>,
) -> Result<VerifiedProof, PersonError> {
    let challenge = passkey::challenge_of(&assertion.client_data_json)?;
    let issued = find_open(ctx, challenge, purpose, user_id).await?;
    let found = ctx
        .store
        .read(assertion.credential_id.clone(), |tx, id| Box::pin(store::credentials::find_passkey(tx, id)))
        .await?;
    // Another user's credential must look like a missing one, also before its signature is checked.
    let is_own = |found: &Credential| user_id.is_none_or(|user_id| found.user_id == user_id);
    let credential = found.filter(is_own).ok_or(PersonError::UnknownCredential)?;
    // Without a user name only the user handle shows that the authenticator means this user.
    let is_named = match &assertion.user_handle {
        Some(handle) => credential.user_handle.as_ref() == Some(handle),
        None => user_id.is_some(),
    };
    let CredentialKey::Passkey(key) = credential.key else { return Err(PersonError::UnknownCredential) };
    if !is_named {
        return Err(PersonError::UnknownCredential);
    }
    let stored = Passkey { key, counter: credential.counter };
    let used = passkey::verify_assertion(&web(ctx)?.party, &challenge, &stored, assertion)?;
    Ok(VerifiedProof { issued, credential, used: Some(used), is_new: false })
}

async fn verify_wallet(
    ctx: &Ctx,
    wallet: &WalletProof,
    purpose: ChallengePurpose,
    user_id: Option<UserId>,
) -> Result<VerifiedProof, PersonError> {
    let issued = verify_wallet_signature(ctx, wallet, purpose, user_id).await?;
    let address = wallet.address;
    let found = ctx
        .store
        .read(address, |tx, address| Box::pin(store::credentials::find_wallet(tx, *address)))
        .await?;
    if let Some(credential) = found {
        return Ok(VerifiedProof { issued, credential, used: None, is_new: false });
    }
    let credential = owner_credential(ctx, address).await?.ok_or(PersonError::UnknownCredential)?;
    Ok(VerifiedProof { issued, credential, used: None, is_new: true })
}

/// Checks that the wallet signed the text of an open challenge. Returns the challenge.
pub(super) async fn verify_wallet_signature(
    ctx: &Ctx,
    wallet: &WalletProof,
    purpose: ChallengePurpose,
    user_id: Option<UserId>,
) -> Result<IssuedChallenge, PersonError> {
    let issued = find_open(ctx, wallet.challenge, purpose, user_id).await?;
    let text = wallet_text(ctx, &issued, wallet.address)?;
    let signer = AccountOwner::of_signature(&wallet.signature, eip191_hash_message(&text));
    // A signature of another text names another address. One of another length could name a
    // passkey, which signs no texts.
    if signer != Some(AccountOwner::Eoa(wallet.address)) {
        return Err(PersonError::WalletSignature);
    }
    Ok(issued)
}

/// Returns a new credential for a wallet that owns exactly one account, such as an account that the
/// operator created.
async fn owner_credential(ctx: &Ctx, address: Address) -> Result<Option<Credential>, PersonError> {
    let owner = AccountOwner::Eoa(address).to_string();
    let users =
        ctx.store.read(owner, |tx, owner| Box::pin(store::users::list_by_owner(tx, owner, 2))).await?;
    let [user_id] = users.as_slice() else { return Ok(None) };
    Ok(Some(wallet_credential(ctx, *user_id, CredentialKind::Owner, address)))
}

pub(super) fn wallet_credential(
    ctx: &Ctx,
    user_id: UserId,
    kind: CredentialKind,
    address: Address,
) -> Credential {
    Credential {
        id: CredentialId(ctx.uuid()),
        user_id,
        kind,
        name: "Wallet".to_owned(),
        key: CredentialKey::Wallet(address),
        passkey_id: None,
        user_handle: None,
        counter: 0,
        backup: None,
        transports: Vec::new(),
        created_at: ctx.now(),
        last_used_at: None,
    }
}

/// Uses a proof in the transaction of what it allows.
///
/// # Errors
/// `ChallengeUnusable` if the challenge was used meanwhile, `UnknownCredential` if the credential
/// was removed or is an owner that the account no longer has, `CounterWentBack` if the passkey was
/// used meanwhile.
pub async fn use_proof(tx: &mut Tx, proof: &VerifiedProof, now: Timestamp) -> Result<(), PersonError> {
    let VerifiedProof { issued, credential, used, is_new } = proof;
    if !store::challenges::mark_used(tx, &issued.challenge, now).await? {
        return Err(PersonError::ChallengeUnusable);
    }
    if *is_new {
        // Another sign-in of the wallet may have inserted it meanwhile.
        store::credentials::insert(tx, credential).await.map_err(|error| match error.is_conflict() {
            true => PersonError::ChallengeUnusable,
            false => error.into(),
        })?;
    }
    if !store::credentials::lock_usable(tx, credential.id).await? {
        return Err(PersonError::UnknownCredential);
    }
    match used {
        Some(used) => {
            if !store::credentials::mark_passkey_used(tx, credential.id, used, now).await? {
                return Err(passkey::PasskeyRefusal::CounterWentBack.into());
            }
        }
        None => store::credentials::mark_wallet_used(tx, credential.id, now).await?,
    }
    Ok(())
}
