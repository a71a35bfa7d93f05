//! Sums held against a fresh computation: what is kept against movements, and movements against the chain's events.

mod chain_events;
mod computed;

use domain::ids::MarketId;
use store::StoreError;
use store::traders::kept::{self, Kept};

use crate::{AppError, Ctx};
use computed::Computed;

/// How many markets are looked at in one reading.
const MARKETS: u32 = 200;
/// How often it is begun anew because the sync went on meanwhile.
const ATTEMPTS: usize = 5;

/// Something that is kept and is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What it is.
    pub what: String,
    /// What is kept of it.
    pub kept: String,
    /// What it should be.
    pub computed: String,
}

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The block that the tables spoke of.
    pub block: Option<u64>,
    /// The markets that were compared.
    pub markets: usize,
    /// The movements that were compared.
    pub movements: usize,
    /// What is not as it should be.
    pub differences: Vec<Difference>,
}

/// Compares everything that is summed with a fresh computation from the movements, and the movements with the chain's
/// events. Where the sync goes on meanwhile it is done again, so that the comparison is of one block.
pub async fn verify(ctx: &Ctx) -> Result<Verified, AppError> {
    let mut attempt = 1;
    loop {
        let before = last_block(ctx).await?;
        let verified = compare(ctx, before).await?;
        if attempt == ATTEMPTS || verified.differences.is_empty() || last_block(ctx).await? == before {
            return Ok(verified);
        }
        attempt += 1;
    }
}

async fn last_block(ctx: &Ctx) -> Result<Option<u64>, AppError> {
    let last: Result<_, StoreError> =
        ctx.store.read((), |tx, ()| Box::pin(store::sync::find_last(tx, None))).await;
    Ok(last?.map(|block| block.number))
}

async fn compare(ctx: &Ctx, block: Option<u64>) -> Result<Verified, AppError> {
    let read: Result<_, StoreError> = ctx.store.read((), |tx, ()| Box::pin(kept::all(tx))).await;
    let (kept, edges) = read?;
    let mut computed = Computed::new(edges);
    let mut verified = Verified { block, markets: 0, movements: 0, differences: Vec::new() };
    let mut after: Option<MarketId> = None;
    loop {
        let ids: Result<Vec<MarketId>, StoreError> =
            ctx.store.read(after, |tx, after| Box::pin(store::markets::list_ids(tx, *after, MARKETS))).await;
        let ids = ids?;
        let Some(last) = ids.last() else { break };
        after = Some(*last);
        for id in ids {
            computed.market(ctx, id, &mut verified).await?;
        }
    }
    differ(&kept, &computed.rows(), &mut verified.differences);
    if let Some(block) = block {
        chain_events::compare(ctx, block, &mut verified).await?;
    }
    Ok(verified)
}

/// Rows that are zero count as rows that are not there.
fn differ(kept: &Kept, computed: &Kept, differences: &mut Vec<Difference>) {
    let is_zero = |row: Option<&Vec<i64>>| row.is_none_or(|row| row.iter().all(|n| *n == 0));
    let names: std::collections::BTreeSet<&String> = kept.keys().chain(computed.keys()).collect();
    for name in names {
        let (kept, computed) = (kept.get(name), computed.get(name));
        if kept != computed && !(is_zero(kept) && is_zero(computed)) {
            differences.push(Difference {
                what: name.clone(),
                kept: format!("{:?}", kept.cloned().unwrap_or_default()),
                computed: format!("{:?}", computed.cloned().unwrap_or_default()),
            });
        }
    }
}
