//! The steps after signing up. Each can be left and resumed: the page shows what is done from the state
//! of the account, not from where the person was.

use app::portfolio::of_person;
use app::{accounts, owner_acts};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use http_kit::{Problem, Shared};
use presentation::amounts;

use super::account::{faucet_of, other_owners};
use super::acts::ActForm;
use super::session::to_sign_in;
use super::shell::{Reader, Section, Shell, answer, render};

/// A step and whether it is done.
#[derive(Debug)]
struct Step {
    label: &'static str,
    is_done: bool,
    /// The first step that is not done.
    is_current: bool,
}

#[derive(Debug, Template)]
#[template(path = "site/welcome.html")]
struct WelcomePage {
    shell: Shell,
    steps: Vec<Step>,
    has_second_owner: bool,
    /// Who else can move the money, before there is any.
    others: Option<String>,
    has_money: bool,
    /// The operator has stopped trading on this site.
    is_stopped: bool,
    can_trade: bool,
    has_traded: bool,
    cash: String,
    faucet: Option<String>,
    /// The largest caps of the person's tier, in dollars and as decimals.
    per_trade: String,
    daily: String,
    per_trade_exact: String,
    daily_exact: String,
    form: ActForm,
}

/// `GET /welcome`.
pub async fn page(State(app): State<Shared>, reader: Reader) -> Result<Response, Problem> {
    let Some(person) = &reader.person else { return to_sign_in(&app, &reader.path) };
    let (ctx, user_id) = (&app.ctx, person.user_id());
    let web_key = person.web_key();
    let (owned, owners, second_owner) = tokio::try_join!(
        of_person(ctx, person),
        accounts::owners(ctx, user_id),
        owner_acts::find_second_owner(ctx, user_id)
    )?;
    let cash = owned.cash();
    let has_second_owner = owners.owners.len() > 1 || second_owner.is_some();
    let has_traded = !owned.positions.is_empty();
    let has_money = cash > domain::Usdc::ZERO || has_traded;
    let others = if has_money { None } else { other_owners(&app, person, &owners.owners).await? };
    let can_trade = person.lets_site_trade(&owned.state, ctx.now());
    let done = [
        ("Your key", true),
        ("A second owner", has_second_owner),
        ("Money", has_money),
        ("Trading", can_trade),
        ("First trade", has_traded),
    ];
    let current = done.iter().position(|(_, is_done)| !is_done);
    let step = |(place, (label, is_done)): (usize, (&'static str, bool))| Step {
        label,
        is_done,
        is_current: current == Some(place),
    };
    let limits = web_key.tier.limits(&web_key.overrides);
    let page = WelcomePage {
        shell: Shell::new(&reader, Section::None, "Welcome"),
        steps: done.into_iter().enumerate().map(step).collect(),
        has_second_owner,
        others,
        has_money,
        is_stopped: person.is_web_key_revoked(),
        can_trade,
        has_traded,
        cash: amounts::dollars(cash),
        faucet: faucet_of(&app, cash),
        per_trade: amounts::dollars(limits.per_trade),
        daily: amounts::dollars(limits.daily),
        per_trade_exact: limits.per_trade.to_decimal(),
        daily_exact: limits.daily.to_decimal(),
        form: ActForm::new(&app, owned.account.address)?,
    };
    Ok(answer(render(&page)?))
}
