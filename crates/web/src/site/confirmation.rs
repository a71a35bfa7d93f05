//! The confirmation of a held trade by its owner, who may have got the link from an agent.

use app::people;
use app::sessions::Person;
use app::trades::{held_until, warnings_of};
use axum::extract::State;
use axum::response::Response;
use domain::Timestamp;
use domain::trade::{AmountType, Side, TradeWarning};
use http_kit::{PathId, Problem, Shared};
use presentation::amounts;
use store::trades::Trade;

use super::country::Country;
use super::session::{Member, problem_of, see};

/// The part of a trade's page that confirms it.
#[derive(Debug)]
pub struct ConfirmPart {
    pub path: String,
    /// The trade in words, with its amount.
    pub order: String,
    /// The bound of the price, if it is a change of the price.
    pub slippage: Option<String>,
    /// The bound of the tokens, if only that bounds the price.
    pub tokens_bound: Option<String>,
    /// What to know before the confirmation, at the current price.
    pub warnings: Vec<TradeWarning>,
    pub until: String,
    pub until_iso: String,
    pub needs_step_up: bool,
}

impl ConfirmPart {
    /// Returns the part for a trade that can be confirmed now.
    pub async fn find(app: &Shared, person: &Person, trade: &Trade, outcome: &str) -> Option<Self> {
        let held_until = held_until(&app.ctx, trade)?;
        Some(Self {
            path: format!("/trades/{}", trade.id),
            order: order_of(trade, outcome),
            slippage: trade.max_slippage_bps.map(percent),
            tokens_bound: tokens_bound(trade),
            warnings: warnings_of(&app.ctx, trade).await,
            until: amounts::minute(held_until),
            until_iso: held_until.to_string(),
            needs_step_up: needs_step_up(person, app.ctx.now()),
        })
    }
}

fn needs_step_up(person: &Person, now: Timestamp) -> bool {
    person.require_step_up(now).is_err()
}

fn order_of(trade: &Trade, outcome: &str) -> String {
    let amount = &trade.amount_text;
    match (trade.side, trade.amount_type) {
        (Side::Buy, AmountType::Tokens) => format!("Buy {amount} tokens of {outcome}"),
        (Side::Buy, _) => format!("Buy {outcome} for {amount} USDC"),
        (Side::Sell, AmountType::Usdc) => format!("Sell {outcome} for {amount} USDC"),
        (Side::Sell, AmountType::Tokens) => format!("Sell {amount} tokens of {outcome}"),
        (Side::Sell, AmountType::All) => format!("Sell all tokens of {outcome}"),
    }
}

/// Returns the bound that the trade itself sets instead of a change of the price.
fn tokens_bound(trade: &Trade) -> Option<String> {
    let tokens = amounts::tokens(trade.intent_tokens);
    match (trade.max_slippage_bps, trade.side, trade.amount_type) {
        (None, Side::Buy, AmountType::Usdc) => Some(format!("at least {tokens} tokens")),
        (None, Side::Sell, AmountType::Usdc) => Some(format!("at most {tokens} tokens")),
        _ => None,
    }
}

/// Writes hundredths of a percent as a percentage.
fn percent(bps: u16) -> String {
    format!("{}.{:02}%", bps / 100, bps % 100)
}

/// `POST /trades/{id}/confirm`: releases a held trade. Needs a fresh confirmation that it is the person.
pub async fn confirm(
    State(app): State<Shared>,
    Member(person): Member,
    Country(country): Country,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let id = id.parse().map_err(|_| Problem::not_found())?;
    let confirmed =
        app.mutate(async move |app| Ok(people::confirm_trade(&app.ctx, &person, country, id).await)).await?;
    confirmed.map_err(|error| problem_of(error, app.ctx.now()))?;
    see(&format!("/trades/{id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hundredths_of_a_percent_are_shown_as_percent() {
        assert_eq!([5, 200, 10_000].map(percent), ["0.05%", "2.00%", "100.00%"]);
    }
}
