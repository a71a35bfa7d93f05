//! The list of a person's keys, and issuing a new one.

use app::keys::list_own;
use app::people::{NewApiKey, issue_api_key};
use app::{AppError, usage};
use askama::Template;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_ENCODING};
use axum::response::Response;
use domain::Timestamp;
use domain::ids::KeyId;
use domain::key::{IpAllowlist, Scope, Scopes};
use domain::time::DAY_MS;
use http_kit::{ClientAddress, Problem, Shared};
use presentation::amounts;
use store::keys::{Key, MAX_ACTIVE, TradingStop};

use super::{allowed, caller_of};
use crate::site::form_body::FormFields;
use crate::site::session::{Member, to_sign_in};
use crate::site::shell::{Reader, Section, Shell, answer, render};

/// The lifetimes that the form offers, in days.
pub const LIFETIMES: [(&str, &str, i64); 4] =
    [("0", "Never", 0), ("30", "In 30 days", 30), ("90", "In 90 days", 90), ("365", "In a year", 365)];

/// A key in the list.
#[derive(Debug)]
struct KeyLine {
    id: String,
    name: String,
    hint: Option<String>,
    scopes: String,
    /// The state in words, and its class.
    state: (&'static str, &'static str),
    last_used: String,
    expires: String,
}

impl KeyLine {
    fn new(key: &Key, last_used: Option<Timestamp>, now: Timestamp) -> Self {
        Self {
            id: key.id.to_string(),
            name: key.name.clone(),
            hint: key.hint.clone(),
            scopes: key.scopes.iter().map(Scope::as_str).collect::<Vec<_>>().join(", "),
            state: state_of(key, now),
            last_used: last_used.map_or_else(|| "Never".to_owned(), amounts::minute),
            expires: key.expires_at.map_or_else(|| "Never".to_owned(), amounts::day),
        }
    }
}

/// Returns the number of keys that have not expired.
fn active_count(keys: &[KeyLine]) -> i64 {
    keys.iter().filter(|key| key.state.0 != "Expired").count() as i64
}

/// Returns the state of a key in words, and the class of its badge.
pub fn state_of(key: &Key, now: Timestamp) -> (&'static str, &'static str) {
    match key.trading_stop(now) {
        None => ("Active", "is-good"),
        Some(TradingStop::Paused) => ("Trading paused", "is-wait"),
        Some(TradingStop::Expired) => ("Expired", "is-bad"),
        Some(TradingStop::Revoked) => ("Revoked", "is-bad"),
    }
}

/// A scope that a key can have.
#[derive(Debug)]
struct ScopeChoice {
    name: &'static str,
    purpose: &'static str,
    /// Whether the tier's default scopes contain it.
    is_usual: bool,
}

/// Returns what a scope allows, with its routes.
const fn purpose_of(scope: Scope) -> &'static str {
    match scope {
        Scope::MarketsRead => "Read markets, their trades and price history: GET /v1/markets",
        Scope::MarketsQuote => "Quote trades: GET /v1/markets/{id}/quote",
        Scope::PortfolioRead => "Read your portfolio and positions: GET /v1/portfolio",
        Scope::TradesRead => "Read your trades, claims and events: GET /v1/trades, /v1/events",
        Scope::TradesWrite => "Trade and claim within the caps: POST /v1/trades, /v1/redemptions",
        Scope::WebhooksManage => "Read and redeliver webhook events: GET /v1/webhooks/events",
        Scope::AuthManage => "Read the key's own usage: GET /v1/account/usage",
    }
}

#[derive(Debug, Template)]
#[template(path = "site/developers/keys.html")]
struct KeysPage {
    shell: Shell,
    keys: Vec<KeyLine>,
    most: i64,
    /// There is no place for another key.
    is_full: bool,
    needs_step_up: bool,
    form_id: String,
    scopes: Vec<ScopeChoice>,
    lifetimes: [(&'static str, &'static str, i64); 4],
    own_address: String,
}

/// `GET /settings/keys`.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    ClientAddress(ip): ClientAddress,
) -> Result<Response, Problem> {
    let Some(person) = &reader.person else { return to_sign_in(&app, &reader.path) };
    let now = app.ctx.now();
    let mut keys = Vec::new();
    for key in list_own(&app.ctx, person.user_id()).await? {
        let used = usage::of_key(&app.ctx, &caller_of(person, key.clone())).await?;
        keys.push(KeyLine::new(&key, used.last_used_at, now));
    }
    let usual = person.user().tier.default_scopes();
    let choice = |scope: &Scope| ScopeChoice {
        name: scope.as_str(),
        purpose: purpose_of(*scope),
        is_usual: usual.contains(*scope),
    };
    let page = KeysPage {
        shell: Shell::new(&reader, Section::None, "API keys"),
        is_full: active_count(&keys) >= MAX_ACTIVE,
        keys,
        most: MAX_ACTIVE,
        needs_step_up: person.require_step_up(now).is_err(),
        form_id: KeyId(app.ctx.uuid()).to_string(),
        scopes: Scope::ALL.iter().map(choice).collect(),
        lifetimes: LIFETIMES,
        own_address: ip.to_canonical().to_string(),
    };
    Ok(answer(render(&page)?))
}

#[derive(Debug, Template)]
#[template(path = "site/developers/issued.html")]
struct IssuedPage {
    shell: Shell,
    id: String,
    name: String,
    plaintext: String,
    webhook_secret: Option<String>,
    base_url: String,
    can_trade: bool,
}

/// `POST /settings/keys`: issues a key. Its plaintext is only in this response.
pub async fn issue(
    State(app): State<Shared>,
    reader: Reader,
    Member(person): Member,
    form: FormFields,
) -> Result<Response, Problem> {
    let id: KeyId =
        form.get("form").parse().map_err(|_| AppError::field("/form", "must be that of the page"))?;
    let wanted = NewApiKey {
        name: form.get("name").trim().to_owned(),
        scopes: scopes_of(&form)?,
        expires_at: expiry_of(&form, app.ctx.now())?,
        ip_allowlist: allowlist_of(&form)?,
        webhook_url: Some(form.get("webhook").trim()).filter(|url| !url.is_empty()).map(str::to_owned),
        is_agent: form.get("agent") == "on",
    };
    let issued = app.mutate(async move |app| Ok(issue_api_key(&app.ctx, &person, id.0, wanted).await));
    let issued = allowed(&app, issued.await?)?;
    let page = IssuedPage {
        shell: Shell::new(&reader, Section::None, "Key issued"),
        id: issued.key.id.to_string(),
        name: issued.key.name.clone(),
        plaintext: issued.plaintext.expose().to_owned(),
        webhook_secret: issued.key.webhook_url.is_some().then(|| issued.webhook_secret.expose().to_owned()),
        base_url: app.app_url.clone(),
        can_trade: issued.key.scopes.contains(Scope::TradesWrite),
    };
    Ok(secret(answer(render(&page)?)))
}

/// Marks a response that contains a secret. It is stored nowhere, and not compressed, because the
/// length of a compressed page would depend on the secret.
pub fn secret(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("identity"));
    response
}

fn scopes_of(form: &FormFields) -> Result<Scopes, AppError> {
    let chosen: Vec<&str> = form.all("scope").collect();
    let scopes = chosen.join(",").parse().ok().filter(|_| !chosen.is_empty());
    scopes.ok_or_else(|| AppError::field("/scope", "must be at least one of the listed scopes"))
}

/// Returns the chosen end of a key.
pub fn expiry_of(form: &FormFields, now: Timestamp) -> Result<Option<Timestamp>, AppError> {
    match LIFETIMES.iter().find(|(word, ..)| *word == form.get("expires")) {
        Some((.., 0)) => Ok(None),
        Some((.., days)) => Ok(Some(now.plus_ms(days * DAY_MS))),
        None => Err(AppError::field("/expires", "must be one of the listed lifetimes")),
    }
}

pub fn allowlist_of(form: &FormFields) -> Result<IpAllowlist, AppError> {
    let text = form.get("allowlist").trim();
    if text.is_empty() {
        return Ok(IpAllowlist::default());
    }
    let entries = text.split([',', '\n', ' ']).map(str::trim).filter(|entry| !entry.is_empty());
    let joined = entries.collect::<Vec<_>>().join(",");
    joined
        .parse()
        .map_err(|_| AppError::wrong_value("/allowlist", "must be IP addresses or CIDR ranges", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scope_names_its_routes() {
        for scope in Scope::ALL {
            assert!(purpose_of(*scope).contains("/v1/"), "{}", scope.as_str());
        }
    }
}
