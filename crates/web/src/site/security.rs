//! The security page: owners of the account, sign-in keys and sessions.

use app::passkeys::owner_of;
use app::sessions::{self, Person};
use app::{accounts, owner_acts, people, user_log};
use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chain::AccountOwner;
use domain::credential::CredentialKey;
use domain::passkey::BackupState;
use http_kit::{PathId, Problem, Shared};
use presentation::amounts;
use store::credentials::Credential;
use store::sessions::Session;

use super::activity::{ActivityLine, MAX_ENTRIES};
use super::acts::{ActForm, owner_in};
use super::form_body::{FormFields, ScriptBody};
use super::session::{Member, problem_of, see, to_sign_in};
use super::shell::{Reader, Section, Shell, answer, render};
use super::sign_in::Credentials;

const PATH: &str = "/settings/security";

/// An owner of the account, or a key that only signs in.
#[derive(Debug)]
struct KeyLine {
    /// The id of the credential. `None` for an owner that has not confirmed the account.
    id: Option<String>,
    name: String,
    kind: &'static str,
    /// A lost device does not lose it.
    is_safe: bool,
    /// The owner in the contract's form.
    owner: String,
    added: String,
}

impl KeyLine {
    fn of_owner(owner: &AccountOwner, credentials: &[Credential]) -> Self {
        let known = credentials.iter().find(|credential| owner_of(&credential.key) == *owner);
        if let Some(credential) = known {
            return Self::of_credential(credential);
        }
        let (name, kind) = match owner {
            AccountOwner::Eoa(address) => (address.to_string(), "Wallet or paper key"),
            AccountOwner::Passkey { .. } => ("A passkey".to_owned(), "Passkey of another site"),
        };
        Self { id: None, name, kind, is_safe: true, owner: owner.to_string(), added: String::new() }
    }

    fn of_credential(credential: &Credential) -> Self {
        let (kind, is_safe) = match &credential.key {
            CredentialKey::Wallet(_) => ("Wallet", true),
            CredentialKey::Passkey(_) if credential.backup == Some(BackupState::BackedUp) => {
                ("Synced passkey", true)
            }
            CredentialKey::Passkey(_) => ("Passkey of one device", false),
        };
        Self {
            id: Some(credential.id.to_string()),
            name: credential.name.clone(),
            kind,
            is_safe,
            owner: owner_of(&credential.key).to_string(),
            added: amounts::day(credential.created_at),
        }
    }
}

/// A session of the person.
#[derive(Debug)]
struct SessionLine {
    browser: String,
    ip: String,
    since: String,
    is_current: bool,
}

#[derive(Debug, Template)]
#[template(path = "site/security.html")]
struct SecurityPage {
    shell: Shell,
    owners: Vec<KeyLine>,
    /// Keys that sign in and own nothing.
    keys: Vec<KeyLine>,
    /// Some owners have not confirmed the account, so they cannot sign in.
    has_unconfirmed: bool,
    /// The account is on chain, so that owners are added and removed by acts.
    is_deployed: bool,
    /// The owner that the first act will add.
    second_owner: Option<String>,
    /// The account lets the service move its USDC into trades.
    has_approval: bool,
    /// Trading on this site is paused.
    is_paused: bool,
    sessions: Vec<SessionLine>,
    activity: Vec<ActivityLine>,
    needs_step_up: bool,
    form: ActForm,
}

/// `GET /settings/security`.
pub async fn page(State(app): State<Shared>, reader: Reader) -> Result<Response, Problem> {
    let Some(person) = &reader.person else { return to_sign_in(&app, &reader.path) };
    let ctx = &app.ctx;
    let (credentials, live, owned) = tokio::try_join!(
        people::list_credentials(ctx, person),
        sessions::list(ctx, person),
        accounts::owners(ctx, person.user_id())
    )?;
    let is_owner = |credential: &&Credential| owned.owners.contains(&owner_of(&credential.key));
    let web_key = person.web_key();
    let state = ctx
        .chain
        .account_state(owned.account.address, web_key.key_index)
        .await
        .map_err(app::AppError::from)?;
    let page = SecurityPage {
        shell: Shell::new(&reader, Section::None, "Security"),
        owners: owned.owners.iter().map(|owner| KeyLine::of_owner(owner, &credentials)).collect(),
        has_unconfirmed: owned.owners.len() > credentials.iter().filter(is_owner).count(),
        keys: credentials.iter().filter(|it| !is_owner(it)).map(KeyLine::of_credential).collect(),
        is_deployed: owned.provisioned,
        second_owner: owner_acts::find_second_owner(ctx, person.user_id()).await?,
        // The pause of a revoked key does not hide the button that pauses the other keys.
        is_paused: web_key.paused_at.is_some() && !person.is_web_key_revoked(),
        has_approval: !state.gate_allowance_atomic.is_zero(),
        needs_step_up: person.require_step_up(ctx.now()).is_err(),
        sessions: live.iter().map(|session| SessionLine::new(session, person)).collect(),
        activity: user_log::list(ctx, person.user_id(), None, MAX_ENTRIES)
            .await?
            .iter()
            .map(ActivityLine::new)
            .collect(),
        form: ActForm::new(&app, owned.account.address)?,
    };
    Ok(answer(render(&page)?))
}

/// `POST /settings/security/pause`: pauses trading of all the person's keys. Needs no confirmation.
pub async fn pause_trading(State(app): State<Shared>, Member(person): Member) -> Result<Response, Problem> {
    app.mutate(async move |app| people::pause_trading(&app.ctx, &person).await).await?;
    see(PATH)
}

/// `POST /settings/security/resume`: lets this site trade again.
pub async fn resume_trading(State(app): State<Shared>, Member(person): Member) -> Result<Response, Problem> {
    let resumed = people::resume_trading(&app.ctx, &person).await;
    resumed.map_err(|error| problem_of(error, app.ctx.now()))?;
    see(PATH)
}

/// `POST /settings/sessions/end`: ends all other sessions.
pub async fn end_sessions(State(app): State<Shared>, Member(person): Member) -> Result<Response, Problem> {
    sessions::end_others(&app.ctx, &person).await.map_err(|error| problem_of(error, app.ctx.now()))?;
    see(PATH)
}

/// `POST /app/credentials`: adds a passkey or a wallet that signs in.
pub async fn add_credential(
    State(app): State<Shared>,
    Member(person): Member,
    ScriptBody(body): ScriptBody<Credentials>,
) -> Result<Response, Problem> {
    let (new, name) = (body.registration()?, body.name());
    let added = app
        .mutate(async move |app| Ok(people::add_credential(&app.ctx, &person, &new, name.as_deref()).await));
    added.await?.map_err(|error| problem_of(error, app.ctx.now()))?;
    Ok(http_kit::json(&serde_json::json!({ "next": PATH })).into_response())
}

/// `POST /settings/credentials/{id}/remove`.
pub async fn remove_credential(
    State(app): State<Shared>,
    Member(person): Member,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let id = id.parse().map_err(|_| Problem::not_found())?;
    let removed = people::remove_credential(&app.ctx, &person, id).await;
    removed.map_err(|error| problem_of(error, app.ctx.now()))?;
    see(PATH)
}

/// `POST /settings/security/second-owner`: stores the owner that the first act will add. An empty
/// field removes the choice.
pub async fn choose_second_owner(
    State(app): State<Shared>,
    Member(person): Member,
    form: FormFields,
) -> Result<Response, Problem> {
    let owner = match form.get("owner").trim() {
        "" => None,
        text => Some(owner_in(text)?),
    };
    let chosen = owner_acts::choose_second_owner(&app.ctx, &person, owner).await;
    chosen.map_err(|error| problem_of(error, app.ctx.now()))?;
    see(PATH)
}

impl SessionLine {
    fn new(session: &Session, person: &Person) -> Self {
        Self {
            browser: browser_of(&session.user_agent).to_owned(),
            ip: session.ip.to_string(),
            since: amounts::minute(session.created_at),
            is_current: session.id == person.session().id,
        }
    }
}

/// Returns a short name of a browser. A user agent names several, the most specific one last.
fn browser_of(user_agent: &str) -> &'static str {
    const NAMES: [(&str, &str); 5] = [
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ];
    NAMES.iter().find(|(mark, _)| user_agent.contains(mark)).map_or("Unknown browser", |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_browser_of_a_user_agent_counts() {
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0 Safari/537.36";
        assert_eq!(browser_of(chrome), "Chrome");
        assert_eq!(browser_of(&format!("{chrome} Edg/150.0")), "Edge");
        assert_eq!(browser_of("curl/8"), "Unknown browser");
    }
}
