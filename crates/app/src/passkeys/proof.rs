//! Proofs of who a user is: an assertion of a passkey, or a wallet's signature.
//!
//! Where a credential signs in is its own decision. A passkey belongs to one account. A wallet signs in
//! to the accounts that it has confirmed: the one that it signed up for, and those whose address it
//! has signed. An account that lists the wallet as an owner is no reason, because anyone can add
//! anyone's wallet as an owner of their own account. The exception is the account that the operator
//! created for a wallet: that is this service's own record.

use alloy_primitives::{Address, Bytes, eip191_hash_message};
use chain::AccountOwner;
use domain::Timestamp;
use domain::credential::{CredentialKey, CredentialKind};
use domain::ids::{CredentialId, UserId};
use domain::passkey::{self, Assertion, Challenge, ChallengePurpose, Passkey, PasskeyUse};
use serde_json::json;
use store::Tx;
use store::audit_log::{Act, note};
use store::credentials::Credential;

use super::{IssuedChallenge, find_open, wallet_text, web};
use crate::limits::CredentialMark;
use crate::{Ctx, PersonError, accounts};

/// A proof that a page sends.
#[derive(Debug, Clone)]
pub enum Proof {
    Passkey(Assertion),
    Wallet(WalletProof),
}

impl Proof {
    /// Returns a mark of the passkey or wallet that the proof claims to be from.
    pub fn mark(&self) -> CredentialMark {
        match self {
            Self::Passkey(assertion) => CredentialMark::of(&assertion.credential_id),
            Self::Wallet(wallet) => CredentialMark::of(wallet.address.as_slice()),
        }
    }
}

/// A wallet's signature over the text of [`wallet_text`].
#[derive(Debug, Clone)]
pub struct WalletProof {
    pub challenge: Challenge,
    pub address: Address,
    /// The account that the text of a sign-in names, if it names one.
    pub account: Option<Address>,
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
    /// The wallet has not signed in to this account before.
    is_new: bool,
}

impl VerifiedProof {
    /// Returns the challenge that the proof answers.
    pub const fn challenge(&self) -> Challenge {
        self.issued.challenge
    }
}

/// Verifies a proof for a challenge of this purpose, in a session of this user.
pub async fn verify_proof(
    ctx: &Ctx,
    proof: &Proof,
    purpose: ChallengePurpose,
    user_id: UserId,
) -> Result<VerifiedProof, PersonError> {
    let verified = match proof {
        Proof::Passkey(assertion) => verify_passkey(ctx, assertion, purpose, Some(user_id)).await?,
        Proof::Wallet(wallet) => {
            let issued = verify_wallet_signature(ctx, wallet, purpose, Some(user_id)).await?;
            let found = find_wallet(ctx, wallet.address, user_id).await?;
            let credential = found.ok_or(PersonError::UnknownCredential)?;
            VerifiedProof { issued, credential, used: None, is_new: false }
        }
    };
    match verified.credential.user_id == user_id {
        true => Ok(verified),
        false => Err(PersonError::UnknownCredential),
    }
}

/// Verifies a proof to sign in. Returns one for each account that it may sign in to, and at least
/// one.
pub async fn verify_sign_in(ctx: &Ctx, proof: &Proof) -> Result<Vec<VerifiedProof>, PersonError> {
    let purpose = ChallengePurpose::SignIn;
    let wallet = match proof {
        Proof::Passkey(assertion) => return Ok(vec![verify_passkey(ctx, assertion, purpose, None).await?]),
        Proof::Wallet(wallet) => wallet,
    };
    let issued = verify_wallet_signature(ctx, wallet, purpose, None).await?;
    let credentials = match wallet.account {
        Some(account) => vec![confirm_account(ctx, wallet.address, account).await?],
        None => list_confirmed(ctx, wallet.address).await?,
    };
    if credentials.is_empty() {
        return Err(PersonError::UnknownCredential);
    }
    let verified = |(credential, is_new)| VerifiedProof { issued, credential, used: None, is_new };
    Ok(credentials.into_iter().map(verified).collect())
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

async fn find_wallet(
    ctx: &Ctx,
    address: Address,
    user_id: UserId,
) -> Result<Option<Credential>, PersonError> {
    let read = ctx.store.read((address, user_id), |tx, (address, user_id)| {
        Box::pin(store::credentials::find_wallet(tx, *address, *user_id))
    });
    Ok(read.await?)
}

/// Lists a wallet's credentials, and new ones for accounts that the operator created for it. The
/// flags say which are new.
async fn list_confirmed(ctx: &Ctx, address: Address) -> Result<Vec<(Credential, bool)>, PersonError> {
    let read = ctx.store.read(address, |tx, address| {
        Box::pin(async move {
            let known = store::credentials::list_wallet(tx, *address).await?;
            Ok((known, store::credentials::list_unused_first_accounts(tx, *address).await?))
        })
    });
    let (known, unused) = read.await?;
    let new = |user_id| (wallet_credential(ctx, user_id, CredentialKind::Owner, address), true);
    let known = known.into_iter().map(|credential| (credential, false));
    Ok(known.chain(unused.into_iter().map(new)).collect())
}

/// Returns the credential with which a wallet signs in to an account that it has named in the signed
/// text, and whether it is new. So an owner that was only added on chain, such as a paper key, signs
/// in after a loss.
async fn confirm_account(
    ctx: &Ctx,
    address: Address,
    account: Address,
) -> Result<(Credential, bool), PersonError> {
    let found =
        ctx.store.read(account, |tx, account| Box::pin(store::users::find_by_address(tx, *account))).await?;
    let user_id = found.ok_or(PersonError::UnknownCredential)?;
    let known = find_wallet(ctx, address, user_id).await?;
    if let Some(credential) = known.as_ref().filter(|known| known.kind == CredentialKind::SignIn) {
        return Ok((credential.clone(), false));
    }
    let owners = accounts::owners(ctx, user_id).await?.owners;
    if !owners.contains(&AccountOwner::Eoa(address)) {
        return Err(PersonError::UnknownCredential);
    }
    let new = || (wallet_credential(ctx, user_id, CredentialKind::Owner, address), true);
    Ok(known.map_or_else(new, |known| (known, false)))
}

/// Checks that the wallet signed the text of an open challenge. Returns the challenge.
pub(super) async fn verify_wallet_signature(
    ctx: &Ctx,
    wallet: &WalletProof,
    purpose: ChallengePurpose,
    user_id: Option<UserId>,
) -> Result<IssuedChallenge, PersonError> {
    let issued = find_open(ctx, wallet.challenge, purpose, user_id).await?;
    let text = wallet_text(ctx, &issued, wallet.address, wallet.account).await?;
    let signer = AccountOwner::of_signature(&wallet.signature, eip191_hash_message(&text));
    // A signature of another text names another address. One of another length could name a
    // passkey, which signs no texts.
    if signer != Some(AccountOwner::Eoa(wallet.address)) {
        return Err(PersonError::WalletSignature);
    }
    Ok(issued)
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
        signed_up: false,
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
        let added = json!({ "credentialId": credential.id, "key": credential.key.to_string() });
        note(tx, Act::new("credential.add", format!("user:{}", credential.user_id)).after(added));
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
