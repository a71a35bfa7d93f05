//! `foretell admin market resolve`, `finalize` and `cancel`: end a market. None of them can be
//! undone.

use app::markets::{self, Cancelling, Move};
use clap::Args;
use domain::ErrorCode;
use domain::market::MarketStatus;
use store::markets::{Market, Outcome};

use super::{find, followed, make, market_id};
use crate::cli::admin::act::ActArgs;
use crate::cli::admin::consent::{ConsentArgs, WithoutTerminal};
use crate::cli::admin::ctx::AdminCtx;
use crate::cli::admin::output::CommandOutput;
use crate::cli::admin::refuse;
use crate::cli::admin::subject::{self, Subject};
use crate::cli::admin::values::{Payouts, wad_text};
use crate::start_error::StartError;

/// The result of a market.
#[derive(Debug, Args)]
pub struct ResolveArgs {
    #[command(flatten)]
    market: Subject<subject::Market>,
    #[command(flatten)]
    result: ResultArgs,
    /// The source of the result
    #[arg(long, value_name = "TEXT")]
    source: Option<String>,
    #[command(flatten)]
    act: ActArgs,
    #[command(flatten)]
    consent: ConsentArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct ResultArgs {
    /// The index of the winning outcome, from 0
    #[arg(long, value_name = "N")]
    outcome: Option<u8>,
    /// The payout of one token of each outcome, such as 1,0 or 0.5,0.5. They must sum to exactly 1
    #[arg(long, value_name = "LIST")]
    payouts: Option<Payouts>,
}

/// Options of `finalize`.
#[derive(Debug, Args)]
pub struct FinalizeArgs {
    #[command(flatten)]
    market: Subject<subject::Market>,
    #[command(flatten)]
    act: ActArgs,
    #[command(flatten)]
    consent: ConsentArgs,
}

/// Options of `cancel`.
#[derive(Debug, Args)]
pub struct CancelArgs {
    #[command(flatten)]
    market: Subject<subject::Market>,
    /// The reason, for the audit log and `market show`
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    act: ActArgs,
    #[command(flatten)]
    consent: ConsentArgs,
}

pub async fn resolve(args: ResolveArgs, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let id = args.market.0;
    let (market, outcomes) = find(admin, id).await?;
    let Payouts(payouts) = payouts_of(args.result, outcomes.len())?;
    let paid = |(outcome, payout): (&Outcome, &alloy_primitives::U256)| {
        format!("{} pays {}", outcome.label, wad_text(domain::Wad(*payout)))
    };
    let result = outcomes.iter().zip(&payouts).map(paid).collect::<Vec<_>>().join(", ");
    let act = format!("Resolves {:?}: {result}.", market.question);
    obtain_consent(args.consent, &args.act, &market, &act)?;
    let answer = make(admin, id, &args.act, Move::Resolve { payouts, source: args.source }).await?;
    let CommandOutput::One(record) = answer else { return Ok(answer) };
    let (market, _) = find(admin, id).await?;
    // Without a veto window, the result is final at once.
    if market.status == MarketStatus::Resolved {
        return Ok(CommandOutput::One(record));
    }
    let next = format!("once the veto window is over: foretell admin market finalize {id}");
    Ok(CommandOutput::One(record.with("proposed", true).with("next", next)))
}

pub async fn finalize(args: FinalizeArgs, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let id = args.market.0;
    let (market, _) = find(admin, id).await?;
    let act = format!("Makes the proposed result or cancel of {:?} final.", market.question);
    obtain_consent(args.consent, &args.act, &market, &act)?;
    make(admin, id, &args.act, Move::Finalize).await
}

pub async fn cancel(args: CancelArgs, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let id = args.market.0;
    let (market, outcomes) = find(admin, id).await?;
    let act = format!("Cancels {:?}: every token pays its reference price.", market.question);
    obtain_consent(args.consent, &args.act, &market, &act)?;
    let ctx = admin.online().await?;
    let senders = markets::cancel_senders(&ctx, id).await?;
    let acting = args.act.acting(admin, &ctx, senders, None).await?;
    let cancelling = markets::cancel(&ctx, acting.sender(), id, args.reason.clone()).await?;
    let (receipt, proposed, next_at) = match cancelling {
        Cancelling::Printed(call) => {
            let title = format!("The next step of the cancel of the market {:?}", market.question);
            return Ok(acting.print(&ctx, &title, &[call], market_id(id)));
        }
        Cancelling::Cancelled(receipt) => {
            let record = followed(admin, id, receipt).await?;
            return Ok(CommandOutput::One(record.with("cancelReason", args.reason)));
        }
        Cancelling::Frozen { receipt, cancellable_at } => (receipt, false, cancellable_at),
        Cancelling::Proposed { receipt, finalizable_at } => (receipt, true, finalizable_at),
    };
    let record = match receipt {
        Some(receipt) => followed(admin, id, receipt).await?,
        None => super::record(&market, &outcomes),
    };
    let next = format!("from {next_at} on: foretell admin market cancel {id}");
    Ok(CommandOutput::One(record.with("proposed", proposed).with("next", next)))
}

/// Asks for confirmation unless the act is printed. A market that has ended is an error before the
/// prompt.
fn obtain_consent(consent: ConsentArgs, by: &ActArgs, market: &Market, act: &str) -> Result<(), StartError> {
    if matches!(market.status, MarketStatus::Resolved | MarketStatus::Cancelled) {
        return Err(StartError::InvalidState(format!("the market is {}", market.status)));
    }
    if by.is_printed() {
        return Ok(());
    }
    let act = format!("{act} This cannot be undone.");
    consent.obtain(&act, &market.id.to_string(), WithoutTerminal::Refuse)
}

fn payouts_of(result: ResultArgs, outcomes: usize) -> Result<Payouts, StartError> {
    let invalid = |detail: String| refuse(ErrorCode::OutcomeIndexInvalid, detail);
    match result {
        // Checked here, because the payouts of an unknown outcome would all be 0.
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
