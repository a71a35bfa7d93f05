//! The page of one user: account, keys, sessions and acts.

use std::time::Duration;

use app::owner_acts::error_of;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::credential::{CredentialKind, Role};
use domain::ids::UserId;
use domain::key::{KeyKind, Tier};
use domain::{Timestamp, Usdc};
use http_kit::{PathId, Problem, Shared};
use presentation::amounts;
use store::credentials::Credential;
use store::keys::{Key, TradingStop};
use store::owner_acts::OwnerAct;
use store::sessions::Session;
use store::users::{Account, User};
use store::{StoreError, Tx};

use super::{Admin, Area};
use crate::site::activity::{ActivityLine, MAX_ENTRIES};
use crate::site::shell::{Reader, Section, Shell, answer, render};

/// The time that the chain has to answer. The page is shown without it.
const CHAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// The number of listed acts.
const MOST_ACTS: u32 = 20;

const TIERS: [Tier; 4] = [Tier::Free, Tier::Developer, Tier::Enterprise, Tier::Mm];

/// A key of the user.
#[derive(Debug)]
struct KeyLine {
    id: String,
    name: String,
    kind: &'static str,
    hint: String,
    tier: &'static str,
    per_trade: String,
    daily: String,
    state: (&'static str, &'static str),
    is_paused: bool,
    is_revoked: bool,
}

impl KeyLine {
    fn new(key: &Key, now: Timestamp) -> Self {
        let limits = key.limits();
        Self {
            id: key.id.to_string(),
            name: key.name.clone(),
            kind: match key.kind {
                KeyKind::Web => "web application",
                KeyKind::Api => "API",
            },
            hint: key.hint.clone().unwrap_or_default(),
            tier: key.tier.as_str(),
            per_trade: amounts::dollars(limits.per_trade),
            daily: amounts::dollars(limits.daily),
            state: match key.trading_stop(now) {
                None => ("Active", "is-good"),
                Some(TradingStop::Paused) => ("Paused", "is-wait"),
                Some(TradingStop::Expired) => ("Expired", "is-bad"),
                Some(TradingStop::Revoked) => ("Revoked", "is-bad"),
            },
            is_paused: key.paused_at.is_some(),
            is_revoked: key.revoked_at.is_some(),
        }
    }
}

/// A passkey or wallet of the user.
#[derive(Debug)]
struct CredentialLine {
    name: String,
    kind: &'static str,
    may: &'static str,
    last_used: String,
}

impl CredentialLine {
    fn new(credential: &Credential) -> Self {
        Self {
            name: credential.name.clone(),
            kind: if credential.passkey_id.is_some() { "Passkey" } else { "Wallet" },
            may: match credential.kind {
                CredentialKind::Owner => "owns the account",
                CredentialKind::SignIn => "signs in",
            },
            last_used: credential.last_used_at.map_or_else(|| "never".to_owned(), amounts::minute),
        }
    }
}

/// A session of the user.
#[derive(Debug)]
struct SessionLine {
    agent: String,
    ip: String,
    since: String,
}

/// An act that an owner signed.
#[derive(Debug)]
struct ActLine {
    kind: &'static str,
    status: &'static str,
    at: String,
    error: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "site/admin/user.html")]
struct UserPage {
    shell: Shell,
    area: Area,
    id: String,
    path: String,
    name: String,
    is_admin: bool,
    is_self: bool,
    has_passkey: bool,
    tier: &'static str,
    tiers: Vec<&'static str>,
    since: String,
    address: Option<String>,
    reserved: String,
    /// `None` if the chain does not answer.
    balance: Option<String>,
    keys: Vec<KeyLine>,
    credentials: Vec<CredentialLine>,
    sessions: Vec<SessionLine>,
    acts: Vec<ActLine>,
    activity: Vec<ActivityLine>,
}

struct Rows {
    user: User,
    account: Option<Account>,
    keys: Vec<Key>,
    credentials: Vec<Credential>,
    sessions: Vec<Session>,
    acts: Vec<OwnerAct>,
}

impl Rows {
    async fn read(tx: &mut Tx, id: UserId, now: Timestamp) -> Result<Option<Self>, StoreError> {
        let Some(user) = store::users::find(tx, id).await? else { return Ok(None) };
        Ok(Some(Self {
            user,
            account: store::users::find_account(tx, id).await?,
            keys: store::keys::list(tx, id).await?,
            credentials: store::credentials::list(tx, id).await?,
            sessions: store::sessions::list_live(tx, id, now).await?,
            acts: store::owner_acts::list_of_user(tx, id, None, MOST_ACTS).await?,
        }))
    }
}

/// `GET /admin/users/{id}`.
pub async fn page(
    State(app): State<Shared>,
    Admin(admin): Admin,
    reader: Reader,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let id: UserId = id.parse().map_err(|_| Problem::not_found())?;
    let now = app.ctx.now();
    let rows = app.ctx.store.read((id, now), |tx, (id, now)| Box::pin(Rows::read(tx, *id, *now)));
    let Rows { user, account, keys, credentials, sessions, acts } =
        rows.await?.ok_or_else(Problem::not_found)?;
    let activity = app::user_log::list(&app.ctx, id, None, MAX_ENTRIES).await?;
    let balance = match &account {
        Some(account) => {
            let read = tokio::time::timeout(CHAIN_TIMEOUT, app.ctx.chain.usdc_balance(account.address));
            read.await.ok().and_then(Result::ok)
        }
        None => None,
    };
    let dollars =
        |atomic| amounts::dollars(Usdc::from_atomic(u64::try_from(atomic).unwrap_or(i64::MAX as u64)));
    let page = UserPage {
        shell: Shell::new(&reader, Section::None, user.name.clone()),
        area: Area::Users,
        id: user.id.to_string(),
        path: format!("/admin/users/{}", user.id),
        name: user.name,
        is_admin: user.role == Role::Admin,
        is_self: user.id == admin.user_id(),
        has_passkey: credentials.iter().any(|credential| credential.passkey_id.is_some()),
        tier: user.tier.as_str(),
        tiers: TIERS.into_iter().map(Tier::as_str).collect(),
        since: amounts::minute(user.created_at),
        address: account.as_ref().map(|account| account.address.to_string()),
        reserved: amounts::dollars(account.as_ref().map_or(Usdc::ZERO, |account| account.reserved)),
        balance: balance.map(dollars),
        keys: keys.iter().map(|key| KeyLine::new(key, now)).collect(),
        credentials: credentials.iter().map(CredentialLine::new).collect(),
        sessions: sessions.into_iter().map(SessionLine::new).collect(),
        acts: acts.iter().map(ActLine::new).collect(),
        activity: activity.iter().map(ActivityLine::new).collect(),
    };
    Ok(answer(render(&page)?))
}

impl SessionLine {
    fn new(session: Session) -> Self {
        Self {
            agent: session.user_agent,
            ip: session.ip.to_string(),
            since: amounts::minute(session.created_at),
        }
    }
}

impl ActLine {
    fn new(act: &OwnerAct) -> Self {
        Self {
            kind: act.kind.as_str(),
            status: act.status.as_str(),
            at: amounts::minute(act.created_at),
            error: error_of(act).map(|error| error.detail),
        }
    }
}
