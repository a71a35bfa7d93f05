//! Acts of admins in the web application.
//!
//! 1. **Prepare** checks the request, describes it in words, and stores both with a challenge. The
//!    challenge contains their hash.
//! 2. **Confirm** verifies a passkey's assertion over that challenge, and runs the stored request.
//!
//! So an assertion confirms exactly the act whose words the admin has read, and a session without
//! the passkey can only read. The entries of the act in the audit log name the act's row, which has
//! the assertion.

mod catalog;
mod market;
mod person;
mod service;
mod summary;

use std::net::IpAddr;
use std::sync::Arc;

use domain::ErrorCode;
use domain::credential::Role;
use domain::ids::{AdminActId, UserId};
use domain::passkey::{Assertion, Challenge, ChallengePurpose};
use domain::time::DAY_MS;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use store::admin_acts::AdminAct;
use store::audit_log::{Act, Actor, note};

use crate::passkeys::{CHALLENGE_MS, IssuedChallenge, Proof, VerifiedProof, use_proof, verify_proof};
use crate::sessions::Person;
use crate::{AppError, Ctx, PersonError, accounts};

pub use catalog::{ImportFile, ImportItem, ImportPreview, ThreadEdit, preview_import};
pub use market::{ListingEdit, MarketMove, MarketTerms, NewTerms};
pub use person::{KeyStep, PersonStep};
pub use service::ServiceStep;
pub use summary::{Fact, Outcome, PrintedCall, Summary};

/// The beginning of every hashed act.
const DOMAIN: &[u8] = b"foretell admin act 1";

/// The time for which a passkey that was added confirms nothing.
const NEW_PASSKEY_MS: i64 = DAY_MS;

/// An act that an admin may confirm.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "area", content = "act", rename_all = "kebab-case")]
pub enum AdminRequest {
    CreateMarket(MarketTerms),
    EditMarket(ListingEdit),
    MoveMarket(MarketMove),
    Person(PersonStep),
    Key(KeyStep),
    Service(ServiceStep),
    Thread(ThreadEdit),
    Import(ImportFile),
}

impl AdminRequest {
    /// Checks the act without effect, and describes it.
    async fn describe(&self, ctx: &Ctx, admin: UserId) -> Result<Summary, AppError> {
        match self {
            Self::CreateMarket(terms) => terms.describe(ctx).await,
            Self::EditMarket(edit) => edit.describe(ctx).await,
            Self::MoveMarket(wanted) => wanted.describe(ctx).await,
            Self::Person(step) => step.describe(ctx, admin).await,
            Self::Key(step) => step.describe(ctx).await,
            Self::Service(step) => step.describe(ctx).await,
            Self::Thread(edit) => edit.describe(ctx).await,
            Self::Import(file) => file.describe(ctx).await,
        }
    }

    async fn run(self, ctx: &Ctx, admin: UserId) -> Result<Outcome, AppError> {
        match self {
            Self::CreateMarket(terms) => terms.run(ctx).await,
            Self::EditMarket(edit) => edit.run(ctx).await,
            Self::MoveMarket(wanted) => wanted.run(ctx).await,
            Self::Person(step) => step.run(ctx).await,
            Self::Key(step) => step.run(ctx).await,
            Self::Service(step) => step.run(ctx, admin).await,
            Self::Thread(edit) => edit.run(ctx).await,
            Self::Import(file) => file.run(ctx).await,
        }
    }
}

/// Prepares an act. Nothing happens before the admin confirms it.
///
/// # Errors
/// `AdminRequired`, and the errors with which the act would fail now.
pub async fn prepare(ctx: &Ctx, person: &Person, request: &AdminRequest) -> Result<AdminAct, PersonError> {
    person.require_admin(ctx)?;
    let (user_id, now) = (person.user_id(), ctx.now());
    let summary = request.describe(ctx, user_id).await?;
    let mut act = AdminAct {
        id: AdminActId(ctx.uuid()),
        user_id,
        request: serde_json::to_string(request).map_err(AppError::internal)?,
        summary: serde_json::to_string(&summary).map_err(AppError::internal)?,
        nonce: hex::encode(ctx.random::<32>()),
        challenge: Challenge::new(ChallengePurpose::Admin, [0; 32]),
        assertion: None,
        confirmed_at: None,
        outcome: None,
        ended_at: None,
        created_at: now,
    };
    act.challenge = challenge_of(&act);
    let issued = IssuedChallenge {
        challenge: act.challenge,
        user_id: Some(user_id),
        created_at: now,
        expires_at: now.plus_ms(CHALLENGE_MS),
    };
    ctx.store
        .write((act.clone(), issued), |tx, (act, issued)| {
            Box::pin(async move {
                store::challenges::insert(tx, issued).await?;
                store::admin_acts::insert(tx, act).await
            })
        })
        .await?;
    Ok(act)
}

/// Returns the challenge of an act: the hash of the admin, the request and its words.
fn challenge_of(act: &AdminAct) -> Challenge {
    let mut hash = Sha256::new_with_prefix(DOMAIN);
    let (id, user_id) = (act.id.to_string(), act.user_id.to_string());
    for part in [&id, &user_id, &act.request, &act.summary, &act.nonce] {
        // Each part is preceded by its length, so that two different acts never have the same input.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    Challenge::new(ChallengePurpose::Admin, hash.finalize().into())
}

/// Returns an act of this admin.
///
/// # Errors
/// `RESOURCE_NOT_FOUND`, also for another admin's act.
pub async fn find(ctx: &Ctx, person: &Person, id: AdminActId) -> Result<AdminAct, AppError> {
    let input = (person.user_id(), id);
    let found =
        ctx.store.read(input, |tx, (user_id, id)| Box::pin(store::admin_acts::find(tx, *user_id, *id)));
    found.await?.ok_or_else(|| AppError::new(ErrorCode::ResourceNotFound))
}

/// Returns the request of a stored act.
pub fn request_of(act: &AdminAct) -> Result<AdminRequest, AppError> {
    serde_json::from_str(&act.request).map_err(AppError::internal)
}

/// Returns the words of a stored act.
pub fn summary_of(act: &AdminAct) -> Result<Summary, AppError> {
    serde_json::from_str(&act.summary).map_err(AppError::internal)
}

/// Returns the result of an act that has ended.
pub fn outcome_of(act: &AdminAct) -> Result<Option<Outcome>, AppError> {
    act.outcome.as_deref().map(|text| serde_json::from_str(text).map_err(AppError::internal)).transpose()
}

/// Confirms an act with a passkey's assertion over its challenge, and runs it. The act's own failure
/// is part of its outcome.
///
/// # Errors
/// `PasskeyRequired` for a wallet. `ChallengeUnusable` if the act was confirmed before, if it is older
/// than five minutes, or if the assertion is for another act. An invalid state for a new passkey.
pub async fn confirm(
    ctx: &Ctx,
    person: &Person,
    id: AdminActId,
    proof: &Proof,
    ip: IpAddr,
) -> Result<AdminAct, PersonError> {
    person.require_admin(ctx)?;
    let act = find(ctx, person, id).await?;
    let Proof::Passkey(assertion) = proof else { return Err(PersonError::PasskeyRequired) };
    // No lockout: nobody else's failures may keep an admin from an act such as a halt.
    let verified = verify_proof(ctx, proof, ChallengePurpose::Admin, act.user_id).await?;
    check_age(ctx, &verified)?;
    // An admin must be able to halt trading while no node answers.
    if let Err(error) = accounts::check_owner(ctx, &verified.credential).await {
        tracing::warn!(%error, act.id = %id, "could not read the owners of an admin's account");
    }
    // The stored act must be the one that was hashed, and the assertion must be for it.
    if verified.challenge() != act.challenge || act.challenge != challenge_of(&act) {
        return Err(PersonError::ChallengeUnusable);
    }
    let acting = acting_as(ctx, &act, ip);
    accept(&acting, &act, verified, assertion).await?;
    let request = request_of(&act)?;
    let outcome = match request.run(&acting, act.user_id).await {
        Ok(outcome) => outcome,
        Err(error) => {
            tracing::warn!(%error, cause = ?error.source, act.id = %id, "an admin's act failed");
            Outcome::failed(&error)
        }
    };
    let outcome = serde_json::to_string(&outcome).map_err(AppError::internal)?;
    let input = (id, outcome, ctx.now());
    ctx.store
        .write(input, |tx, (id, outcome, now)| Box::pin(store::admin_acts::end(tx, *id, outcome, *now)))
        .await?;
    Ok(find(ctx, person, id).await?)
}

/// Rejects a passkey that was added a short time ago: whoever has stolen a session within minutes of its
/// step-up must not become an admin by adding a passkey. The admin has a day to see and remove it.
fn check_age(ctx: &Ctx, verified: &VerifiedProof) -> Result<(), AppError> {
    let credential = &verified.credential;
    match credential.signed_up || ctx.now().since_ms(credential.created_at) >= NEW_PASSKEY_MS {
        true => Ok(()),
        false => Err(AppError::invalid_state(
            ErrorCode::ValidationFailed,
            "this passkey confirms acts of admins only 24 hours after it was added: use an older one",
        )),
    }
}

/// Returns the context in which an act runs: all its changes are in the audit log, with the act's id.
fn acting_as(ctx: &Ctx, act: &AdminAct, ip: IpAddr) -> Ctx {
    let actor = Actor {
        name: format!("user:{}", act.user_id),
        os_user: format!("admin-act:{}", act.id),
        host: ip.to_string(),
    };
    Ctx { store: ctx.store.acting_as(actor, Arc::clone(&ctx.clock)), ..ctx.clone() }
}

/// Uses the assertion. After this, the act runs once.
async fn accept(
    ctx: &Ctx,
    act: &AdminAct,
    verified: VerifiedProof,
    assertion: &Assertion,
) -> Result<(), PersonError> {
    let stored = json!({
        "credentialId": verified.credential.id,
        "passkeyId": hex::encode(&assertion.credential_id),
        "authenticatorData": hex::encode(&assertion.authenticator_data),
        "clientDataJson": String::from_utf8_lossy(&assertion.client_data_json),
        "signature": hex::encode(&assertion.signature),
    });
    let input = (act.clone(), verified, stored.to_string(), ctx.now());
    ctx.store
        .try_write(input, |tx, (act, verified, stored, now)| {
            Box::pin(async move {
                store::users::lock(tx, act.user_id).await?;
                // The session's row may be half a second old.
                let user = store::users::find(tx, act.user_id).await?;
                if user.is_none_or(|user| user.role != Role::Admin) {
                    return Err(PersonError::AdminRequired);
                }
                use_proof(tx, verified, *now).await?;
                if !store::admin_acts::confirm(tx, act.id, stored, *now).await? {
                    return Err(PersonError::ChallengeUnusable);
                }
                let confirmed = json!({
                    "title": summary_of(act)?.title,
                    "challenge": act.challenge.to_string(),
                    "credentialId": verified.credential.id,
                });
                note(tx, Act::new("admin.confirm", format!("admin-act:{}", act.id)).after(confirmed));
                Ok(())
            })
        })
        .await
}
