//! Finding out that data was lost.

use std::fmt;

use domain::{ErrorCode, Timestamp};
use serde_json::json;
use store::audit_log::{Act, note};
use store::recoveries::{Opening, Recovery};
use store::{StoreError, Tx};

use super::decision::{Decision, Decisions, unknown};
use crate::{AppError, Ctx};

/// A lane that takes over looks at this many blocks that were not read yet. If there are more it waits for the sync.
const MOST_BLOCKS: u64 = 5_000;
/// How far before the last block read the operator's recovery begins, unless it is told where.
const LOOK_BACK_BLOCKS: u64 = 10_000;

/// What looking for lost data gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detection {
    /// Nothing is lost.
    Clean,
    /// Data was lost; a recovery is open.
    Lost,
    /// The sync is too far behind to tell.
    SyncBehind,
}

/// The Gate has seen a nonce that was never given out here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostData {
    /// What shows it.
    pub detail: String,
}

impl fmt::Display for LostData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for LostData {}

impl LostData {
    /// As an error that rolls a transaction back.
    pub fn into_error(self) -> AppError {
        AppError::new(ErrorCode::DependencyUnavailable).caused_by(self)
    }

    /// What an error says of lost data, if it does.
    pub fn of(error: &AppError) -> Option<&Self> {
        error.source.as_ref().and_then(|source| source.downcast_ref())
    }
}

/// What these decisions, of blocks from `from_block` on, show of lost data: one of them is of a trade of our accounts
/// that is not in the tables, or that was not signed according to them.
pub async fn evidence(
    tx: &mut Tx,
    decisions: &[Decision],
    from_block: u64,
) -> Result<Option<Opening>, StoreError> {
    for (decision, status) in unknown(tx, decisions).await? {
        let Decision { trade_id, block_number, .. } = &decision;
        let detail = match status {
            Some(status) => {
                format!("block {block_number} decided the trade {trade_id}, which is {status} here")
            }
            None => {
                if store::users::find_by_address(tx, &decision.account_text()).await?.is_none() {
                    continue;
                }
                format!("block {block_number} decided the trade {trade_id}, which is not in the database")
            }
        };
        return Ok(Some(Opening { reason: "unknown_trade", detail, from_block }));
    }
    Ok(None)
}

/// Opens a recovery in this transaction, unless one is open.
pub async fn open(tx: &mut Tx, opening: &Opening, now: Timestamp) -> Result<bool, StoreError> {
    if !store::recoveries::open(tx, opening, now).await? {
        return Ok(false);
    }
    let Opening { reason, detail, from_block } = opening;
    tracing::error!(reason, detail, from_block, "data was lost: nothing is signed until it is recovered");
    let after = json!({ "reason": reason, "detail": detail, "fromBlock": from_block });
    note(tx, Act::new("recovery.open", "recovery").after(after));
    Ok(true)
}

/// Looks for lost data in the blocks that the sync has not read yet, and opens a recovery if there is some.
pub async fn detect(ctx: &Ctx) -> Result<Detection, AppError> {
    let last: Result<_, StoreError> =
        ctx.store.read((), |tx, ()| Box::pin(store::sync::find_last(tx, None))).await;
    let Some(last) = last? else { return Ok(Detection::Clean) };
    let head = ctx.chain.head().await?.number;
    if head > last.number + MOST_BLOCKS {
        return Ok(Detection::SyncBehind);
    }
    let from_block = last.number + 1;
    let mut decisions = Decisions::new(from_block, head);
    while let Some(some) = decisions.next(ctx).await? {
        if some.is_empty() {
            continue;
        }
        let found: Result<Option<Opening>, StoreError> =
            ctx.store.read((some, from_block), |tx, (some, from)| Box::pin(evidence(tx, some, *from))).await;
        if let Some(opening) = found? {
            open_now(ctx, opening).await?;
            return Ok(Detection::Lost);
        }
    }
    Ok(Detection::Clean)
}

/// Opens a recovery because the Gate has seen nonces that were never given out here.
pub async fn open_for_nonce(ctx: &Ctx, lost: &LostData) -> Result<(), AppError> {
    let settled: Result<Option<u64>, StoreError> =
        ctx.store.read((), |tx, ()| Box::pin(store::sync::find_settled(tx))).await;
    let from_block = settled?.map_or(0, |settled| settled + 1);
    open_now(ctx, Opening { reason: "used_nonce", detail: lost.detail.clone(), from_block }).await.map(drop)
}

/// Opens a recovery because the operator asks for one, unless one is open. Returns the one that is open then.
pub async fn open_for_operator(ctx: &Ctx, from_block: Option<u64>) -> Result<Recovery, AppError> {
    let from_block = match from_block {
        Some(from_block) => from_block,
        None => default_from(ctx).await?,
    };
    let detail = "the operator asked for it".to_owned();
    open_now(ctx, Opening { reason: "operator", detail, from_block }).await?;
    let open: Result<Option<Recovery>, StoreError> =
        ctx.store.read((), |tx, ()| Box::pin(store::recoveries::find_open(tx))).await;
    open?.ok_or_else(|| {
        AppError::new(ErrorCode::DependencyUnavailable).detail("The recovery has ended already.")
    })
}

/// The block from which the operator's recovery compares.
pub async fn default_from(ctx: &Ctx) -> Result<u64, AppError> {
    let last: Result<_, StoreError> =
        ctx.store.read((), |tx, ()| Box::pin(store::sync::find_last(tx, None))).await;
    Ok(last?.map_or(0, |last| last.number.saturating_sub(LOOK_BACK_BLOCKS)))
}

async fn open_now(ctx: &Ctx, opening: Opening) -> Result<bool, AppError> {
    let opened: Result<bool, StoreError> =
        ctx.store.write((opening, ctx.now()), |tx, (opening, now)| Box::pin(open(tx, opening, *now))).await;
    Ok(opened?)
}

/// Whether a recovery is open.
pub async fn is_open(ctx: &Ctx) -> Result<bool, AppError> {
    let open: Result<bool, StoreError> =
        ctx.store.read((), |tx, ()| Box::pin(store::recoveries::is_open(tx))).await;
    Ok(open?)
}
