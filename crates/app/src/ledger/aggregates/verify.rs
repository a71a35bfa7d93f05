//! Verifies aggregates: the stored values against the movements, and the movements against the
//! chain's events.

mod chain_events;
mod computed;

use domain::ids::MarketId;
use store::traders::kept::{self, Kept};

use crate::{AppError, Ctx};
use computed::Computed;

/// The number of markets per page.
const MARKETS: u32 = 200;
/// The maximum number of attempts, because the sync may advance during one.
const ATTEMPTS: usize = 5;

/// A stored value that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub what: String,
    /// The stored value.
    pub kept: String,
    /// The expected value.
    pub computed: String,
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregatesVerification {
    /// The last block in the tables.
    pub block: Option<u64>,
    /// The number of compared markets.
    pub markets: usize,
    /// The number of compared movements.
    pub movements: usize,
    pub differences: Vec<Difference>,
}

/// Compares all aggregates with a fresh computation from the movements, and the movements with the
/// chain's events.
///
/// The pages are read in separate transactions. If the sync advances during an attempt, differences
/// may be false, so it is repeated.
pub async fn verify(ctx: &Ctx) -> Result<AggregatesVerification, AppError> {
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
    let last = ctx.store.read((), |tx, ()| Box::pin(store::sync::find_last(tx, None))).await?;
    Ok(last.map(|block| block.number))
}

async fn compare(ctx: &Ctx, block: Option<u64>) -> Result<AggregatesVerification, AppError> {
    let (kept, edges) = ctx.store.read((), |tx, ()| Box::pin(kept::all(tx))).await?;
    let mut computed = Computed::new(edges);
    let mut verified = AggregatesVerification { block, markets: 0, movements: 0, differences: Vec::new() };
    let mut after: Option<MarketId> = None;
    loop {
        let ids =
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

/// Compares rows by name. Rows of zeros equal missing rows.
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
