//! The pages of a person's own account.

use std::collections::HashSet;

use app::accounts::{self, Owners};
use app::faucet::FAUCET_USDC;
use app::people;
use app::portfolio::{ValuedPosition, of_person};
use app::redemptions::{claim_own, list_claiming};
use app::sessions::Person;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use chain::AccountOwner;
use domain::Usdc;
use domain::ids::MarketId;
use http_kit::{Problem, Query, Shared};
use presentation::amounts;

use super::acts::ActForm;
use super::form_body::FormFields;
use super::profit::{ProfitQuery, ProfitSection};
use super::qr_code;
use super::session::{Member, see, to_sign_in};
use super::shell::{Reader, Section, Shell, answer, render};

/// From this value on, an account with a single owner is warned.
const MUCH: Usdc = Usdc::from_whole(500);

/// A position of the person.
#[derive(Debug)]
struct OwnPosition {
    market_id: String,
    question: String,
    outcome: String,
    tokens: String,
    cost: String,
    value: String,
    profit: String,
    is_loss: bool,
    outcome_index: u8,
    /// The amount that a claim would pay, if the position can be claimed.
    claimable: Option<String>,
    /// A claim is not paid yet.
    is_claiming: bool,
}

#[derive(Debug, Template)]
#[template(path = "site/portfolio.html")]
struct PortfolioPage {
    shell: Shell,
    needs_second_owner: bool,
    /// Who else can move the money, before there is any.
    others: Option<String>,
    total: String,
    cash: String,
    reserved: String,
    invested: String,
    positions: Vec<OwnPosition>,
    /// The amount that claims would pay, if there are any.
    claimable: Option<String>,
    over_time: Option<ProfitSection>,
    address: String,
    usdc: String,
    chain_id: u64,
    is_deployed: bool,
    /// The operator has stopped trading on this site.
    is_stopped: bool,
    /// The account lets this site trade for it.
    can_trade: bool,
    per_trade: String,
    daily: String,
    /// The amount that the faucet of a demonstration gives, if there is one and the account needs it.
    faucet: Option<String>,
    form: ActForm,
}

/// `GET /portfolio`.
pub async fn portfolio(
    State(app): State<Shared>,
    reader: Reader,
    Query(query): Query<ProfitQuery>,
) -> Result<Response, Problem> {
    let Some(person) = &reader.person else { return to_sign_in(&app, &reader.path) };
    let (owned, owners, claiming) = tokio::try_join!(
        of_person(&app.ctx, person),
        accounts::owners(&app.ctx, person.user_id()),
        list_claiming(&app.ctx, person)
    )?;
    let limits = person.web_key().limits();
    let invested =
        owned.positions.iter().fold(0_u64, |sum, position| sum.saturating_add(position.value.atomic()));
    let cash = owned.cash();
    let total = Usdc::from_atomic(cash.atomic().saturating_add(invested));
    let others = if total == Usdc::ZERO { other_owners(&app, person, &owners.owners).await? } else { None };
    let page = PortfolioPage {
        shell: Shell::new(&reader, Section::None, "Portfolio"),
        needs_second_owner: total >= MUCH && owners.owners.len() < 2,
        others,
        total: amounts::dollars(total),
        cash: amounts::dollars(cash),
        reserved: amounts::dollars(owned.account.reserved),
        invested: amounts::dollars(Usdc::from_atomic(invested)),
        positions: owned
            .positions
            .iter()
            .filter(|it| it.is_open() || is_claiming(it, &claiming))
            .map(|it| OwnPosition::new(it, &claiming))
            .collect(),
        claimable: Some(claimable_of(&owned.positions, &claiming))
            .filter(|sum| *sum > Usdc::ZERO)
            .map(amounts::dollars),
        over_time: ProfitSection::read(&app, person, &query).await,
        address: owned.account.address.to_string(),
        usdc: app.ctx.chain.contracts().usdc.to_string(),
        chain_id: app.ctx.chain.chain_id(),
        is_deployed: owned.state.provisioned,
        is_stopped: person.is_web_key_revoked(),
        can_trade: person.lets_site_trade(&owned.state, app.ctx.now()),
        per_trade: amounts::dollars(limits.per_trade),
        daily: amounts::dollars(limits.daily),
        faucet: faucet_of(&app, cash),
        form: ActForm::new(&app, owned.account.address)?,
    };
    Ok(answer(render(&page)?))
}

/// The positions whose claims are not paid yet, by market and outcome.
type Claiming = HashSet<(MarketId, u8)>;

fn is_claiming(valued: &ValuedPosition, claiming: &Claiming) -> bool {
    claiming.contains(&(valued.held.market_id, valued.held.outcome_index))
}

/// Returns the sum that new claims would pay.
fn claimable_of(positions: &[ValuedPosition], claiming: &Claiming) -> Usdc {
    let open = positions.iter().filter(|it| it.is_claimable && !is_claiming(it, claiming));
    open.fold(Usdc::ZERO, |sum, it| sum.checked_add(it.claimable).unwrap_or(sum))
}

impl OwnPosition {
    fn new(valued: &ValuedPosition, claiming: &Claiming) -> Self {
        let is_claiming = is_claiming(valued, claiming);
        let profit = valued.unrealized_pnl();
        Self {
            market_id: valued.market.id.to_string(),
            question: valued.market.question.clone(),
            outcome: valued.label.clone(),
            tokens: amounts::tokens(valued.position().tokens),
            cost: amounts::dollars(valued.position().cost_basis),
            value: amounts::dollars(valued.value),
            profit: amounts::profit(profit),
            is_loss: profit.0 < 0,
            outcome_index: valued.held.outcome_index,
            claimable: (valued.is_claimable && !is_claiming).then(|| amounts::dollars(valued.claimable)),
            is_claiming,
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "site/withdraw.html")]
struct WithdrawPage {
    shell: Shell,
    cash: String,
    /// The amount that the field suggests.
    amount: String,
    form: ActForm,
}

/// `GET /withdraw`.
pub async fn withdraw(State(app): State<Shared>, reader: Reader) -> Result<Response, Problem> {
    let Some(person) = &reader.person else { return to_sign_in(&app, &reader.path) };
    let owned = of_person(&app.ctx, person).await?;
    let cash = owned.cash().saturating_sub(owned.account.reserved);
    let page = WithdrawPage {
        shell: Shell::new(&reader, Section::None, "Withdraw"),
        cash: amounts::dollars(cash),
        amount: cash.to_decimal(),
        form: ActForm::new(&app, owned.account.address)?,
    };
    Ok(answer(render(&page)?))
}

/// `POST /portfolio/claims`: claims the position of the form, or all.
pub async fn claim(
    State(app): State<Shared>,
    Member(person): Member,
    form: FormFields,
) -> Result<Response, Problem> {
    let chosen = match form.get("market") {
        "" => None,
        market => {
            let place = market.parse().ok().zip(form.get("outcome").parse().ok());
            Some(place.ok_or_else(Problem::not_found)?)
        }
    };
    app.mutate(async move |app| claim_own(&app.ctx, &person, chosen).await).await?;
    see("/portfolio")
}

#[derive(Debug, Template)]
#[template(path = "site/deposit.html")]
struct DepositPage {
    shell: Shell,
    address: String,
    /// The address as the path of a QR code, and the width of the code in modules.
    code: (String, usize),
    /// Who else can move the money.
    others: Option<String>,
    usdc: String,
    chain_id: u64,
    cash: String,
    at: String,
    faucet: Option<String>,
}

/// `GET /deposit`.
pub async fn deposit(State(app): State<Shared>, reader: Reader) -> Result<Response, Problem> {
    let Some(person) = &reader.person else { return to_sign_in(&app, &reader.path) };
    let Owners { account, owners, .. } = accounts::owners(&app.ctx, person.user_id()).await?;
    let address = account.address;
    let cash = accounts::balance_of(&app.ctx, address).await?;
    let page = DepositPage {
        shell: Shell::new(&reader, Section::None, "Deposit"),
        others: other_owners(&app, person, &owners).await?,
        code: qr_code::path_of(&address.to_string())?,
        address: address.to_string(),
        usdc: app.ctx.chain.contracts().usdc.to_string(),
        chain_id: app.ctx.chain.chain_id(),
        cash: amounts::dollars(cash),
        at: amounts::minute(app.ctx.now()),
        faucet: faucet_of(&app, cash),
    };
    Ok(answer(render(&page)?))
}

/// Returns who else can move the money of an account with these owners, for a warning.
pub async fn other_owners(
    app: &Shared,
    person: &Person,
    owners: &[AccountOwner],
) -> Result<Option<String>, Problem> {
    let others = people::count_other_owners(&app.ctx, person, owners).await?;
    Ok((others > 0).then(|| amounts::count(others as u64, "other owner")))
}

/// Returns the amount that the faucet of a demonstration gives an account with this cash.
pub fn faucet_of(app: &Shared, cash: Usdc) -> Option<String> {
    (app.ctx.config.faucet.is_some() && cash < FAUCET_USDC).then(|| amounts::dollars(FAUCET_USDC))
}

/// `POST /faucet`: puts test money on the account of a demonstration.
pub async fn faucet(
    State(app): State<Shared>,
    Member(person): Member,
    form: FormFields,
) -> Result<Response, Problem> {
    app::faucet::give(&app.ctx, person.user_id()).await?;
    // Back to the page with the form.
    see(if form.get("next") == "/welcome" { "/welcome" } else { "/portfolio" })
}
