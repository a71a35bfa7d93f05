//! `foretell positions` and `foretell claim`.

use std::time::Duration;

use clap::Args;
use foretell_client::types::{Position, Redemption, RedemptionStatus};
use foretell_client::{Clock, Response, SystemClock};
use serde_json::Value;

use super::failure::TraderError;
use super::markets::find_outcome;
use super::printer::{Column, Unit};
use super::{Consent, Session, TraderOptions};

const POSITIONS: &[Column] = &[
    ("market", "marketId", Unit::Text),
    ("outcome", "outcomeIndex", Unit::Text),
    ("label", "outcomeLabel", Unit::Text),
    ("tokens", "tokens", Unit::Tokens),
    ("value", "value", Unit::Usdc),
    ("cost", "costBasis", Unit::Usdc),
    ("profit", "unrealizedPnl", Unit::Usdc),
    ("claimable", "claimableUsdc", Unit::Usdc),
    ("question", "question", Unit::Text),
];

const CLAIMS: &[Column] = &[
    ("id", "id", Unit::Text),
    ("status", "status", Unit::Text),
    ("market", "marketId", Unit::Text),
    ("outcome", "outcomeIndex", Unit::Text),
    ("USDC", "amount", Unit::Usdc),
    ("transaction", "txHash", Unit::Text),
    ("error", "errorCode", Unit::Text),
];

#[derive(Debug, Args)]
pub struct PositionsArgs {
    /// Only this market
    #[arg(long, value_name = "ID")]
    market: Option<String>,
    /// Only positions that can be claimed
    #[arg(long)]
    claimable: bool,
    #[command(flatten)]
    pub options: TraderOptions,
}

#[derive(Debug, Args)]
pub struct ClaimArgs {
    /// The id of the market [default: all that can be claimed]
    market: Option<String>,
    /// The outcome: its index, or its label [default: all that can be claimed]
    outcome: Option<String>,
    /// Do not wait for the payment
    #[arg(long)]
    no_wait: bool,
    /// Longest wait for each payment, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    pub options: TraderOptions,
}

pub async fn list(args: &PositionsArgs, session: &Session) -> Result<(), TraderError> {
    let positions = session.client.account.positions(args.market.as_deref()).await?;
    let records = positions.json().as_array().into_iter().flatten();
    let is_listed = |record: &&Value| !args.claimable || record["claimable"] == true;
    session.printer.print_list(&records.filter(is_listed).cloned().collect::<Vec<_>>(), POSITIONS)
}

pub async fn claim(args: &ClaimArgs, session: &Session) -> Result<(), TraderError> {
    let claims = match (&args.market, &args.outcome) {
        (Some(market), Some(outcome)) => {
            let market = session.client.markets.get(market).await?;
            vec![(market.id.clone(), find_outcome(&market, outcome)?)]
        }
        (market, _) => {
            let positions = session.client.account.positions(market.as_deref()).await?;
            let claimable: Vec<&Position> = positions.iter().filter(|position| position.claimable).collect();
            let total = claimable
                .iter()
                .map(|position| position.claimable_usdc.clone())
                .sum::<foretell_client::Usdc>();
            if !claimable.is_empty() {
                args.consent.ask(&format!("Claim positions: {}. Total: {total} USDC.", claimable.len()))?;
            }
            claimable.iter().map(|position| (position.market_id.clone(), position.outcome_index)).collect()
        }
    };
    let mut made = Vec::new();
    for (market, outcome) in claims {
        made.push(session.client.redemptions.create(&market, outcome).await?);
    }
    if !args.no_wait {
        for claim in &mut made {
            *claim = wait_for(claim, Duration::from_secs(args.timeout), session).await?;
        }
    }
    let records: Vec<Value> = made.iter().map(|claim| claim.json().clone()).collect();
    session.printer.print_list(&records, CLAIMS)?;
    if let Some(failed) = made.iter().find(|claim| claim.status == RedemptionStatus::Failed) {
        return Err(not_paid(failed));
    }
    match made.iter().find(|claim| !has_ended(claim)) {
        Some(open) if !args.no_wait => Err(TraderError::Unpaid(open.id.clone())),
        _ => Ok(()),
    }
}

const fn has_ended(claim: &Redemption) -> bool {
    matches!(claim.status, RedemptionStatus::Completed | RedemptionStatus::Failed)
}

/// The pause between two reads of a claim.
const POLL: Duration = Duration::from_secs(1);

/// Waits until a claim has ended, at most for `timeout`.
async fn wait_for(
    claim: &Response<Redemption>,
    timeout: Duration,
    session: &Session,
) -> Result<Response<Redemption>, TraderError> {
    let mut current = claim.clone();
    let mut waited = Duration::ZERO;
    while !has_ended(&current) && waited < timeout {
        SystemClock.sleep(POLL).await;
        waited += POLL;
        current = session.client.redemptions.get(&claim.id).await?;
    }
    Ok(current)
}

fn not_paid(claim: &Redemption) -> TraderError {
    let reason = [&claim.error_code, &claim.error_message].into_iter().flatten();
    TraderError::NotExecuted {
        what: "claim",
        id: claim.id.clone(),
        status: claim.status.to_string(),
        reason: reason.cloned().collect::<Vec<_>>().join(": "),
    }
}
