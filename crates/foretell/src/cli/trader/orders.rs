//! `foretell buy`, `foretell sell` and `foretell trade`.

use std::time::Duration;

use app::entropy::Entropy;
use clap::Args;
use foretell_client::types::{Trade, TradeQuery, TradeStatus};
use foretell_client::{NewTrade, Response, Wad, WaitOptions};

use super::failure::TraderError;
use super::markets::{find_outcome, read_up_to};
use super::printer::{Column, Unit};
use super::{Consent, Session, TraderOptions};
use crate::entropy::SystemEntropy;

const TRADE: &[Column] = &[
    ("id", "id", Unit::Text),
    ("status", "status", Unit::Text),
    ("side", "side", Unit::Text),
    ("market", "marketId", Unit::Text),
    ("outcome", "outcomeIndex", Unit::Text),
    ("tokens", "tokensOut", Unit::Tokens),
    ("USDC", "usdcAmount", Unit::Usdc),
    ("fee", "fee", Unit::Usdc),
    ("price", "effectivePrice", Unit::Text),
    ("transaction", "txHash", Unit::Text),
    ("error", "errorCode", Unit::Text),
    ("name", "clientRequestId", Unit::Text),
    ("created", "createdAt", Unit::Text),
];

const TRADES: &[Column] = &[
    ("id", "id", Unit::Text),
    ("status", "status", Unit::Text),
    ("side", "side", Unit::Text),
    ("outcome", "outcomeIndex", Unit::Text),
    ("tokens", "tokensOut", Unit::Tokens),
    ("USDC", "usdcAmount", Unit::Usdc),
    ("created", "createdAt", Unit::Text),
];

const DRY_RUN: &[Column] = &[
    ("tokens", "quote.tokensOut", Unit::Tokens),
    ("USDC", "quote.usdcAmount", Unit::Usdc),
    ("fee", "quote.fee", Unit::Usdc),
    ("price", "quote.effectivePrice", Unit::Text),
    ("held", "requiresConfirmation", Unit::Text),
    ("warning", "warnings.0.message", Unit::Text),
];

/// The arguments of buys and sells.
#[derive(Debug, Args)]
pub struct OrderArgs {
    /// The id of the market
    market: String,
    /// The outcome: its index, or its label
    outcome: String,
    /// The name of the trade. The same name never makes a second trade [default: a new one]
    #[arg(long)]
    name: Option<String>,
    /// The most that the price may be worse than the quote, in hundredths of a percent
    #[arg(long, value_name = "BPS")]
    max_slippage_bps: Option<u32>,
    /// Do not execute the trade after this time, such as 2027-01-15T08:05:00Z
    #[arg(long, value_name = "TIME")]
    deadline: Option<String>,
    /// Show what the trade would move, and do not create it
    #[arg(long)]
    dry_run: bool,
    /// Do not wait for the result
    #[arg(long)]
    no_wait: bool,
    /// Longest wait for the result, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    pub options: TraderOptions,
}

impl OrderArgs {
    fn wait_options(&self) -> WaitOptions {
        WaitOptions { timeout: Duration::from_secs(self.timeout), ..WaitOptions::default() }
    }
}

#[derive(Debug, Args)]
pub struct BuyArgs {
    #[command(flatten)]
    pub order: OrderArgs,
    /// USDC to spend, fee included; with --tokens, tokens to receive
    amount: String,
    /// The amount is in tokens
    #[arg(long)]
    tokens: bool,
    /// The fewest tokens to accept
    #[arg(long, value_name = "TOKENS")]
    min_tokens: Option<Wad>,
}

#[derive(Debug, Args)]
pub struct SellArgs {
    #[command(flatten)]
    pub order: OrderArgs,
    /// USDC to receive, after the fee; with --tokens, tokens to give
    #[arg(required_unless_present = "all")]
    amount: Option<String>,
    /// The amount is in tokens
    #[arg(long, conflicts_with = "all")]
    tokens: bool,
    /// Sell everything
    #[arg(long, conflicts_with = "amount")]
    all: bool,
    /// The most tokens to give
    #[arg(long, value_name = "TOKENS")]
    max_tokens: Option<Wad>,
}

#[derive(Debug, Args)]
pub struct TradeArgs {
    /// The id of the trade to show
    trade: Option<String>,
    /// Only these statuses, such as completed,failed
    #[arg(long, value_name = "STATUSES")]
    status: Option<String>,
    /// Only this market
    #[arg(long, value_name = "ID")]
    market: Option<String>,
    /// Only the trade with this name
    #[arg(long)]
    name: Option<String>,
    /// Maximum number of trades to list
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    pub options: TraderOptions,
}

pub async fn buy(args: &BuyArgs, session: &Session) -> Result<(), TraderError> {
    let outcome = outcome_of(&args.order, session).await?;
    let mut trade = NewTrade::buy(&args.order.market, outcome, args.amount.as_str());
    if args.tokens {
        trade = trade.in_tokens();
    }
    if let Some(tokens) = &args.min_tokens {
        trade = trade.min_tokens_out(tokens.clone());
    }
    place(&args.order, trade, "Buy", session).await
}

pub async fn sell(args: &SellArgs, session: &Session) -> Result<(), TraderError> {
    let outcome = outcome_of(&args.order, session).await?;
    let market = &args.order.market;
    let mut trade = match &args.amount {
        Some(amount) => NewTrade::sell(market, outcome, amount.as_str()),
        None => NewTrade::sell_all(market, outcome),
    };
    if args.tokens {
        trade = trade.in_tokens();
    }
    if let Some(tokens) = &args.max_tokens {
        trade = trade.max_tokens_in(tokens.clone());
    }
    place(&args.order, trade, "Sell", session).await
}

pub async fn show(args: &TradeArgs, session: &Session) -> Result<(), TraderError> {
    let trades = &session.client.trades;
    if let Some(id) = &args.trade {
        return session.printer.print_one(trades.get(id).await?.json(), TRADE);
    }
    let query = TradeQuery {
        status: args.status.clone(),
        market_id: args.market.clone(),
        client_request_id: args.name.clone(),
        limit: None,
    };
    let records = read_up_to(args.limit, |limit| trades.list(&TradeQuery { limit, ..query.clone() })).await?;
    session.printer.print_list(&records, TRADES)
}

/// Returns the outcome's index. Only a label needs a look at the market.
async fn outcome_of(args: &OrderArgs, session: &Session) -> Result<u32, TraderError> {
    if let Ok(index) = args.outcome.parse() {
        return Ok(index);
    }
    find_outcome(&*session.client.markets.get(&args.market).await?, &args.outcome)
}

async fn place(
    args: &OrderArgs,
    mut trade: NewTrade,
    verb: &str,
    session: &Session,
) -> Result<(), TraderError> {
    if let Some(bps) = args.max_slippage_bps {
        trade = trade.max_slippage_bps(bps);
    }
    if let Some(at) = &args.deadline {
        trade = trade.deadline(at);
    }
    let trades = &session.client.trades;
    if args.dry_run {
        return session.printer.print_one(trades.dry_run(&trade).await?.json(), DRY_RUN);
    }
    if !args.consent.yes {
        let dry_run = trades.dry_run(&trade).await?;
        let quote = &dry_run.quote;
        let mut question = format!(
            "{verb} {} tokens for {} USDC, fee {} included.",
            quote.tokens_out, quote.usdc_amount, quote.fee
        );
        for warning in &dry_run.warnings {
            question.push(' ');
            question.push_str(&warning.message);
        }
        args.consent.ask(&question)?;
    }
    let name = args.name.clone().unwrap_or_else(new_name);
    let trade = trade.client_request_id(&name);
    // Not in one call with the wait: if that fails, the trade exists.
    let mut trade = trades.create(&trade).await.map_err(|error| TraderError::of_create(error, &name))?;
    if trade.status == TradeStatus::PendingConfirmation {
        trade = release(args, trade, &name, session).await?;
    }
    // Without its token, a held trade is confirmed in the web application.
    if !args.no_wait && trade.status != TradeStatus::PendingConfirmation {
        let ended = trades.wait_for(&trade.id, args.wait_options()).await;
        trade = ended.map_err(|error| TraderError::Unfollowed { error, name })?;
    }
    session.printer.print_one(trade.json(), TRADE)?;
    let is_executed = trade.failed_at.is_none();
    if is_executed { Ok(()) } else { Err(TraderError::not_executed(&trade)) }
}

/// Confirms a trade that is held for its size.
async fn release(
    args: &OrderArgs,
    held: Response<Trade>,
    name: &str,
    session: &Session,
) -> Result<Response<Trade>, TraderError> {
    let question = format!("The trade {} is held for its size.", held.id);
    if let Some(page) = &held.confirmation_page {
        let (url, until) = (&page.url, &page.expires_at);
        let why = format!("{question} The key is an agent's: confirm it at {url} until {until}");
        return Err(TraderError::Unconfirmed(why));
    }
    let Some(confirmation) = &held.confirmation else { return Ok(held) };
    args.consent.ask(&question).map_err(|_| {
        let until = &confirmation.expires_at;
        let again = format!("until {until} the same command with --name {name} asks again");
        TraderError::Unconfirmed(format!("{question} It is not executed; {again}"))
    })?;
    let confirmed = session.client.trades.confirm(&held.id, confirmation.token.expose()).await;
    confirmed.map_err(|error| TraderError::of_create(error, name))
}

fn new_name() -> String {
    let mut bytes = [0; 16];
    SystemEntropy::default().fill(&mut bytes);
    format!("cli-{}", hex::encode(bytes))
}
