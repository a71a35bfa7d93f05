//! `foretell admin market resolve`, `finalize` and `cancel`: the ends of a market. None of them can be undone.

use app::markets;
use clap::Args;
use domain::ErrorCode;
use domain::market::MarketStatus;
use store::markets::{Market, Outcome};

use super::{find, followed, with_role};
use crate::cli::admin::consent::{ConsentArgs, WithoutTerminal};
use crate::cli::admin::ctx::AdminCtx;
use crate::cli::admin::output::Record;
use crate::cli::admin::refuse;
use crate::cli::admin::subject::{self, Subject};
use crate::cli::admin::values::{Payouts, wad_text};
use crate::run::StartError;
use crate::secrets::Roles;

/// How a market ended.
#[derive(Debug, Args)]
pub struct ResolveArgs {
    #[command(flatten)]
    market: Subject<subject::Market>,
    #[command(flatten)]
    result: ResultArgs,
    /// Where the result was taken from
    #[arg(long, value_name = "TEXT")]
    source: Option<String>,
    #[command(flatten)]
    consent: ConsentArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct ResultArgs {
    /// The outcome that won, from 0
    #[arg(long, value_name = "N")]
    outcome: Option<u8>,
    /// What one token of each outcome pays, at most 1 in all: 1,0 or 0.5,0.5
    #[arg(long, value_name = "LIST")]
    payouts: Option<Payouts>,
}

/// A market whose resolution becomes final.
#[derive(Debug, Args)]
pub struct FinalizeArgs {
    #[command(flatten)]
    market: Subject<subject::Market>,
    #[command(flatten)]
    consent: ConsentArgs,
}

/// A market that is cancelled.
#[derive(Debug, Args)]
pub struct CancelArgs {
    #[command(flatten)]
    market: Subject<subject::Market>,
    /// Why; stored in the audit log and shown with the market
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    consent: ConsentArgs,
}

pub async fn resolve(args: ResolveArgs, admin: &AdminCtx) -> Result<Record, StartError> {
    let id = args.market.0;
    let (market, outcomes) = find(admin, id).await?;
    let Payouts(payouts) = payouts_of(args.result, outcomes.len())?;
    let paid = |(outcome, payout): (&Outcome, &alloy_primitives::U256)| {
        format!("{} pays {}", outcome.label, wad_text(domain::Wad(*payout)))
    };
    let result = outcomes.iter().zip(&payouts).map(paid).collect::<Vec<_>>().join(", ");
    obtain_consent(args.consent, &market, &format!("Resolves {:?}: {result}.", market.question))?;
    let (ctx, signer) = with_role(admin, Roles::resolver).await?;
    let receipt = markets::resolve(&ctx, &signer, id, payouts, args.source).await?;
    let record = followed(admin, id, receipt).await?;
    let (market, _) = find(admin, id).await?;
    if market.status == MarketStatus::Resolved {
        return Ok(record);
    }
    let next = format!("foretell admin market finalize {id}");
    Ok(record.with("proposed", true).with("next", format!("once the veto window is over: {next}")))
}

pub async fn finalize(args: FinalizeArgs, admin: &AdminCtx) -> Result<Record, StartError> {
    let id = args.market.0;
    let (market, _) = find(admin, id).await?;
    let act = format!("Makes the proposed resolution of {:?} final.", market.question);
    obtain_consent(args.consent, &market, &act)?;
    let (ctx, signer) = with_role(admin, Roles::resolver).await?;
    followed(admin, id, markets::finalize(&ctx, &signer, id).await?).await
}

pub async fn cancel(args: CancelArgs, admin: &AdminCtx) -> Result<Record, StartError> {
    let id = args.market.0;
    let (market, _) = find(admin, id).await?;
    let act = format!("Cancels {:?}: every holder is refunded what the position cost.", market.question);
    obtain_consent(args.consent, &market, &act)?;
    let (ctx, signer) = with_role(admin, Roles::resolver).await?;
    let receipt = markets::cancel(&ctx, &signer, id, args.reason.clone()).await?;
    Ok(followed(admin, id, receipt).await?.with("cancelReason", args.reason))
}

/// Asks only if the market has not ended: otherwise nothing can be done, whatever the operator answers.
fn obtain_consent(consent: ConsentArgs, market: &Market, act: &str) -> Result<(), StartError> {
    if matches!(market.status, MarketStatus::Resolved | MarketStatus::Cancelled) {
        return Err(StartError::InvalidState(format!("the market is {}", market.status)));
    }
    consent.obtain(act, &market.id.to_string(), WithoutTerminal::Refuse)
}

fn payouts_of(result: ResultArgs, outcomes: usize) -> Result<Payouts, StartError> {
    let invalid = |detail: String| refuse(ErrorCode::OutcomeIndexInvalid, detail);
    match result {
        ResultArgs { outcome: Some(outcome), .. } if usize::from(outcome) >= outcomes => {
            Err(invalid(format!("The market has the outcomes 0 to {}.", outcomes.saturating_sub(1))))
        }
        ResultArgs { outcome: Some(outcome), .. } => Ok(Payouts::winner(outcome, outcomes)),
        ResultArgs { payouts: Some(Payouts(payouts)), .. } if payouts.len() == outcomes => {
            Ok(Payouts(payouts))
        }
        _ => Err(invalid(format!("The market has {outcomes} outcomes: give as many payouts."))),
    }
}
