//! Sign-up: a user, an account, a credential, a web key and a session, in one transaction. The
//! account's contract is deployed later, with the first batch that its owner signs.

use domain::credential::{CredentialKey, CredentialKind};
use domain::ids::UserId;
use domain::key::Tier;
use domain::passkey::ChallengePurpose;
use domain::session::SessionToken;
use serde_json::json;
use store::Tx;
use store::audit_log::{note, note_instead};
use store::credentials::Credential;
use store::sessions::Session;
use store::users::{Account, User};

use super::Country;
use crate::accounts::{insert_user, prepare_user};
use crate::config::WebSettings;
use crate::keys::{NewWebKey, insert_web_key, new_web_key};
use crate::limits::FailureKind;
use crate::limits::budget::Budget;
use crate::passkeys::{
    IssuedChallenge, NewCredential, insert_credential, owner_of, use_registration, verify_registration, web,
};
use crate::sessions::{Device, SignedIn, act_of, counting_failures, insert_session, new_session};
use crate::{AppError, Ctx, PersonError, user_log};

/// The name of a user who enters none.
const DEFAULT_NAME: &str = "New user";

/// A person who signs up.
#[derive(Debug, Clone)]
pub struct SignUp {
    pub name: Option<String>,
    /// The first owner of the account.
    pub credential: NewCredential,
    pub device: Device,
    pub country: Country,
    /// URL of the terms of use that the person has accepted.
    pub accepted_terms: Option<String>,
}

/// The rows of a new user.
struct NewUser {
    issued: IssuedChallenge,
    user: User,
    account: Account,
    credential: Credential,
    web_key: NewWebKey,
    session: Session,
    token: SessionToken,
    rp_id: String,
    terms_url: Option<String>,
}

/// Signs up. The passkey or wallet becomes the first owner of the user's account. Other accounts that
/// have it as an owner, or that it signs in to, do not matter.
///
/// # Errors
/// `CountryRefused`. `CredentialTaken` if it has signed up before, and still signs in to that account.
pub async fn sign_up(ctx: &Ctx, wanted: &SignUp) -> Result<SignedIn, PersonError> {
    wanted.country.require_allowed()?;
    counting_failures(ctx, FailureKind::SignUp, wanted.device.ip, None, async {
        let new = prepare(ctx, wanted).await?;
        // After the proof: a request that fails uses no share of its neighbors.
        let (ip, now) = (wanted.device.ip, ctx.now());
        ctx.budgets().spend(Budget::SignUps, ip, now).await.map_err(AppError::from)?;
        let signed_in = SignedIn { token: new.token.clone(), session: new.session.clone() };
        let store = user_log::acting(ctx, new.user.id, wanted.device.ip, None);
        let written = store.try_write(new, |tx, new| Box::pin(insert(tx, new))).await;
        if written.is_err() {
            ctx.budgets().give_back(Budget::SignUps, ip, 1, now).await;
        }
        written.map(|()| signed_in)
    })
    .await
}

async fn prepare(ctx: &Ctx, wanted: &SignUp) -> Result<NewUser, PersonError> {
    let WebSettings { party, terms_url, .. } = web(ctx)?;
    // The operator may have changed the terms since the page was shown.
    if terms_url.is_some() && wanted.accepted_terms != *terms_url {
        let error = AppError::field("/terms", "must be the URL of the current terms of use");
        return Err(error
            .detail("The terms of use have changed. Load the page again and accept them.")
            .into());
    }
    let (purpose, kind) = (ChallengePurpose::SignUp, CredentialKind::Owner);
    let user_id = UserId(ctx.uuid());
    let (issued, credential) =
        verify_registration(ctx, &wanted.credential, purpose, None, user_id, kind).await?;
    let credential = Credential { signed_up: true, ..credential };
    let name = wanted.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
    let (user, account) =
        prepare_user(ctx, user_id, name.unwrap_or(DEFAULT_NAME), &owner_of(&credential.key)).await?;
    let web_key = new_web_key(ctx, user_id, Tier::Free)?;
    let (session, token) = new_session(ctx, user_id, credential.id, &wanted.device);
    let (rp_id, terms_url) = (party.id().to_owned(), terms_url.clone());
    Ok(NewUser { issued, user, account, credential, web_key, session, token, rp_id, terms_url })
}

async fn insert(tx: &mut Tx, new: &NewUser) -> Result<(), PersonError> {
    use_registration(tx, &new.issued, new.user.created_at).await?;
    if let CredentialKey::Wallet(address) = new.credential.key {
        // Another owner may have taken the wallet from the account that it signed up for.
        store::credentials::forget_lost_sign_up(tx, address).await?;
    }
    insert_user(tx, &new.user, &new.account).await?;
    insert_credential(tx, &new.credential, &new.rp_id).await?;
    insert_web_key(tx, &new.web_key).await?;
    insert_session(tx, &new.session, &new.token).await?;
    // One small entry instead of one for each row: everybody can sign up.
    let made = json!({ "credentialId": new.credential.id, "sessionId": new.session.id });
    note_instead(tx, act_of(new.user.id, "user.sign-up").after(made));
    if let Some(url) = &new.terms_url {
        note(tx, act_of(new.user.id, "terms.accept").after(json!({ "url": url })));
    }
    Ok(())
}
