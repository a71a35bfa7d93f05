//! Detects lost data.

use std::fmt;

use domain::{ErrorCode, Timestamp};
use serde_json::json;
use store::audit_log::{Act, note};
use store::recoveries::{Opening, Recovery};
use store::{StoreError, Tx};

use super::decision::{Decision, Decisions, unknown};
use crate::{AppError, Ctx};

/// The maximum number of unread blocks that a lane checks on takeover. If there are more, it waits
/// for the sync.
const MOST_BLOCKS: u64 = 5_000;
/// The default start of an operator's recovery, in blocks before the last block read.
const LOOK_BACK_BLOCKS: u64 = 10_000;

/// The result of looking for lost data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detection {
    /// No data is lost.
    Clean,
    /// Data is lost, and a recovery is open.
    Lost,
    /// The sync is too far behind to decide.
    SyncBehind,
}

/// The Gate has seen a nonce that this database never assigned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostData {
    pub detail: String,
}

impl fmt::Display for LostData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for LostData {}

impl LostData {
    /// Converts into an error that rolls back the transaction.
    pub fn into_error(self) -> AppError {
        AppError::new(ErrorCode::DependencyUnavailable).caused_by(self)
    }

    /// Returns the lost data that an error reports, if any.
    pub fn of(error: &AppError) -> Option<&Self> {
        error.source.as_ref().and_then(|source| source.downcast_ref())
    }
}

/// Returns the opening of a recovery if one of these decisions proves lost data: it is about a
/// trade of this service's accounts that the database lacks, or that was not signed according to
/// it.
pub async fn evidence(
    tx: &mut Tx,
    decisions: &[Decision],
    from_block: u64,
) -> Result<Option<Opening>, StoreError> {
    for (decision, status) in unknown(tx, decisions).await? {
        let Decision { trade_id, block_number, .. } = &decision;
        let detail = match status {
            Some(status) => {
                format!(
                    "block {block_number} decided the trade {trade_id}, which is {status} in the database"
                )
            }
            None => {
                // The contracts are public: trades of accounts that this service does not know
                // prove nothing.
                if store::users::find_by_address(tx, decision.account).await?.is_none() {
                    continue;
                }
                format!("block {block_number} decided the trade {trade_id}, which is not in the database")
            }
        };
        return Ok(Some(Opening { reason: "unknown_trade", detail, from_block }));
    }
    Ok(None)
}

/// Opens a recovery, unless one is open. Returns whether it did.
pub async fn open(tx: &mut Tx, opening: &Opening, now: Timestamp) -> Result<bool, StoreError> {
    if !store::recoveries::open(tx, opening, now).await? {
        return Ok(false);
    }
    let Opening { reason, detail, from_block } = opening;
    tracing::error!(reason, detail, from_block, "data was lost: no trade is signed until it is recovered");
    let after = json!({ "reason": reason, "detail": detail, "fromBlock": from_block });
    note(tx, Act::new("recovery.open", "recovery").after(after));
    Ok(true)
}

/// Looks for lost data in blocks that the sync has not read yet. Opens a recovery if it finds some.
pub async fn detect(ctx: &Ctx) -> Result<Detection, AppError> {
    let last = ctx.store.read((), |tx, ()| Box::pin(store::sync::find_last(tx, None))).await;
    // Nothing was ever read, so this is a new database and not an old copy.
    let Some(last) = last? else { return Ok(Detection::Clean) };
    let head = ctx.chain.head().await?.number;
    if head > last.number + MOST_BLOCKS {
        return Ok(Detection::SyncBehind);
    }
    // Blocks that were read need no check here: the sync looked for the same evidence in them.
    let from_block = last.number + 1;
    let mut decisions = Decisions::new(from_block, head);
    while let Some(some) = decisions.next(ctx).await? {
        if some.is_empty() {
            continue;
        }
        let found = ctx
            .store
            .read((some, from_block), |tx, (some, from)| Box::pin(evidence(tx, some, *from)))
            .await?;
        if let Some(opening) = found {
            open_now(ctx, opening).await?;
            return Ok(Detection::Lost);
        }
    }
    Ok(Detection::Clean)
}

/// Opens a recovery because the Gate has seen nonces that this database never assigned.
pub async fn open_for_nonce(ctx: &Ctx, lost: &LostData) -> Result<(), AppError> {
    let settled = ctx.store.read((), |tx, ()| Box::pin(store::sync::find_settled(tx))).await;
    let from_block = settled?.map_or(0, |settled| settled + 1);
    open_now(ctx, Opening { reason: "used_nonce", detail: lost.detail.clone(), from_block }).await.map(drop)
}

/// Opens a recovery for the operator, unless one is open. Returns the open recovery.
pub async fn open_for_operator(ctx: &Ctx, from_block: Option<u64>) -> Result<Recovery, AppError> {
    let from_block = match from_block {
        Some(from_block) => from_block,
        None => default_from(ctx).await?,
    };
    let detail = "requested by the operator".to_owned();
    open_now(ctx, Opening { reason: "operator", detail, from_block }).await?;
    let open = ctx.store.read((), |tx, ()| Box::pin(store::recoveries::find_open(tx))).await?;
    open.ok_or_else(|| {
        AppError::new(ErrorCode::DependencyUnavailable).detail("The recovery has already ended.")
    })
}

/// Returns the default first block of an operator's recovery.
pub async fn default_from(ctx: &Ctx) -> Result<u64, AppError> {
    let last = ctx.store.read((), |tx, ()| Box::pin(store::sync::find_last(tx, None))).await;
    Ok(last?.map_or(0, |last| last.number.saturating_sub(LOOK_BACK_BLOCKS)))
}

async fn open_now(ctx: &Ctx, opening: Opening) -> Result<bool, AppError> {
    Ok(ctx.store.write((opening, ctx.now()), |tx, (opening, now)| Box::pin(open(tx, opening, *now))).await?)
}

pub async fn is_open(ctx: &Ctx) -> Result<bool, AppError> {
    Ok(ctx.store.read((), |tx, ()| Box::pin(store::recoveries::is_open(tx))).await?)
}
