//! The page of one key: its limits, its delegation, its webhook, and what can be done with it.

use app::people::{self, KeyEnd};
use app::webhooks::ReceiverState;
use app::{AppError, accounts, usage};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::Usdc;
use domain::ids::KeyId;
use domain::key::{ChosenCaps, Scope};
use domain::webhook::Admission;
use http_kit::{ClientAddress, PathId, Problem, Shared};
use presentation::amounts;
use store::keys::Key;

use super::keys::{LIFETIMES, allowlist_of, expiry_of, secret, state_of};
use super::{allowed, caller_of, key_id, own_key};
use crate::site::acts::ActForm;
use crate::site::form_body::FormFields;
use crate::site::session::{Member, see, to_sign_in};
use crate::site::shell::{Reader, Section, Shell, answer, render};

/// The receiver of a key's events, in words.
#[derive(Debug)]
struct ReceiverLine {
    url: String,
    /// Why nothing is sent at the moment.
    held: Option<String>,
    /// The event that the others wait for.
    head: Option<String>,
    rotated: Option<String>,
    /// Until when the previous secret signs too.
    previous_until: Option<String>,
}

impl ReceiverLine {
    fn new(key: &Key, state: &ReceiverState, now: domain::Timestamp) -> Self {
        let held = match state.admission {
            Admission::Send => None,
            Admission::Wait { until } => Some(format!(
                "The receiver has failed too often. The next attempt is at {}.",
                amounts::minute(until)
            )),
            Admission::Probe => Some("The next attempt decides if the receiver works again.".to_owned()),
        };
        let head = state.head.as_ref().filter(|(head, _)| head.attempts > 0).map(|(head, at)| {
            format!(
                "Held by {} of {} after {}; {} behind it. The next attempt is at {}.",
                head.kind,
                amounts::minute(head.began_at),
                amounts::count(u64::from(head.attempts), "attempt"),
                amounts::count(state.waiting.saturating_sub(1), "event"),
                amounts::minute(*at)
            )
        });
        let previous = state.secrets.previous.as_ref().map(|(_, until)| *until).filter(|until| *until > now);
        Self {
            url: key.webhook_url.clone().unwrap_or_default(),
            held,
            head,
            rotated: state.secrets.rotated_at.map(amounts::minute),
            previous_until: previous.map(amounts::minute),
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "site/developers/key.html")]
struct KeyPage {
    shell: Shell,
    id: String,
    /// The page's own path.
    path: String,
    name: String,
    hint: Option<String>,
    state: (&'static str, &'static str),
    is_paused: bool,
    is_agent: bool,
    scopes: Vec<&'static str>,
    allowlist: Vec<String>,
    created: String,
    expires: String,
    last_used: String,
    spent: String,
    remaining: String,
    per_trade: String,
    daily: String,
    per_trade_exact: String,
    daily_exact: String,
    requests: u64,
    per_minute: u32,
    can_trade: bool,
    /// The end of the delegation on chain, if the account lets the key spend.
    delegated_until: Option<String>,
    /// The caps on chain.
    chain_per_trade: String,
    chain_daily: String,
    tier: &'static str,
    /// The most that the key's tier allows.
    most_per_trade: String,
    most_daily: String,
    most_per_trade_exact: String,
    most_daily_exact: String,
    /// Whether a cap is below that of the tier, here or on chain.
    can_raise: bool,
    receiver: ReceiverLine,
    lifetimes: [(&'static str, &'static str, i64); 4],
    own_address: String,
    is_expired: bool,
    needs_step_up: bool,
    form: ActForm,
}

/// `GET /settings/keys/{id}`.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    ClientAddress(ip): ClientAddress,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let Some(person) = &reader.person else { return to_sign_in(&app, &reader.path) };
    let key = own_key(&app, person, &id).await?;
    let (ctx, now, caller) = (&app.ctx, app.ctx.now(), caller_of(person, key.clone()));
    let account = accounts::account_of(ctx, person.user_id()).await?.address;
    let (used, receiver) =
        tokio::try_join!(usage::of_key(ctx, &caller), app::webhooks::endpoint(ctx, &caller))?;
    let on_chain = ctx.chain.account_state(account, key.key_index).await.map_err(AppError::from)?;
    let (limits, most) = (key.limits(), key.tier.limits(&key.overrides));
    let on_chain_per_trade = Usdc::from_atomic(on_chain.policy.per_trade_usdc_atomic);
    let on_chain_daily = Usdc::from_atomic(on_chain.policy.daily_usdc_atomic);
    let page = KeyPage {
        shell: Shell::new(&reader, Section::None, key.name.clone()),
        id: key.id.to_string(),
        path: format!("/settings/keys/{}", key.id),
        name: key.name.clone(),
        hint: key.hint.clone(),
        state: state_of(&key, now),
        is_paused: key.paused_at.is_some(),
        is_agent: key.is_agent,
        scopes: key.scopes.iter().map(Scope::as_str).collect(),
        allowlist: key.ip_allowlist.entries().collect(),
        created: amounts::minute(key.created_at),
        expires: key.expires_at.map_or_else(|| "never".to_owned(), amounts::day),
        last_used: used.last_used_at.map_or_else(|| "never".to_owned(), amounts::minute),
        spent: amounts::dollars(used.spend.last_24h),
        remaining: amounts::dollars(used.spend.remaining),
        per_trade: amounts::dollars(limits.per_trade),
        daily: amounts::dollars(limits.daily),
        per_trade_exact: limits.per_trade.to_decimal(),
        daily_exact: limits.daily.to_decimal(),
        requests: used.requests.day.latency.count(),
        per_minute: limits.requests_per_minute,
        can_trade: key.scopes.contains(Scope::TradesWrite),
        delegated_until: on_chain
            .lets_spend(now.s())
            .then(|| amounts::day(domain::Timestamp::from_s(on_chain.policy.expiry_s))),
        chain_per_trade: amounts::dollars(on_chain_per_trade),
        chain_daily: amounts::dollars(on_chain_daily),
        tier: key.tier.as_str(),
        most_per_trade: amounts::dollars(most.per_trade),
        most_daily: amounts::dollars(most.daily),
        most_per_trade_exact: most.per_trade.to_decimal(),
        most_daily_exact: most.daily.to_decimal(),
        can_raise: limits.per_trade.min(on_chain_per_trade) < most.per_trade
            || limits.daily.min(on_chain_daily) < most.daily,
        receiver: ReceiverLine::new(&key, &receiver, now),
        lifetimes: LIFETIMES,
        own_address: ip.to_canonical().to_string(),
        is_expired: key.expires_at.is_some_and(|end| end <= now),
        needs_step_up: person.require_step_up(now).is_err(),
        form: ActForm::new(&app, account)?,
    };
    Ok(answer(render(&page)?))
}

fn see_key(id: KeyId) -> Result<Response, Problem> {
    see(&format!("/settings/keys/{id}"))
}

/// `POST /settings/keys/{id}/caps`: lowers the caps.
pub async fn set_caps(
    State(app): State<Shared>,
    Member(person): Member,
    PathId(id): PathId,
    form: FormFields,
) -> Result<Response, Problem> {
    let id = key_id(&id)?;
    let cap = |name: &str| {
        let text = form.get(name).trim();
        let cap: Result<Usdc, _> = text.parse();
        cap.map_err(|_| AppError::wrong_value(&format!("/{name}"), "must be an amount in USDC", text))
    };
    let caps = ChosenCaps { per_trade: Some(cap("perTrade")?), daily: Some(cap("daily")?) };
    allowed(&app, people::lower_api_key_caps(&app.ctx, &person, id, caps).await)?;
    see_key(id)
}

/// `POST /settings/keys/{id}/access`: sets the allowed addresses, and the end unless it is kept.
pub async fn set_access(
    State(app): State<Shared>,
    Member(person): Member,
    PathId(id): PathId,
    form: FormFields,
) -> Result<Response, Problem> {
    let id = key_id(&id)?;
    let end = match form.get("expires") {
        "keep" => KeyEnd::Kept,
        _ => KeyEnd::At(expiry_of(&form, app.ctx.now())?),
    };
    let access = (allowlist_of(&form)?, end);
    allowed(&app, people::set_api_key_access(&app.ctx, &person, id, access).await)?;
    see_key(id)
}

/// `POST /settings/keys/{id}/pause`: stops the key's trading.
pub async fn pause_key(
    State(app): State<Shared>,
    Member(person): Member,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let id = key_id(&id)?;
    allowed(&app, people::pause_api_key(&app.ctx, &person, id).await)?;
    see_key(id)
}

/// `POST /settings/keys/{id}/resume`.
pub async fn resume_key(
    State(app): State<Shared>,
    Member(person): Member,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let id = key_id(&id)?;
    allowed(&app, people::resume_api_key(&app.ctx, &person, id).await)?;
    see_key(id)
}

/// `POST /settings/keys/{id}/agent`: marks the key as an agent's.
pub async fn mark_agent(
    State(app): State<Shared>,
    Member(person): Member,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let id = key_id(&id)?;
    allowed(&app, people::mark_api_key_as_agent(&app.ctx, &person, id).await)?;
    see_key(id)
}

/// `POST /settings/keys/{id}/revoke`.
pub async fn revoke_key(
    State(app): State<Shared>,
    Member(person): Member,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let id = key_id(&id)?;
    let revoked = app.mutate(async move |app| Ok(people::revoke_api_key(&app.ctx, &person, id).await));
    allowed(&app, revoked.await?)?;
    see("/settings/keys")
}

/// `POST /settings/keys/{id}/webhook`: sets or removes the URL.
pub async fn set_webhook(
    State(app): State<Shared>,
    Member(person): Member,
    PathId(id): PathId,
    form: FormFields,
) -> Result<Response, Problem> {
    let id = key_id(&id)?;
    let url = Some(form.get("url").trim()).filter(|url| !url.is_empty()).map(str::to_owned);
    allowed(&app, people::set_api_key_webhook(&app.ctx, &person, id, url).await)?;
    see_key(id)
}

/// `POST /settings/keys/{id}/webhook/test`: queues a test event.
pub async fn test_webhook(
    State(app): State<Shared>,
    Member(person): Member,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let id = key_id(&id)?;
    let sent = allowed(&app, people::send_api_key_test(&app.ctx, &person, id).await)?;
    see(&format!("/developers/webhooks/{}", sent.event_id))
}

#[derive(Debug, Template)]
#[template(path = "site/developers/rotated.html")]
struct RotatedPage {
    shell: Shell,
    id: String,
    secret: String,
    previous_until: String,
}

/// `POST /settings/keys/{id}/webhook/rotate`: replaces the secret. The new one is only in this
/// response.
pub async fn rotate_webhook_secret(
    State(app): State<Shared>,
    reader: Reader,
    Member(person): Member,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let id = key_id(&id)?;
    let rotated = app.mutate(async move |app| Ok(people::rotate_api_key_secret(&app.ctx, &person, id).await));
    let rotated = allowed(&app, rotated.await?)?;
    let page = RotatedPage {
        shell: Shell::new(&reader, Section::None, "New webhook secret"),
        id: id.to_string(),
        secret: rotated.secret.expose().to_owned(),
        previous_until: amounts::minute(rotated.previous_expires_at),
    };
    Ok(secret(answer(render(&page)?)))
}
