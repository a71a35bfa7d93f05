//! What is wrong with the service although everything that it depends on answers.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Blocks are read late.
    SyncBehind,
    /// No blocks are read, although there are new ones.
    SyncStopped,
    /// Executors cannot pay for a transaction.
    LaneWithoutGas,
    /// Executors cannot pay for a full batch.
    LaneLowOnGas,
    /// A worker of this process has panicked a moment ago.
    WorkerPanicked,
    /// A worker of this process fails or does not come to an end.
    WorkerFailing,
    /// Markets are in quarantine.
    MarketQuarantined,
    /// A trade does not end.
    TradeStuck,
    /// The tables were found to differ from the chain.
    Drift,
    /// Lost data is being recovered.
    Recovering,
    /// Trades wait, because the chain's fees are above the operator's ceiling.
    FeesAboveCeiling,
    /// Trades wait, because the contracts' hourly volume is used up.
    HourlyVolumeUsed,
}

impl Reason {
    /// The word in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SyncBehind => "sync_behind",
            Self::SyncStopped => "sync_stopped",
            Self::LaneWithoutGas => "lane_without_gas",
            Self::LaneLowOnGas => "lane_low_on_gas",
            Self::WorkerPanicked => "worker_panicked",
            Self::WorkerFailing => "worker_failing",
            Self::MarketQuarantined => "market_quarantined",
            Self::TradeStuck => "trade_stuck",
            Self::Drift => "drift",
            Self::Recovering => "recovering",
            Self::FeesAboveCeiling => "fees_above_ceiling",
            Self::HourlyVolumeUsed => "hourly_volume_used",
        }
    }
}

/// One thing that is wrong. Public: the detail names no address, URL or key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Degradation {
    /// What.
    pub reason: Reason,
    /// In a sentence.
    pub detail: String,
    /// Whether no trade can be completed because of it.
    pub stops_trading: bool,
}

impl Degradation {
    /// One in spite of which trading goes on.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into(), stops_trading: false }
    }

    /// As one that stops trading, if it does.
    #[must_use]
    pub const fn stops_trading(mut self, stops_trading: bool) -> Self {
        self.stops_trading = stops_trading;
        self
    }
}

/// What this process has found to be wrong, each reason once.
#[derive(Debug, Default)]
pub struct Degradations(Mutex<BTreeMap<Reason, Degradation>>);

impl Degradations {
    /// Replaces what is known about a reason; `None` if nothing is wrong.
    pub fn put(&self, reason: Reason, found: Option<Degradation>) {
        let mut known = self.0.lock();
        let changed = match &found {
            Some(found) => known.insert(reason, found.clone()).is_none(),
            None => known.remove(&reason).is_some(),
        };
        drop(known);
        match found {
            Some(found) if changed => {
                tracing::error!(reason = reason.as_str(), detail = found.detail, "the service is degraded");
            }
            None if changed => tracing::info!(reason = reason.as_str(), "the service has recovered"),
            _ => {}
        }
    }

    /// All that is wrong.
    pub fn list(&self) -> Vec<Degradation> {
        self.0.lock().values().cloned().collect()
    }
}
