//! Rebuilds aggregates: for databases that are older than the aggregates, and at the operator's
//! request.
//!
//! Markets and threads to rebuild are in a backlog, which the sync processes in parts. Until a
//! market is rebuilt, its new movements are not counted. Then all of them are counted in one
//! transaction.

use domain::UsdcDelta;
use domain::ids::MarketId;
use store::Tx;
use store::audit_log::Act;
use store::leases::Lease;
use store::movements::Movement;
use store::traders::Deeds;
use store::traders::backlog::{self, TraderBacklogEntry};

use super::PAGE;
use crate::ledger::apply::Positions;
use crate::{AppError, Ctx, audit_log, lease};

/// The maximum number of backlog entries per transaction.
const AT_ONCE: u32 = 100;
/// A transaction that has counted this many movements starts no further market.
const MANY_MOVEMENTS: usize = 5_000;

/// Processes a part of the backlog under the sync's lease. Returns whether there is more.
pub async fn catch_up(ctx: &Ctx, lease: &Lease) -> Result<bool, AppError> {
    if !is_behind(ctx).await? {
        return Ok(false);
    }
    ctx.store
        .try_write(lease.clone(), |tx, lease| {
            Box::pin(async move {
                lease::check(tx, lease).await?;
                step(tx).await
            })
        })
        .await
}

/// Deletes and rebuilds all aggregates. A running sync is blocked for one part at a time.
pub async fn rebuild(ctx: &Ctx) -> Result<(), AppError> {
    let act = Act::new("aggregates.rebuild", "aggregates");
    audit_log::around(ctx, act, rebuild_all(ctx), |()| serde_json::Value::Null).await
}

async fn rebuild_all(ctx: &Ctx) -> Result<(), AppError> {
    ctx.store
        .write((), |tx, ()| {
            Box::pin(async move {
                store::leases::exclude(tx, SYNC).await?;
                backlog::restart(tx).await
            })
        })
        .await?;
    while is_behind(ctx).await? {
        ctx.store
            .try_write((), |tx, ()| {
                Box::pin(async move {
                    store::leases::exclude(tx, SYNC).await?;
                    step(tx).await
                })
            })
            .await?;
    }
    Ok(())
}

/// The name of the lease under which movements are written.
const SYNC: &str = "sync";

async fn is_behind(ctx: &Ctx) -> Result<bool, AppError> {
    let behind = ctx.store.read((), |tx, ()| Box::pin(backlog::list_behind(tx, 1))).await?;
    Ok(!behind.is_empty())
}

async fn step(tx: &mut Tx) -> Result<bool, AppError> {
    store::traders::lock(tx).await?;
    let mut counted = 0;
    for behind in backlog::list_behind(tx, AT_ONCE).await? {
        match behind {
            TraderBacklogEntry::Market(id) => counted += make(tx, id).await?,
            TraderBacklogEntry::Thread(id) => {
                if let Some(thread) = store::catalog::find_thread(tx, id).await? {
                    store::catalog::put_words(tx, &thread).await?;
                }
            }
        }
        backlog::finish(tx, behind).await?;
        if counted >= MANY_MOVEMENTS {
            break;
        }
    }
    Ok(!backlog::list_behind(tx, 1).await?.is_empty())
}

/// Counts all movements of a market that has none counted yet. Positions are rebuilt too, because
/// the realized profit of a movement depends on them.
async fn make(tx: &mut Tx, id: MarketId) -> Result<usize, AppError> {
    store::markets::lock(tx, id).await?;
    store::listed::refresh(tx, id).await?;
    store::movements::delete_positions(tx, id).await?;
    let (mut positions, mut deeds) = (Positions::default(), Deeds::default());
    let (mut after, mut counted) = (String::new(), 0);
    loop {
        let mut movements = store::movements::list_of_market(tx, id, &after, PAGE).await?;
        let Some(last) = movements.last() else { break };
        after.clone_from(&last.id);
        counted += movements.len();
        let mut changed: Vec<Movement> = Vec::new();
        for movement in &mut movements {
            let realized: UsdcDelta = positions.add(tx, movement).await?;
            if movement.realized_pnl != realized {
                movement.realized_pnl = realized;
                changed.push(movement.clone());
            }
            deeds.add(movement);
        }
        store::movements::put_realized(tx, &changed).await?;
    }
    positions.write(tx).await?;
    deeds.write_all(tx).await?;
    store::listed::refresh(tx, id).await?;
    Ok(counted)
}
