//! `foretell admin recover`: brings a restored database in line with the chain.

use std::time::Duration;

use app::Ctx;
use app::recovery::{Advance, LostTrade, RecoveryPlan, advance, open_for_operator, plan};
use clap::Args;
use domain::ErrorCode;
use serde_json::json;
use store::recoveries::Changes;

use super::ctx::AdminCtx;
use super::output::{CommandOutput, OutputRecord};
use super::refuse;
use crate::start_error::StartError;

/// Interval and maximum number of attempts to continue: one minute in total.
const INTERVAL: Duration = Duration::from_millis(250);
const TRIES: u32 = 240;

/// The options of a recovery.
#[derive(Debug, Args)]
pub struct RecoverArgs {
    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// The first block whose trades are compared [default: 10,000 blocks before the last block read]
    #[arg(long, value_name = "BLOCK")]
    from: Option<u64>,
}

pub async fn run(args: RecoverArgs, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let ctx = admin.online().await?;
    if args.dry_run {
        return Ok(CommandOutput::One(planned(&plan(&ctx, args.from).await?)));
    }
    // The recovery waits until these executors have no pending transactions.
    let executors = ctx.config.executors.clone();
    let open = open_for_operator(&ctx, args.from).await?;
    let mut tries = tokio::time::interval(INTERVAL);
    let mut waits_for = String::new();
    for _ in 0..TRIES {
        tries.tick().await;
        match advance(&ctx, &executors).await? {
            Advance::Waiting(why) => waits_for = why,
            // The running service may have completed the recovery first.
            Advance::Done(_) | Advance::Idle => return ended(&ctx, open.id).await,
        }
    }
    let detail = format!(
        "The recovery is waiting: {waits_for}. A running service completes it and signs nothing until then. Run the command again to see the report."
    );
    Err(refuse(ErrorCode::DependencyUnavailable, detail))
}

async fn ended(ctx: &Ctx, id: i64) -> Result<CommandOutput, StartError> {
    let found = ctx.store.read(id, |tx, id| Box::pin(store::recoveries::find(tx, *id))).await;
    let recovery = found?.ok_or_else(|| super::missing("recovery"))?;
    let Changes { recovered_trades, corrected_trades, raised_nonces, unattributed_trades } = recovery.changes;
    let unknown_until = recovery.ended_at.map(|at| at.plus_ms(ctx.config.idempotency_ms));
    Ok(CommandOutput::One(
        OutputRecord::new()
            .with("recovery", recovery.id)
            .with("reason", recovery.reason)
            .with("detail", recovery.detail)
            .with("fromBlock", recovery.from_block)
            .with("untilBlock", recovery.until_block)
            .with("feedGeneration", recovery.generation)
            .with("recoveredTrades", recovered_trades)
            .with("correctedTrades", corrected_trades)
            .with("raisedNonces", raised_nonces)
            .with("unattributedTrades", unattributed_trades)
            .with("endedAt", recovery.ended_at)
            .with("lostIdempotencyKeysAcceptedUntil", unknown_until),
    ))
}

fn planned(plan: &RecoveryPlan) -> OutputRecord {
    let trades: Vec<_> = plan.trades.iter().map(trade_of).collect();
    let nonces: Vec<_> = plan
        .raised_nonces
        .iter()
        .map(|raised| json!({ "key": raised.key_id, "nextNonce": raised.from, "becomes": raised.to }))
        .collect();
    OutputRecord::new()
        .with("fromBlock", plan.from_block)
        .with("untilBlock", plan.until_block)
        .with("trades", trades)
        .with("raisedNonces", nonces)
        .with("feedGeneration", "begins anew")
}

fn trade_of(trade: &LostTrade) -> serde_json::Value {
    json!({
        "trade": trade.trade_id,
        "account": trade.account,
        "block": trade.block_number,
        "status": trade.status.map(|status| status.as_str()),
        "becomes": trade.becomes.as_str(),
        "attributed": trade.is_attributed,
    })
}
