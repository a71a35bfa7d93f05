//! The monitor: regularly checks for problems that readiness reports. It runs in every process
//! without a lease.

use async_trait::async_trait;
use chain::Block;
use domain::Timestamp;
use domain::time::MINUTE_MS;
use domain::trade::HoldReason;
use parking_lot::Mutex;
use store::lanes::Lane;
use store::sync::SyncBlock;
use store::{Schema, StoreError, Tx};

use super::gas::{self, executors_gas};
use super::unled::UnledParts;
use super::{Degradation, Reason, shared};
use crate::config::Finality;
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The sync counts as late if its last block is this much older than the newest block.
const BEHIND_S: u64 = 60;
/// A node counts as behind if it lacks more than this many blocks that were already read. Backends
/// of one node may differ by a few blocks.
const FEW_BLOCKS: u64 = 5;
/// The sync counts as stopped after this many checks with new blocks but no progress: about a
/// minute.
const LOOKS_WITHOUT_PROGRESS: u32 = 12;
/// A trade that executes for longer than this counts as stuck. Chains with a `finalized` tag take
/// longer.
const STUCK_MS: i64 = 5 * MINUTE_MS;
const STUCK_FINALIZED_MS: i64 = 30 * MINUTE_MS;
/// The time that a drift is reported after it was found.
const DRIFT_SHOWN_MS: i64 = 60 * MINUTE_MS;

#[derive(Default)]
pub struct HealthMonitor {
    unled: Mutex<UnledParts>,
    sync: Mutex<SyncProgress>,
    drift: Mutex<Option<DriftSeen>>,
}

/// The sync's progress at the last check.
#[derive(Debug, Default)]
struct SyncProgress {
    read: Option<u64>,
    looks_without: u32,
}

/// The total number of drifted markets, and the time at which it last increased.
#[derive(Debug, Clone, Copy)]
struct DriftSeen {
    markets: u64,
    grew_at: Option<Timestamp>,
}

#[async_trait]
impl Worker for HealthMonitor {
    fn name(&self) -> &'static str {
        "health monitor"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        // Everything else needs the database, and would wait for it for longer than a look may take.
        if !shared::look(ctx).await {
            return Ok(Progress::Idle);
        }
        // Before the other reads, which may fail on an old schema.
        ctx.process.serving.note_schema(ctx.store.schema().await? == Schema::Older);
        let now = ctx.now();
        let found = ctx.store.read(now, |tx, now| Box::pin(Found::read(tx, *now))).await;
        let found = found?;
        Self::measure(ctx, &found, now);
        let put = |reason, degradation| ctx.process.degradations.put(reason, degradation);
        put(Reason::MarketQuarantined, found.quarantined());
        put(Reason::TradeStuck, found.stuck(ctx.config.finality, now));
        put(Reason::FeesAboveCeiling, found.waiting_trades(HoldReason::FeeCeiling));
        put(Reason::HourlyVolumeUsed, found.waiting_trades(HoldReason::HourlyVolume));
        put(Reason::Drift, self.drift(found.drifted_markets, now));
        let lanes: Vec<u16> = ctx.process.lanes.in_use().iter().map(|lane| lane.lane).collect();
        put(Reason::PartWithoutProcess, self.unled.lock().look(&found.leases, &lanes, now));
        // After the checks that only need the database: they must run even if no node responds.
        let head = ctx.chain.head().await;
        Self::measure_lag(ctx, found.last.as_ref(), head.as_ref().ok());
        let head = head?;
        put(Reason::SyncBehind, behind(found.last.as_ref(), &head));
        put(Reason::SyncStopped, self.stopped(found.last.as_ref(), &head));
        let executors = executors_gas(ctx).await?;
        for executor in &executors {
            let (balance, batches) = (f64::from(executor.balance), f64::from(executor.batches()));
            ctx.process.metrics.executor_balance(executor.lane, balance, batches);
        }
        put(Reason::LaneWithoutGas, gas::without(&executors));
        put(Reason::LaneLowOnGas, gas::low(&executors));
        Ok(Progress::Idle)
    }
}

impl HealthMonitor {
    fn measure(ctx: &Ctx, found: &Found, now: Timestamp) {
        let metrics = &ctx.process.metrics;
        metrics.drifted_markets(found.drifted_markets);
        metrics.quarantined_markets(found.quarantined);
        if let Some(at) = found.backed_up_at {
            metrics.backed_up(at.ms());
        }
        metrics.open_breakers(found.open_breakers);
        let waits =
            found.webhooks_due_at.map(|(quantile, at)| (quantile, at.map_or(0, |at| now.since_ms(at))));
        metrics.webhook_ages(&waits);
        for Lane { lane, .. } in ctx.process.lanes.in_use() {
            let oldest = found.oldest_open.iter().find(|(of, _)| *of == lane);
            metrics.oldest_open(lane, oldest.map_or(0, |(_, at)| now.since_ms(*at)));
        }
    }

    /// Records how far the sync is behind the chain. While no node answers, nobody knows the newest
    /// block: then the lag is the age of the last one that was read, so that it grows.
    fn measure_lag(ctx: &Ctx, last: Option<&SyncBlock>, head: Option<&Block>) {
        let Some(last) = last else { return };
        match head {
            Some(head) => {
                let lag_s = head.timestamp_s.saturating_sub(last.at.s());
                ctx.process.metrics.chain(head.number, last.number, lag_s);
            }
            None => ctx.process.metrics.chain_silent(ctx.now().s().saturating_sub(last.at.s())),
        }
    }

    fn stopped(&self, last: Option<&SyncBlock>, head: &Block) -> Option<Degradation> {
        let read = last.map(|last| last.number);
        let mut seen = self.sync.lock();
        if seen.read != read || read.is_some_and(|read| read >= head.number) {
            *seen = SyncProgress { read, looks_without: 0 };
            return None;
        }
        seen.looks_without = seen.looks_without.saturating_add(1);
        let detail = "No new block has been read for at least 60 s. Trades do not complete.";
        (seen.looks_without >= LOOKS_WITHOUT_PROGRESS)
            .then(|| Degradation::new(Reason::SyncStopped, detail).stops_trading(true))
    }

    /// Drift that was found before this process started is not reported.
    fn drift(&self, markets: u64, now: Timestamp) -> Option<Degradation> {
        let mut seen = self.drift.lock();
        let before = seen.unwrap_or(DriftSeen { markets, grew_at: None });
        let grew_at = if markets > before.markets { Some(now) } else { before.grew_at };
        *seen = Some(DriftSeen { markets, grew_at });
        let grew_at = grew_at.filter(|at| now.since_ms(*at) <= DRIFT_SHOWN_MS)?;
        let detail =
            format!("At {grew_at} a market differed from the chain. It was repaired or quarantined.");
        Some(Degradation::new(Reason::Drift, detail))
    }
}

fn behind(last: Option<&SyncBlock>, head: &Block) -> Option<Degradation> {
    let last = last?;
    let (blocks, seconds) =
        (head.number.saturating_sub(last.number), head.timestamp_s.saturating_sub(last.at.s()));
    let degraded = |detail| Some(Degradation::new(Reason::SyncBehind, detail));
    if let Some(ahead) = last.number.checked_sub(head.number).filter(|ahead| *ahead > FEW_BLOCKS) {
        return degraded(format!("The node is {ahead} blocks behind the last block that was read."));
    }
    if blocks > 0 && seconds > BEHIND_S {
        return degraded(format!("The sync is {blocks} blocks and {seconds} s behind the newest block."));
    }
    None
}

/// The state read from the database.
struct Found {
    last: Option<SyncBlock>,
    quarantined: u64,
    drifted_markets: u64,
    oldest_executing: Option<Timestamp>,
    held: Vec<(HoldReason, u64)>,
    oldest_open: Vec<(u16, Timestamp)>,
    leases: Vec<(String, Timestamp)>,
    open_breakers: u64,
    backed_up_at: Option<Timestamp>,
    /// Due times of webhook queues, by quantile of their wait.
    webhooks_due_at: [(&'static str, Option<Timestamp>); QUANTILES.len()],
}

/// The reported quantiles, in percent. The last one is the maximum.
const QUANTILES: [(&str, u64); 4] = [("0.5", 50), ("0.95", 95), ("0.99", 99), ("1", 100)];

impl Found {
    async fn read(tx: &mut Tx, now: Timestamp) -> Result<Self, StoreError> {
        let due = store::webhooks::count_due(tx, now).await?;
        let mut webhooks_due_at = QUANTILES.map(|(quantile, _)| (quantile, None));
        for ((_, at), (_, percent)) in webhooks_due_at.iter_mut().zip(QUANTILES).filter(|_| due > 0) {
            // The nearest rank.
            let rank = (due * percent).div_ceil(100).saturating_sub(1);
            *at = store::webhooks::find_due_at(tx, now, rank).await?;
        }
        let counters = store::quarantine::list_counters(tx).await?;
        let drifted = counters.into_iter().find(|(name, _)| name == "drifted_markets");
        Ok(Self {
            last: store::sync::find_last(tx, None).await?,
            quarantined: store::quarantine::count(tx).await?,
            drifted_markets: drifted.map_or(0, |(_, markets)| markets),
            oldest_executing: store::trades::find_oldest_executing(tx).await?,
            held: store::trades::count_held(tx).await?,
            oldest_open: store::trades::list_oldest_open(tx).await?,
            leases: store::leases::list(tx).await?,
            open_breakers: store::webhooks::count_open_breakers(tx, now).await?,
            backed_up_at: store::operations::find_last_backup(tx).await?,
            webhooks_due_at,
        })
    }

    fn quarantined(&self) -> Option<Degradation> {
        let detail = format!("Markets in quarantine, which cannot be traded: {}.", self.quarantined);
        (self.quarantined > 0).then(|| Degradation::new(Reason::MarketQuarantined, detail))
    }

    fn waiting_trades(&self, reason: HoldReason) -> Option<Degradation> {
        let (_, trades) = self.held.iter().find(|(held_for, _)| *held_for == reason)?;
        Some(match reason {
            HoldReason::FeeCeiling => {
                let detail =
                    format!("Trades that wait because the chain's fees are above the ceiling: {trades}.");
                Degradation::new(Reason::FeesAboveCeiling, detail)
            }
            HoldReason::HourlyVolume => {
                let detail = format!(
                    "Trades that wait because they exceed the remaining volume of this hour: {trades}."
                );
                Degradation::new(Reason::HourlyVolumeUsed, detail)
            }
        })
    }

    fn stuck(&self, finality: Finality, now: Timestamp) -> Option<Degradation> {
        let longest = match finality {
            Finality::Depth => STUCK_MS,
            Finality::Finalized => STUCK_FINALIZED_MS,
        };
        let age_ms = now.since_ms(self.oldest_executing?);
        let detail = format!("The oldest executing trade has been executing for {} s.", age_ms / 1_000);
        (age_ms > longest).then(|| Degradation::new(Reason::TradeStuck, detail))
    }
}
