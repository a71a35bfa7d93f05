//! The monitor: looks every few seconds at what readiness shows beside whether everything answers. Each process has one, and
//! it holds no lease.

use alloy_primitives::{Address, U256};
use chain::Block;
use domain::Timestamp;
use domain::time::MINUTE_MS;
use domain::trade::HoldReason;
use parking_lot::Mutex;
use store::sync::SyncBlock;
use store::{StoreError, Tx};

use super::{Degradation, Reason};
use crate::finality::Finality;
use crate::trades::batch_gas;
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The sync is late if the last block that it has read is so much older than the newest one.
const BEHIND_S: u64 = 60;
/// A node is behind if it lacks more blocks than this of those that were read: backends of one node differ by a few.
const FEW_BLOCKS: u64 = 5;
/// The sync has stopped if so many looks in a row find new blocks and no progress: a minute.
const LOOKS_WITHOUT_PROGRESS: u32 = 12;
/// A trade that has been executing for longer is stuck; where the chain itself marks blocks as final, that takes longer.
const STUCK_MS: i64 = 5 * MINUTE_MS;
const STUCK_FINALIZED_MS: i64 = 30 * MINUTE_MS;
/// For how long a difference between the tables and the chain is shown after it was found.
const DRIFT_SHOWN_MS: i64 = 60 * MINUTE_MS;
/// The intents of a full batch.
const FULL_BATCH: u64 = 100;

/// The monitor's worker.
pub struct HealthMonitor {
    /// The executors of the lanes, in their order.
    executors: Vec<Address>,
    sync: Mutex<SyncProgress>,
    drift: Mutex<Option<DriftSeen>>,
}

/// How far the sync was at the last look.
#[derive(Debug, Default)]
struct SyncProgress {
    read: Option<u64>,
    looks_without: u32,
}

/// How many markets have ever differed, and when that number grew last.
#[derive(Debug, Clone, Copy)]
struct DriftSeen {
    markets: u64,
    grew_at: Option<Timestamp>,
}

impl Worker for HealthMonitor {
    fn name(&self) -> &'static str {
        "health monitor"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let found: Result<Found, StoreError> = ctx.store.read((), |tx, ()| Box::pin(Found::read(tx))).await;
        let found = found?;
        let now = ctx.now();
        let put = |reason, degradation| ctx.degradations.put(reason, degradation);
        put(Reason::MarketQuarantined, found.quarantined());
        put(Reason::TradeStuck, found.stuck(ctx.config.finality, now));
        put(Reason::FeesAboveCeiling, found.held(HoldReason::FeeCeiling));
        put(Reason::HourlyVolumeUsed, found.held(HoldReason::HourlyVolume));
        put(Reason::Drift, self.drift(found.drifted_markets, now));
        let head = ctx.chain.head().await?;
        put(Reason::SyncBehind, behind(found.last.as_ref(), &head));
        put(Reason::SyncStopped, self.stopped(found.last.as_ref(), &head));
        let gas = self.gas(ctx).await?;
        put(Reason::LaneWithoutGas, gas.without());
        put(Reason::LaneLowOnGas, gas.low());
        Ok(Progress::Idle)
    }
}

impl HealthMonitor {
    /// A monitor of the lanes of these executors.
    pub fn new(executors: Vec<Address>) -> Self {
        Self { executors, sync: Mutex::default(), drift: Mutex::default() }
    }

    fn stopped(&self, last: Option<&SyncBlock>, head: &Block) -> Option<Degradation> {
        let read = last.map(|last| last.number);
        let mut seen = self.sync.lock();
        if seen.read != read || read.is_some_and(|read| read >= head.number) {
            *seen = SyncProgress { read, looks_without: 0 };
            return None;
        }
        seen.looks_without = seen.looks_without.saturating_add(1);
        let detail = "No new block has been read for a minute or more. Trades are not completed.";
        (seen.looks_without >= LOOKS_WITHOUT_PROGRESS)
            .then(|| Degradation::new(Reason::SyncStopped, detail).stops_trading(true))
    }

    /// Differences that were found before this process has started are not shown.
    fn drift(&self, markets: u64, now: Timestamp) -> Option<Degradation> {
        let mut seen = self.drift.lock();
        let before = seen.unwrap_or(DriftSeen { markets, grew_at: None });
        let grew_at = if markets > before.markets { Some(now) } else { before.grew_at };
        *seen = Some(DriftSeen { markets, grew_at });
        let grew_at = grew_at.filter(|at| now.since_ms(*at) <= DRIFT_SHOWN_MS)?;
        let detail = format!(
            "A market was found to differ from the chain at {grew_at}. It was repaired or put in quarantine."
        );
        Some(Degradation::new(Reason::Drift, detail))
    }

    async fn gas(&self, ctx: &Ctx) -> Result<Gas, AppError> {
        let fee = U256::from(ctx.chain.fees().await?.max_fee_per_gas);
        let cost = |intents: u64| U256::from(batch_gas(intents)).saturating_mul(fee);
        let mut gas = Gas { lanes: self.executors.len(), ..Gas::default() };
        for (lane, executor) in self.executors.iter().enumerate() {
            let balance = ctx.chain.native_balance(*executor).await?;
            if balance < cost(1) {
                gas.without.push(lane.to_string());
            } else if balance < cost(FULL_BATCH) {
                gas.low.push(lane.to_string());
            }
        }
        Ok(gas)
    }
}

fn behind(last: Option<&SyncBlock>, head: &Block) -> Option<Degradation> {
    let last = last?;
    let (blocks, seconds) =
        (head.number.saturating_sub(last.number), head.timestamp_s.saturating_sub(last.at.s()));
    let degraded = |detail| Some(Degradation::new(Reason::SyncBehind, detail));
    if let Some(ahead) = last.number.checked_sub(head.number).filter(|ahead| *ahead > FEW_BLOCKS) {
        return degraded(format!("The node is {ahead} blocks behind what was read before."));
    }
    if blocks > 0 && seconds > BEHIND_S {
        return degraded(format!("The sync is {blocks} blocks and {seconds} s behind the newest block."));
    }
    None
}

/// The lanes whose executors run out of gas.
#[derive(Debug, Default)]
struct Gas {
    lanes: usize,
    without: Vec<String>,
    low: Vec<String>,
}

impl Gas {
    fn without(&self) -> Option<Degradation> {
        let (without, lanes) = (self.without.len(), self.lanes);
        let detail = format!(
            "{without} of {lanes} executors cannot pay for a transaction. Lanes: {}.",
            self.without.join(", ")
        );
        (without > 0)
            .then(|| Degradation::new(Reason::LaneWithoutGas, detail).stops_trading(without == lanes))
    }

    fn low(&self) -> Option<Degradation> {
        let (low, lanes) = (self.low.len(), self.lanes);
        let detail = format!(
            "{low} of {lanes} executors cannot pay for a batch of {FULL_BATCH} trades. Lanes: {}.",
            self.low.join(", ")
        );
        (low > 0).then(|| Degradation::new(Reason::LaneLowOnGas, detail))
    }
}

/// What the tables say.
struct Found {
    last: Option<SyncBlock>,
    quarantined: u64,
    drifted_markets: u64,
    oldest_executing: Option<Timestamp>,
    held: Vec<(HoldReason, u64)>,
}

impl Found {
    async fn read(tx: &mut Tx) -> Result<Self, StoreError> {
        let counters = store::quarantine::list_counters(tx).await?;
        let drifted = counters.into_iter().find(|(name, _)| name == "drifted_markets");
        Ok(Self {
            last: store::sync::find_last(tx, None).await?,
            quarantined: store::quarantine::count(tx).await?,
            drifted_markets: drifted.map_or(0, |(_, markets)| markets),
            oldest_executing: store::trades::find_oldest_executing(tx).await?,
            held: store::trades::count_held(tx).await?,
        })
    }

    fn quarantined(&self) -> Option<Degradation> {
        let detail = format!("{} markets are in quarantine and cannot be traded.", self.quarantined);
        (self.quarantined > 0).then(|| Degradation::new(Reason::MarketQuarantined, detail))
    }

    fn held(&self, reason: HoldReason) -> Option<Degradation> {
        let (_, trades) = self.held.iter().find(|(held_for, _)| *held_for == reason)?;
        Some(match reason {
            HoldReason::FeeCeiling => {
                let detail = format!("{trades} trades wait: the chain's fees are above the ceiling.");
                Degradation::new(Reason::FeesAboveCeiling, detail)
            }
            HoldReason::HourlyVolume => {
                let detail = format!("{trades} trades wait: they do not fit into the volume of this hour.");
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
