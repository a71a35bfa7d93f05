//! Usage of each key: counted in memory, written to the database every few seconds, and reported to
//! the key's owner for the last 24 hours, 7 days and 30 days.

mod flush;
mod history;

use domain::usage::{GasCounts, RequestCounts, TradeCounts, WebhookCounts, Windows};
use domain::{Timestamp, Usdc};

pub use flush::{Flusher, flush};
pub use history::history;

use crate::caller::Caller;
use crate::{AppError, Ctx};

/// A key's use of its daily cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spend {
    /// The key's buys of the last 24 hours.
    pub last_24h: Usdc,
    /// The rest of the cap.
    pub remaining: Usdc,
}

/// A key's usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    pub spend: Spend,
    pub requests: Windows<RequestCounts>,
    pub trades: Windows<TradeCounts>,
    /// Costs of the transactions that carried the key's trades.
    pub gas: Windows<GasCounts>,
    pub webhooks: Windows<WebhookCounts>,
    pub last_used_at: Option<Timestamp>,
}

/// Returns the usage of the caller's key only.
///
/// It includes all requests that this process counted. Those of other processes are included once
/// they are flushed.
pub async fn of_key(ctx: &Ctx, caller: &Caller) -> Result<Usage, AppError> {
    let (key_id, now) = (caller.key.id, ctx.now());
    // Block flushes during the read. Otherwise a count could move between memory and database and
    // be missed or counted twice.
    let _still = ctx.process.usage.hold_still().await;
    let used = ctx
        .store
        .read((key_id, now), |tx, (key_id, now)| Box::pin(store::usage::sum(tx, *key_id, *now)))
        .await;
    let mut used = used?;
    for counted in ctx.process.usage.of_key(key_id) {
        used.requests.holding(counted.hour, now).for_each(|window| window.merge(&counted.counts));
        used.last_used_at = used.last_used_at.max(Some(counted.last_used_at));
    }
    Ok(Usage {
        spend: spend(ctx, caller).await?,
        requests: used.requests,
        trades: used.trades,
        gas: used.gas,
        webhooks: used.webhooks,
        last_used_at: used.last_used_at,
    })
}

/// Returns the use of the daily cap of the caller's key.
pub async fn spend(ctx: &Ctx, caller: &Caller) -> Result<Spend, AppError> {
    let input = (caller.key.id, ctx.now());
    let last_24h =
        ctx.store.read(input, |tx, (id, now)| Box::pin(store::keys::find_spent(tx, *id, *now))).await?;
    Ok(Spend { last_24h, remaining: caller.limits().daily.saturating_sub(last_24h) })
}
