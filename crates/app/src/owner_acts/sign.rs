//! Accepts the owner's signature of a prepared act. From then on the executor of the account's lane
//! carries it.

use alloy_primitives::{Address, Bytes};
use chain::{AccountOwner, Assertion, ChainError, Revert};
use domain::credential::CredentialKey;
use domain::ids::{CredentialId, OwnerActId, UserId};
use domain::owner_act::OwnerActStatus;
use domain::passkey::{
    self, Passkey, PasskeyRefusal, PasskeyUse, RelyingParty, check_batch_statements, verify_batch_assertion,
};
use domain::{ErrorCode, Timestamp};
use p256::ecdsa::Signature;
use store::StoreError;
use store::credentials::Credential;
use store::owner_acts::{OwnerAct, SignatureStored};

use super::limits::{ActOrigin, check_count, check_sponsored, within_gas_budgets};
use super::prepare::{is_expired, unsigned_batch};
use super::{call_reverted, calls_of, executing_call, expired, find, overtaken, signature_invalid};
use crate::accounts::{self, Owners};
use crate::passkeys::owner_of;
use crate::{AppError, Ctx};

/// An owner's signature over an act.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one for each signed act, and never a list of them")]
pub enum OwnerSignature {
    /// The 65 bytes of a wallet.
    Wallet(Bytes),
    /// The assertion of a passkey on a page of this site.
    Passkey { owner: AccountOwner, assertion: Assertion, site: RelyingParty },
    /// A signature in the account contract's form, which the operator was given. It may come from a
    /// passkey of any site.
    Encoded(Bytes),
}

impl OwnerSignature {
    /// Returns the signature in the account contract's form.
    fn encode(&self, act: &OwnerAct) -> Result<Bytes, AppError> {
        match self {
            Self::Encoded(bytes) => Ok(bytes.clone()),
            Self::Wallet(bytes) => AccountOwner::normalize_ecdsa(bytes).ok_or_else(signature_invalid),
            Self::Passkey { owner, assertion, site } => {
                let Assertion { authenticator_data, client_data_json, .. } = assertion;
                let client_data = client_data_json.as_bytes();
                check_batch_statements(site, &act.digest, client_data, authenticator_data).map_err(
                    |refusal| {
                        let detail = format!("must be made on this site over this act: {refusal}");
                        AppError::field("/passkey", &detail)
                    },
                )?;
                // It fails only for values that are not those of an assertion.
                assertion.to_signature(owner).map_err(|_| signature_invalid())
            }
        }
    }

    /// Returns the user's stored credential of the passkey that signed, if there is one.
    async fn credential(&self, ctx: &Ctx, user_id: UserId) -> Result<Option<Credential>, AppError> {
        let Self::Passkey { owner, .. } = self else { return Ok(None) };
        let stored = ctx.store.read(user_id, |tx, id| Box::pin(store::credentials::list(tx, *id))).await?;
        Ok(stored.into_iter().find(|credential| owner_of(&credential.key) == *owner))
    }

    /// Returns the use of a stored passkey that this signature is.
    ///
    /// # Errors
    /// A field error if the passkey's counter went back: then there may be a copy of the passkey.
    fn use_of(&self, credential: &Credential, act: &OwnerAct) -> Result<Option<Use>, AppError> {
        let (Self::Passkey { assertion, site, .. }, CredentialKey::Passkey(key)) = (self, &credential.key)
        else {
            return Ok(None);
        };
        let signature = Signature::from_scalars(assertion.r.0, assertion.s.0);
        let given = passkey::Assertion {
            credential_id: credential.passkey_id.clone().unwrap_or_default(),
            authenticator_data: assertion.authenticator_data.to_vec(),
            client_data_json: assertion.client_data_json.clone().into_bytes(),
            signature: signature.map_err(|_| signature_invalid())?.to_der().as_bytes().to_vec(),
            user_handle: None,
        };
        let stored = Passkey { key: *key, counter: credential.counter };
        match verify_batch_assertion(site, &act.digest, &stored, &given) {
            Ok(passkey) => Ok(Some(Use { credential: credential.id, passkey })),
            Err(PasskeyRefusal::CounterWentBack) => Err(counter_went_back()),
            Err(_) => Err(signature_invalid()),
        }
    }
}

/// A use of a stored passkey, with its new counter.
#[derive(Debug, Clone, Copy)]
struct Use {
    credential: CredentialId,
    passkey: PasskeyUse,
}

fn counter_went_back() -> AppError {
    AppError::field("/passkey", "must be newer than the last use of the passkey, by its signature counter")
}

/// Verifies and stores the owner's signature of a prepared act, and wakes the lane.
///
/// Sending the same signature again returns the act, so that a lost answer does no harm.
///
/// # Errors
/// A field error of `/signature` or `/passkey` if it is not from a current owner over this act, or if
/// the counter of a stored passkey went back. An invalid state if the act has expired, if another
/// batch of the account was executed first, or if another act of the account is in progress. The
/// error of a call that would revert.
pub async fn sign(
    ctx: &Ctx,
    user_id: UserId,
    id: OwnerActId,
    signature: &OwnerSignature,
    origin: ActOrigin,
) -> Result<OwnerAct, AppError> {
    // Read before the act: a repeated signature must not be refused because of its own first use.
    let credential = signature.credential(ctx, user_id).await?;
    let act = find(ctx, user_id, id).await?;
    let encoded = signature.encode(&act)?;
    if act.status != OwnerActStatus::Prepared {
        return repeated(act, &encoded);
    }
    if is_expired(ctx, act.deadline_s, ctx.now()).await? {
        return Err(expired(act.deadline_s));
    }
    check_sponsored(ctx, origin, &accounts::account_of(ctx, user_id).await?).await?;
    let (signer, gas) = verify(ctx, &act, &encoded).await?;
    let used = match &credential {
        Some(credential) => signature.use_of(credential, &act)?,
        None => None,
    };
    let kind = act.kind;
    let signing = store_signature(ctx, act, signer, &encoded, used, origin);
    let stored = within_gas_budgets(ctx, origin, user_id, (kind, gas), signing).await?;
    ctx.wake.executor.notify_waiters();
    Ok(stored)
}

/// Returns an act that is not prepared any more, if this is the signature that it has.
fn repeated(act: OwnerAct, signature: &Bytes) -> Result<OwnerAct, AppError> {
    if act.signature.as_deref() == Some(signature.as_ref()) {
        return Ok(act);
    }
    Err(match act.status {
        OwnerActStatus::Expired => expired(act.deadline_s),
        status => AppError::invalid_state(ErrorCode::ValidationFailed, format!("the act is {status}")),
    })
}

/// Returns the owner that made a signature, and the gas that the act needs. Runs the whole act on the
/// newest state, because only the contract decides about signatures.
async fn verify(ctx: &Ctx, act: &OwnerAct, signature: &Bytes) -> Result<(AccountOwner, u64), AppError> {
    let owners: Owners = accounts::owners(ctx, act.user_id).await?;
    let calls = calls_of(act)?;
    let batch = unsigned_batch(ctx, &owners, calls, act.deadline_s).await?;
    if batch.nonce != act.nonce || batch.digest != act.digest {
        return Err(overtaken());
    }
    let signer = AccountOwner::of_signature(signature, act.digest).filter(|it| owners.owners.contains(it));
    let signer = signer.ok_or_else(signature_invalid)?;
    let call = executing_call(ctx, act, &owners.account, &batch.calls, signature.clone())?;
    match ctx.chain.estimate_gas(Address::ZERO, Some(call.target), call.data).await {
        Ok(gas) => Ok((signer, gas)),
        Err(ChainError::Reverted(Revert::SignatureInvalid)) => Err(signature_invalid()),
        Err(ChainError::Reverted(Revert::DeadlinePassed)) => Err(expired(act.deadline_s)),
        Err(ChainError::Reverted(reason)) => Err(call_reverted(reason)),
        Err(error) => Err(error.into()),
    }
}

/// The reason why a signature was not stored.
enum NotStored {
    Because(AppError),
    /// Another act of the account was signed, in a transaction at the same time.
    InProgress,
}

impl From<AppError> for NotStored {
    fn from(error: AppError) -> Self {
        Self::Because(error)
    }
}

impl From<StoreError> for NotStored {
    fn from(error: StoreError) -> Self {
        if store::owner_acts::is_signed_conflict(&error) {
            return Self::InProgress;
        }
        Self::Because(error.into())
    }
}

async fn store_signature(
    ctx: &Ctx,
    act: OwnerAct,
    signer: AccountOwner,
    signature: &Bytes,
    used: Option<Use>,
    origin: ActOrigin,
) -> Result<OwnerAct, AppError> {
    let (user_id, id, now) = (act.user_id, act.id, ctx.now());
    let per_day = ctx.config.owner_acts.per_day;
    let input = (act, signer.to_string(), signature.to_vec(), used, origin, per_day, now);
    let stored: Result<SignatureStored, NotStored> = ctx
        .write_of_user(user_id, input, |tx, (act, signer, signature, used, origin, per_day, now)| {
            Box::pin(async move {
                let now: Timestamp = *now;
                // Acts of one user are signed one after the other, so that each counts.
                store::users::lock(tx, act.user_id).await?;
                check_count(tx, *origin, act.user_id, *per_day, now).await?;
                let stored = store::owner_acts::sign(tx, act, signer, signature, now).await?;
                if let (SignatureStored::Stored, Some(used)) = (&stored, used) {
                    let Use { credential, passkey } = used;
                    if !store::credentials::mark_passkey_used(tx, *credential, passkey, now).await? {
                        return Err(counter_went_back().into());
                    }
                }
                Ok(stored)
            })
        })
        .await;
    match stored {
        Ok(SignatureStored::Stored) => find(ctx, user_id, id).await,
        // Another request has signed or expired the act since it was read.
        Ok(SignatureStored::Stale) => repeated(find(ctx, user_id, id).await?, signature),
        Ok(SignatureStored::AnotherInProgress) | Err(NotStored::InProgress) => Err(AppError::invalid_state(
            ErrorCode::ValidationFailed,
            "another act of the account is in progress: wait until it has ended",
        )),
        Err(NotStored::Because(error)) => Err(error),
    }
}
