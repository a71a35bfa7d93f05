//! What each key is used for: counted in memory as requests are answered, added to the database every few seconds, and
//! told to the key's owner over the last 24 hours, 7 days and 30 days.

mod flush;
mod record;

use domain::usage::{GasCounts, RequestCounts, TradeCounts, WebhookCounts, Windows};
use domain::{Timestamp, Usdc};

pub use flush::{Flusher, flush};
pub use record::Recorder;

use crate::keys::Caller;
use crate::{AppError, Ctx};

/// What a key has spent of its daily cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spend {
    /// Its buys of the last 24 hours.
    pub last_24h: Usdc,
    /// What is left of the cap.
    pub remaining: Usdc,
}

/// What a key was used for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// What it has spent.
    pub spend: Spend,
    /// What became of its requests.
    pub requests: Windows<RequestCounts>,
    /// What became of its trades.
    pub trades: Windows<TradeCounts>,
    /// What the transactions cost that carried its trades.
    pub gas: Windows<GasCounts>,
    /// What became of the deliveries to its webhook.
    pub webhooks: Windows<WebhookCounts>,
    /// When its last request was answered.
    pub last_used_at: Option<Timestamp>,
}

/// What the calling key was used for, and nothing of the user's other keys.
///
/// Requests that this process has counted are all in it; those of other processes once they are added.
pub async fn of_key(ctx: &Ctx, caller: &Caller) -> Result<Usage, AppError> {
    let (key_id, now) = (caller.key.id, ctx.now());
    // What is counted here moves from memory to the database: while it is read, it stays where it is.
    let _still = ctx.usage.hold_still().await;
    let used: Result<_, store::StoreError> = ctx
        .store
        .read((key_id, now), |tx, (key_id, now)| Box::pin(store::usage::sum(tx, *key_id, *now)))
        .await;
    let mut used = used?;
    for counted in ctx.usage.of_key(key_id) {
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

/// What the calling key has spent of its daily cap.
pub async fn spend(ctx: &Ctx, caller: &Caller) -> Result<Spend, AppError> {
    let input = (caller.key.id, ctx.now());
    let spent: Result<Usdc, store::StoreError> =
        ctx.store.read(input, |tx, (id, now)| Box::pin(store::keys::find_spent(tx, *id, *now))).await;
    let last_24h = spent?;
    Ok(Spend { last_24h, remaining: caller.limits().daily.saturating_sub(last_24h) })
}
