//! Sessions of the web application: signing in, stepping up, and ending.

use std::net::IpAddr;
use std::sync::Arc;

use alloy_primitives::Address;
use chain::AccountState;
use domain::credential::Role;
use domain::ids::{CredentialId, SessionId, UserId};
use domain::key::KeyKind;
use domain::passkey::ChallengePurpose;
use domain::session::{SessionTimes, SessionToken};
use domain::{ErrorCode, Timestamp};
use serde_json::json;
use store::audit_log::{Act, note};
use store::credentials::Credential;
use store::keys::Key;
use store::sessions::Session;
use store::users::User;
use store::{StoreError, Tx};

use crate::caller::Caller;
use crate::keys::{NewWebKey, insert_web_key, new_web_key};
use crate::limits::FailureKind;
use crate::passkeys::{Proof, VerifiedProof, use_proof, verify_proof, verify_sign_in, web};
use crate::process::feed_hub::{Subscription, Topic};
use crate::process::session_cache::SessionRow;
use crate::{AccountChoice, AppError, Ctx, PersonError, accounts, user_log};

/// The maximum length of a stored user agent, in characters.
const MAX_USER_AGENT: usize = 300;

/// The browser that a request came from.
#[derive(Debug, Clone)]
pub struct Device {
    pub ip: IpAddr,
    pub user_agent: String,
}

/// A new or renewed session. The token is returned once, for the cookie.
#[derive(Debug, Clone)]
pub struct SignedIn {
    pub token: SessionToken,
    pub session: Session,
}

/// A user with a live session.
#[derive(Debug, Clone)]
pub struct Person(Arc<SessionRow>);

impl Person {
    pub fn session(&self) -> &Session {
        &self.0.session
    }

    pub fn user(&self) -> &User {
        &self.0.user
    }

    pub fn user_id(&self) -> UserId {
        self.0.user.id
    }

    /// The user's web key, also if the operator has revoked it.
    pub fn web_key(&self) -> &Arc<Key> {
        &self.0.web_key
    }

    /// Returns whether the operator has revoked the web key, and so stopped trading on the site.
    pub fn is_web_key_revoked(&self) -> bool {
        self.web_key().revoked_at.is_some()
    }

    /// Returns whether the site can trade for the account, whose state on chain this is.
    pub fn lets_site_trade(&self, state: &AccountState, now: Timestamp) -> bool {
        !self.is_web_key_revoked() && state.lets_spend(now.s())
    }

    /// Returns the caller of use cases that trade with the user's web key. What a person may do
    /// without trading, such as read, claim and pause, takes the `Person`.
    ///
    /// # Errors
    /// `API_KEY_REVOKED` if the operator has revoked it.
    pub fn caller(&self) -> Result<Caller, AppError> {
        match self.is_web_key_revoked() {
            true => Err(AppError::new(ErrorCode::ApiKeyRevoked)),
            false => Ok(self.holder()),
        }
    }

    /// Returns a caller for what the holder of the account may do even if the web key is revoked:
    /// nobody's money is kept.
    pub(crate) fn holder(&self) -> Caller {
        Caller::new(Arc::clone(self.web_key()), self.session().ip)
    }

    /// # Errors
    /// `StepUpRequired`
    pub fn require_step_up(&self, now: Timestamp) -> Result<(), PersonError> {
        match self.0.session.times.is_stepped_up(now) {
            true => Ok(()),
            false => Err(PersonError::StepUpRequired),
        }
    }

    /// # Errors
    /// `AdminRequired`, also if the operator's pages are switched off.
    pub fn require_admin(&self, ctx: &Ctx) -> Result<(), PersonError> {
        match web(ctx)?.is_admin_on && self.0.user.role == Role::Admin {
            true => Ok(()),
            false => Err(PersonError::AdminRequired),
        }
    }
}

/// Signs in by passkey or wallet, without a user name. If a wallet signs in to several accounts,
/// `account` is the one that the person chose. Failures count towards the address's lockout.
///
/// Signing in is a step-up if the credential may step up: a user with a passkey who signs in with a
/// wallet still has to step up with the passkey.
///
/// # Errors
/// `SeveralAccounts` if the person must choose: the same proof, with the choice, then signs in.
pub async fn sign_in(
    ctx: &Ctx,
    proof: &Proof,
    account: Option<Address>,
    device: &Device,
) -> Result<SignedIn, PersonError> {
    let signed_in = async {
        let verified = choose(ctx, verify_sign_in(ctx, proof).await?, account).await?;
        let user_id = verified.credential.user_id;
        let web_key = missing_web_key(ctx, user_id).await?;
        let mut new = NewSession::begin(ctx, verified, device);
        if let Err(error) = accounts::check_owner(ctx, &new.proof.credential).await {
            // The person may read, and stop what trades. To step up, the chain must answer.
            tracing::warn!(%error, user.id = %user_id, "could not read an account's owners at a sign-in");
            new.session.times = new.session.times.without_step_up();
        }
        let store = user_log::acting(ctx, user_id, device.ip, None);
        let session = store
            .try_write((new.clone(), web_key), |tx, (new, web_key)| {
                Box::pin(async move {
                    store::users::lock(tx, new.session.user_id).await?;
                    let mut session = new.session.clone();
                    if !may_step_up(tx, &new.proof.credential).await? {
                        session.times = session.times.without_step_up();
                    }
                    use_proof(tx, &new.proof, session.created_at).await?;
                    insert_missing_web_key(tx, web_key.as_ref()).await?;
                    insert_session(tx, &session, &new.token).await?;
                    Ok::<_, PersonError>(session)
                })
            })
            .await?;
        Ok(SignedIn { token: new.token, session })
    };
    counting_failures(ctx, FailureKind::SignIn, device.ip, Some(proof), signed_in).await
}

/// Returns the proof for the chosen account, or for the only one.
async fn choose(
    ctx: &Ctx,
    mut verified: Vec<VerifiedProof>,
    account: Option<Address>,
) -> Result<VerifiedProof, PersonError> {
    if account.is_none() && verified.len() == 1 {
        return verified.pop().ok_or(PersonError::UnknownCredential);
    }
    let users: Vec<UserId> = verified.iter().map(|proof| proof.credential.user_id).collect();
    let choices = ctx.store.read(users, |tx, users| Box::pin(list_choices(tx, users))).await?;
    let Some(account) = account else {
        let accounts = choices.into_iter().map(|(_, choice)| choice).collect();
        return Err(PersonError::SeveralAccounts { accounts });
    };
    let chosen = choices.iter().find(|(_, choice)| choice.account == account);
    let (user_id, _) = chosen.ok_or(PersonError::UnknownCredential)?;
    let mut verified = verified.into_iter();
    verified.find(|proof| proof.credential.user_id == *user_id).ok_or(PersonError::UnknownCredential)
}

/// Lists the accounts of these users, in their order.
async fn list_choices(tx: &mut Tx, users: &[UserId]) -> Result<Vec<(UserId, AccountChoice)>, StoreError> {
    let mut choices = Vec::with_capacity(users.len());
    for id in users {
        let (user, account) =
            (store::users::find(tx, *id).await?, store::users::find_account(tx, *id).await?);
        if let (Some(User { name, created_at, .. }), Some(account)) = (user, account) {
            choices.push((*id, AccountChoice { account: account.address, name, created_at }));
        }
    }
    Ok(choices)
}

/// Steps up: renews a session with a fresh proof. The session gets a new token, and the old one is
/// invalid at once. A user who has a passkey must use one.
pub async fn step_up(
    ctx: &Ctx,
    person: &Person,
    proof: &Proof,
    device: &Device,
) -> Result<SignedIn, PersonError> {
    let user_id = person.user_id();
    let renewed = async {
        let verified = verify_proof(ctx, proof, ChallengePurpose::StepUp, user_id).await?;
        accounts::check_owner(ctx, &verified.credential).await?;
        let mut new = NewSession::begin(ctx, verified, device);
        new.session.id = person.session().id;
        new.session.created_at = person.session().created_at;
        let store = user_log::acting(ctx, user_id, device.ip, None);
        let unit = store.try_write((new.clone(), ctx.now()), |tx, (new, now)| Box::pin(renew(tx, new, *now)));
        unit.await?;
        Ok(SignedIn { token: new.token, session: new.session })
    };
    let renewed = counting_failures(ctx, FailureKind::StepUp, device.ip, Some(proof), renewed).await;
    ctx.process.session_cache.forget(user_id);
    renewed
}

/// A session before it is stored, and the proof that it begins with.
#[derive(Debug, Clone)]
struct NewSession {
    proof: VerifiedProof,
    session: Session,
    token: SessionToken,
}

impl NewSession {
    fn begin(ctx: &Ctx, proof: VerifiedProof, device: &Device) -> Self {
        let credential = &proof.credential;
        let (session, token) = new_session(ctx, credential.user_id, credential.id, device);
        Self { session, token, proof }
    }
}

/// Prepares a session.
pub(crate) fn new_session(
    ctx: &Ctx,
    user_id: UserId,
    credential_id: CredentialId,
    device: &Device,
) -> (Session, SessionToken) {
    let now = ctx.now();
    let session = Session {
        id: SessionId(ctx.uuid()),
        user_id,
        credential_id,
        user_agent: device.user_agent.chars().filter(|c| !c.is_control()).take(MAX_USER_AGENT).collect(),
        ip: device.ip,
        created_at: now,
        times: SessionTimes::beginning(now),
    };
    (session, SessionToken::new(ctx.random()))
}

/// Inserts a session and notes it in the audit log.
pub(crate) async fn insert_session(
    tx: &mut Tx,
    session: &Session,
    token: &SessionToken,
) -> Result<(), PersonError> {
    store::sessions::insert(tx, session, &token.digest()).await?;
    let begun = json!({ "sessionId": session.id, "credentialId": session.credential_id });
    note(tx, act_of(session.user_id, "session.begin").after(begun));
    Ok(())
}

async fn renew(tx: &mut Tx, new: &NewSession, now: Timestamp) -> Result<(), PersonError> {
    let Session { id, user_id, credential_id, .. } = &new.session;
    store::users::lock(tx, *user_id).await?;
    if !may_step_up(tx, &new.proof.credential).await? {
        return Err(PersonError::PasskeyRequired);
    }
    use_proof(tx, &new.proof, now).await?;
    if !store::sessions::renew(tx, *id, *credential_id, &new.token.digest(), now).await? {
        return Err(PersonError::SignedOut);
    }
    let renewed = json!({ "sessionId": id, "credentialId": credential_id });
    note(tx, act_of(*user_id, "session.step-up").after(renewed));
    Ok(())
}

/// Returns whether a proof of this credential is a step-up. A user who has a passkey that signs in
/// confirms with it: a stolen wallet must not pass where the passkey is asked for, such as to add a
/// passkey of the thief.
async fn may_step_up(tx: &mut Tx, credential: &Credential) -> Result<bool, StoreError> {
    let is_passkey = credential.passkey_id.is_some();
    Ok(is_passkey || !store::credentials::has_usable_passkey(tx, credential.user_id).await?)
}

/// Counts a failed attempt against its address, and against the passkey or wallet of `proof`. A
/// failure during a lockout only says when the lockout ends.
///
/// The attempt comes first: nobody can guess a signature, so the owner of a credential signs in from
/// any address, whatever others do there.
pub(crate) async fn counting_failures<T>(
    ctx: &Ctx,
    kind: FailureKind,
    ip: IpAddr,
    proof: Option<&Proof>,
    attempt: impl Future<Output = Result<T, PersonError>>,
) -> Result<T, PersonError> {
    let error = match attempt.await {
        Err(error) if error.is_failed_sign_in() => error,
        done => return done,
    };
    let (now, limits) = (ctx.now(), &ctx.process.limits);
    let mut until = limits.fail(kind, ip, now).await.map_err(AppError::from)?;
    if let Some(proof) = proof {
        let of_credential = limits.fail_credential(proof.mark(), now).await.map_err(AppError::from)?;
        until = until.max(of_credential);
    }
    Err(until.map_or(error, |until| PersonError::LockedOut { until }))
}

/// Returns the user with this token, if the session is live. At most once a minute, a use is stored, and
/// the owners of the account are read again: the session of an owner that was removed on chain, without
/// this service, ends.
pub async fn find(ctx: &Ctx, token: &str, ip: IpAddr) -> Result<Option<Person>, AppError> {
    let Ok(token) = token.parse::<SessionToken>() else { return Ok(None) };
    let Some(person) = find_live(ctx, &token).await? else { return Ok(None) };
    if !person.session().times.needs_touch(ctx.now()) {
        return Ok(Some(person));
    }
    touch(ctx, &person, ip).await;
    find_live(ctx, &token).await
}

async fn find_live(ctx: &Ctx, token: &SessionToken) -> Result<Option<Person>, AppError> {
    let now = ctx.now();
    let row = ctx.process.session_cache.find(&ctx.store, token.digest(), now).await?;
    Ok(row.filter(|row| row.session.times.is_live(now)).map(Person))
}

/// Stores a use of the session, and ends it if its owner no longer owns the account. If that fails, the
/// page can still be shown, and a later request tries again.
async fn touch(ctx: &Ctx, person: &Person, ip: IpAddr) {
    let (id, user_id) = (person.session().id, person.user_id());
    let touched = ctx.store.write((id, ip, ctx.now()), |tx, (id, ip, now)| {
        Box::pin(store::sessions::mark_used(tx, *id, *ip, *now))
    });
    match touched.await {
        Ok(()) => ctx.process.session_cache.forget(user_id),
        Err(error) => tracing::warn!(%error, session.id = %id, "could not store the use of a session"),
    }
    if let Err(error) = accounts::owners(ctx, user_id).await {
        tracing::warn!(%error, session.id = %id, "could not read the owners of a session's account");
    }
}

/// Checks the step-up for what outlives the session, such as a new sign-in key, and reads the owners of
/// the account again: an owner that was removed a moment ago must leave nothing behind.
///
/// # Errors
/// `StepUpRequired`. `SignedOut` if the session has ended, also just now. An error of the chain if it
/// cannot be asked.
pub(crate) async fn require_step_up_of_owners(ctx: &Ctx, person: &Person) -> Result<(), PersonError> {
    person.require_step_up(ctx.now())?;
    accounts::owners(ctx, person.user_id()).await?;
    let input = (person.session().id, ctx.now());
    let live = ctx.store.read(input, |tx, (id, now)| {
        Box::pin(async move { store::sessions::list_live_of(tx, &[*id], *now).await })
    });
    match live.await?.is_empty() {
        true => Err(PersonError::SignedOut),
        false => Ok(()),
    }
}

/// Returns a subscription that is woken when the person's session ends or gets a new token.
pub fn follow(ctx: &Ctx, person: &Person) -> Subscription {
    ctx.process.feed.follow(Topic::Session(person.session().id))
}

/// Returns whether a stream of this person may go on, from what `end` was woken for. A session that
/// is stepped up gets a new token, and a stream that was opened with the old one ends: its holder
/// may be a thief.
pub fn is_still_live(person: &Person, end: &Subscription) -> bool {
    let times = &person.session().times;
    end.latest() == 0 || end.latest() == times.renewed_at.ms().unsigned_abs()
}

/// Lists the user's live sessions, last used first.
pub async fn list(ctx: &Ctx, person: &Person) -> Result<Vec<Session>, AppError> {
    let input = (person.user_id(), ctx.now());
    Ok(ctx.store.read(input, |tx, (id, now)| Box::pin(store::sessions::list_live(tx, *id, *now))).await?)
}

/// Signs out: ends the session itself. Idempotent.
pub async fn sign_out(ctx: &Ctx, person: &Person) -> Result<(), PersonError> {
    end_one(ctx, person, person.session().id).await.map(drop)
}

/// Ends another session of the user. Requires a step-up.
///
/// # Errors
/// `RESOURCE_NOT_FOUND` if the user has no such live session.
pub async fn end(ctx: &Ctx, person: &Person, id: SessionId) -> Result<(), PersonError> {
    person.require_step_up(ctx.now())?;
    match end_one(ctx, person, id).await? {
        true => Ok(()),
        false => Err(AppError::new(ErrorCode::ResourceNotFound).into()),
    }
}

async fn end_one(ctx: &Ctx, person: &Person, id: SessionId) -> Result<bool, PersonError> {
    let user_id = person.user_id();
    let store = user_log::acting(ctx, user_id, person.session().ip, None);
    let ended = store.write((user_id, id, ctx.now()), |tx, (user_id, id, now)| {
        Box::pin(async move {
            let ended = store::sessions::mark_ended(tx, *user_id, *id, *now).await?;
            if ended {
                note(tx, act_of(*user_id, "session.end").after(json!({ "sessionId": id })));
            }
            Ok(ended)
        })
    });
    let ended = ended.await;
    ctx.process.session_cache.forget(user_id);
    Ok(ended?)
}

/// Ends all other sessions of the user. Requires a step-up. Returns their number.
pub async fn end_others(ctx: &Ctx, person: &Person) -> Result<u64, PersonError> {
    person.require_step_up(ctx.now())?;
    let (user_id, kept) = (person.user_id(), person.session().id);
    let store = user_log::acting(ctx, user_id, person.session().ip, None);
    let ended = store.write((user_id, kept, ctx.now()), |tx, (user_id, kept, now)| {
        Box::pin(async move {
            let ended = store::sessions::mark_others_ended(tx, *user_id, *kept, *now).await?;
            note(tx, act_of(*user_id, "session.end-others").after(json!({ "ended": ended })));
            Ok(ended)
        })
    });
    let ended = ended.await;
    ctx.process.session_cache.forget(user_id);
    Ok(ended?)
}

/// Returns a new web key for a user who never had one: the operator created the user.
async fn missing_web_key(ctx: &Ctx, user_id: UserId) -> Result<Option<NewWebKey>, PersonError> {
    let read = ctx.store.read(user_id, |tx, id| {
        Box::pin(async move { Ok((store::users::find(tx, *id).await?, store::keys::list(tx, *id).await?)) })
    });
    let (user, keys) = read.await?;
    let user = user.ok_or(PersonError::UnknownCredential)?;
    // A revoked web key is not replaced: the operator has stopped the user's trading.
    if keys.iter().any(|key| key.kind == KeyKind::Web) {
        return Ok(None);
    }
    Ok(Some(new_web_key(ctx, user_id, user.tier)?))
}

async fn insert_missing_web_key(tx: &mut Tx, new: Option<&NewWebKey>) -> Result<(), PersonError> {
    let Some(new) = new else { return Ok(()) };
    // Another sign-in may have inserted one meanwhile. The user's row is locked.
    if store::keys::find_web(tx, new.user_id()).await?.is_none() {
        insert_web_key(tx, new).await?;
    }
    Ok(())
}

/// Returns the context in which a person acts: the user's log has what they do.
pub fn context_of(ctx: &Ctx, person: &Person) -> Ctx {
    Ctx { store: user_log::acting(ctx, person.user_id(), person.session().ip, None), ..ctx.clone() }
}

/// Returns an act of a user on their own settings.
pub(crate) fn act_of(user_id: UserId, action: &'static str) -> Act {
    Act::new(action, format!("user:{user_id}"))
}
