//! `foretell admin recover`: brings a restored database in line with the chain.

use std::time::{Duration, Instant};

use app::Ctx;
use app::ledger::Sync;
use app::recovery::{
    BlockReader, LostTrade, RecoveryDriver, RecoveryPlan, RecoveryStep, RecoveryWait, open_for_operator, plan,
};
use clap::Args;
use domain::ErrorCode;
use serde_json::json;
use store::recoveries::Changes;

use super::ctx::AdminCtx;
use super::output::{CommandOutput, OutputRecord};
use super::refuse;
use crate::start_error::StartError;

/// Interval between attempts to continue.
const INTERVAL: Duration = Duration::from_millis(250);
/// The command gives up if nothing has changed for this long. A chain makes blocks more often.
const PATIENCE: Duration = Duration::from_secs(60);
/// Shortest time between two lines about the progress.
const SHOWN_EVERY: Duration = Duration::from_secs(2);

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
    // An embedded chain is only in the process that runs it, and its sync is there too.
    let reads_blocks = !admin.config.rpc_urls.is_empty();
    let sync = reads_blocks.then(|| Sync::new(ctx.uuid().to_string(), admin.config.first_block));
    let driver = RecoveryDriver::new(sync, executors);
    let waited = drive(&ctx, &driver).await;
    // A service that starts now must not wait until the lease expires.
    driver.release(&ctx).await?;
    match waited? {
        None => ended(&ctx, open.id).await,
        Some(wait) => Err(refuse(ErrorCode::DependencyUnavailable, advice(&wait))),
    }
}

/// Continues the recovery until it has ended. Returns what it waits for if nothing has changed for
/// some time.
async fn drive(ctx: &Ctx, driver: &RecoveryDriver) -> Result<Option<RecoveryWait>, StartError> {
    let mut tries = tokio::time::interval(INTERVAL);
    let mut seen: Option<RecoveryWait> = None;
    let (mut changed_at, mut shown_at) = (Instant::now(), None::<Instant>);
    loop {
        tries.tick().await;
        let wait = match driver.step(ctx).await? {
            RecoveryStep::Ended => return Ok(None),
            RecoveryStep::Waiting(wait) => wait,
        };
        if seen.as_ref() != Some(&wait) {
            changed_at = Instant::now();
            if shown_at.is_none_or(|at| at.elapsed() >= SHOWN_EVERY) {
                shown_at = Some(Instant::now());
                // Standard output has the report.
                eprintln!("waiting: {wait}");
            }
            seen = Some(wait);
        } else if changed_at.elapsed() >= PATIENCE {
            return Ok(seen);
        }
    }
}

/// Says what the recovery waits for and what to do about it.
fn advice(wait: &RecoveryWait) -> String {
    let next = match wait.reader {
        BlockReader::Nobody => {
            "Start the service: it reads the blocks, completes the recovery and signs nothing until then."
        }
        BlockReader::Service => {
            "The running process must read these blocks: see `foretell admin sync status` and its log."
        }
        BlockReader::Driver if wait.read.is_some_and(|read| read >= wait.head) => {
            "All blocks are read, and the chain has made none for a minute: check the node. The recovery stays open, and nothing is signed."
        }
        BlockReader::Driver => {
            "The node does not give the next blocks: check it. The recovery stays open, and nothing is signed."
        }
    };
    format!("The recovery is waiting: {wait}. {next} Then run this command again, which continues.")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_names_the_blocks_and_the_next_step() {
        let wait = |reader, read| RecoveryWait {
            why: "block 22 is not settled yet".to_owned(),
            read: Some(read),
            settled: Some(15),
            head: 22,
            reader,
        };
        let idle = advice(&wait(BlockReader::Driver, 22));
        let expected = "The recovery is waiting: block 22 is not settled yet. Blocks read: up to 22, settled: up \
            to 15, newest on chain: 22; this command reads them. All blocks are read, and the chain has made none";
        assert!(idle.starts_with(expected), "{idle}");
        assert!(advice(&wait(BlockReader::Driver, 18)).contains("does not give the next blocks"));
        assert!(advice(&wait(BlockReader::Service, 18)).contains("`foretell admin sync status`"));
        assert!(advice(&wait(BlockReader::Nobody, 18)).contains("Start the service"));
    }
}
