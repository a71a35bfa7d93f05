//! `foretell admin sync`: shows the state of the chain sync, handles quarantined markets, and
//! rereads blocks.

use app::audit_log::{Act, around};
use app::ledger::{AcceptReorganization, Repaired, Reread, repair_market, reread};
use clap::{Args, Subcommand};
use domain::ErrorCode;
use domain::ids::MarketId;
use serde_json::json;
use store::StoreError;
use store::audit_log::note;
use store::quarantine::{self, Quarantine};
use store::sync::SyncBlock;

use super::ctx::AdminCtx;
use super::output::{CommandOutput, OutputRecord};
use super::refuse;
use super::subject::{self, Subject};
use crate::start_error::StartError;

/// Maximum number of listed quarantined markets.
const MOST_LISTED: u32 = 10_000;

/// Commands for the sync.
#[derive(Debug, Subcommand)]
pub enum SyncCommand {
    /// Show the last read and settled blocks, and what the sync has ignored, repaired or skipped
    Status,
    /// Read blocks again, including skipped ones, and repair what differs from them
    Reread(RereadArgs),
    /// Skip the events of a block. The markets that it affects are then repaired or quarantined
    Skip(SkipArgs),
    /// List or release markets whose events could not be applied
    #[command(subcommand)]
    Quarantine(QuarantineCommand),
}

/// The blocks to read again.
#[derive(Debug, Args)]
pub struct RereadArgs {
    /// The first block
    #[arg(long, value_name = "BLOCK")]
    from: u64,
    /// Revert settled blocks if the node's chain differs from them. Only use this if the chain was
    /// reorganized deeper than the configured finality: results that were reported as final change
    #[arg(long)]
    accept_reorganization: bool,
}

/// A block that is not read.
#[derive(Debug, Args)]
pub struct SkipArgs {
    /// The number of the block, which must not have been read yet
    block: u64,
    /// The reason, for the audit log
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

/// Commands for quarantined markets.
#[derive(Debug, Subcommand)]
pub enum QuarantineCommand {
    /// List quarantined markets, with the reason and the time of the next repair
    List,
    /// Repair a market from the chain now. It is released if it then matches the chain
    Release {
        #[command(flatten)]
        market: Subject<subject::Market>,
    },
}

pub async fn run(command: SyncCommand, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    match command {
        SyncCommand::Status => status(admin).await,
        SyncCommand::Reread(args) => reread_from(args, admin).await,
        SyncCommand::Skip(args) => skip(args, admin).await,
        SyncCommand::Quarantine(QuarantineCommand::List) => list(admin).await,
        SyncCommand::Quarantine(QuarantineCommand::Release { market: Subject(market) }) => {
            release(market, admin).await
        }
    }
}

struct Status {
    last: Option<SyncBlock>,
    settled: Option<u64>,
    quarantined: u64,
    skipped: Vec<u64>,
    counters: Vec<(String, u64)>,
}

async fn status(admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let read: Result<Status, StoreError> = admin
        .store
        .read((), |tx, ()| {
            Box::pin(async move {
                Ok(Status {
                    last: store::sync::find_last(tx, None).await?,
                    settled: store::sync::find_settled(tx).await?,
                    quarantined: quarantine::count(tx).await?,
                    skipped: quarantine::list_skipped_blocks(tx, 0, i64::MAX as u64).await?,
                    counters: quarantine::list_counters(tx).await?,
                })
            })
        })
        .await;
    let Status { last, settled, quarantined, skipped, counters } = read?;
    let head = match admin.online().await {
        Ok(ctx) => Some(ctx.chain.head().await?.number),
        // The status must also be available without a node.
        Err(_) => None,
    };
    let read = last.as_ref().map(|last| last.number);
    let record = OutputRecord::new()
        .with("headBlock", head)
        .with("readBlock", read)
        .with("readBlockTime", last.as_ref().map(|last| last.at))
        .with("settledBlock", settled)
        .with("lagBlocks", head.zip(read).map(|(head, read)| head.saturating_sub(read)))
        .with("quarantinedMarkets", quarantined)
        .with("skippedBlocks", skipped)
        .with("counters", counters.into_iter().collect::<std::collections::BTreeMap<_, _>>());
    Ok(CommandOutput::One(record))
}

async fn reread_from(args: RereadArgs, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let RereadArgs { from, accept_reorganization } = args;
    let accept = if accept_reorganization { AcceptReorganization::Yes } else { AcceptReorganization::No };
    let ctx = admin.online().await?;
    let before = json!({ "acceptReorganization": accept_reorganization });
    let act = Act::new("sync.reread", format!("block:{from}")).before(before);
    let found = |reread: &Reread| {
        let markets: Vec<_> = reread.repaired.iter().map(|repaired| repaired.market_id.to_string()).collect();
        json!({ "blocks": reread.blocks, "takenBackTo": reread.taken_back_to, "repaired": markets })
    };
    let reread = around(&ctx, act, reread(&ctx, from, accept), found).await?;
    Ok(CommandOutput::One(reread_record(&reread)))
}

async fn release(market: MarketId, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let ctx = admin.online().await?;
    let act = Act::new("sync.quarantine.release", format!("market:{market}"));
    let made = |repaired: &Repaired| json!({ "fromBlock": repaired.from_block });
    let repaired = around(&ctx, act, repair_market(&ctx, market, None), made).await?;
    Ok(CommandOutput::One(repaired_record(&repaired)))
}

async fn skip(args: SkipArgs, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let SkipArgs { block, reason } = args;
    let now = admin.ctx()?.now();
    let skipped: Result<bool, StoreError> = admin
        .store
        .write((block, reason.clone(), now), |tx, (block, reason, now)| {
            Box::pin(async move {
                // Skipping a block that was already read would have no effect.
                if store::sync::find_last(tx, None).await?.is_some_and(|last| last.number >= *block) {
                    return Ok(false);
                }
                quarantine::skip_block(tx, *block, reason, *now).await?;
                note(tx, Act::new("sync.skip", format!("block:{block}")).after(json!({ "reason": reason })));
                Ok(true)
            })
        })
        .await;
    if skipped? {
        return Ok(CommandOutput::One(
            OutputRecord::new().with("block", block).with("reason", reason).with("skippedAt", now),
        ));
    }
    let detail = format!(
        "Block {block} has already been read. Use `foretell admin sync reread --from {block}` to read it again."
    );
    Err(refuse(ErrorCode::ValidationFailed, detail))
}

async fn list(admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let listed = admin.store.read((), |tx, ()| Box::pin(quarantine::list(tx, MOST_LISTED))).await;
    let records = listed?.iter().map(quarantine_record).collect();
    Ok(CommandOutput::Many(records, &["market", "since", "block", "reason", "attempts", "nextRepairAt"]))
}

fn quarantine_record(quarantine: &Quarantine) -> OutputRecord {
    OutputRecord::new()
        .with("market", quarantine.market_id.to_string())
        .with("since", quarantine.quarantined_at)
        .with("block", quarantine.block_number)
        .with("reason", &quarantine.reason)
        .with("detail", &quarantine.detail)
        .with("attempts", quarantine.repair_attempts)
        .with("nextRepairAt", quarantine.next_repair_at)
}

fn repaired_record(repaired: &Repaired) -> OutputRecord {
    OutputRecord::new()
        .with("market", repaired.market_id.to_string())
        .with("fromBlock", repaired.from_block)
        .with("movementsBefore", repaired.movements_before)
        .with("movementsAfter", repaired.movements_after)
}

fn reread_record(reread: &Reread) -> OutputRecord {
    let repaired: Vec<OutputRecord> = reread.repaired.iter().map(repaired_record).collect();
    let quarantined = reread.quarantined.iter();
    let quarantined = quarantined
        .map(|(id, reason)| OutputRecord::new().with("market", id.to_string()).with("reason", reason));
    OutputRecord::new()
        .with("blocks", reread.blocks)
        .with("takenBackTo", reread.taken_back_to)
        .with("correctedFailures", reread.corrected_failures)
        .with("repaired", repaired)
        .with("quarantined", quarantined.collect::<Vec<_>>())
}
