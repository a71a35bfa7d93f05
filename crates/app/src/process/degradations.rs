//! Known problems of the service, beyond unavailable dependencies.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// The kind of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The sync is late.
    SyncBehind,
    /// The sync reads no blocks although there are new ones.
    SyncStopped,
    /// Executors cannot pay for a transaction.
    LaneWithoutGas,
    /// Executors cannot pay for a full batch.
    LaneLowOnGas,
    /// A worker of this process panicked recently.
    WorkerPanicked,
    /// A worker of this process keeps failing or hangs.
    WorkerFailing,
    MarketQuarantined,
    TradeStuck,
    /// The tables were found to differ from the chain.
    Drift,
    Recovering,
    /// Trades wait because the chain's fees are above the operator's ceiling.
    FeesAboveCeiling,
    /// Trades wait because the contracts' hourly volume cap is used up.
    HourlyVolumeUsed,
    /// No process runs a lane or the upkeep.
    PartWithoutProcess,
    /// The database does not answer this process.
    DatabaseUnavailable,
    /// The database answers but accepts no writes.
    DatabaseRejectsWrites,
    /// No node of the chain answers this process.
    ChainUnavailable,
    /// The storage of the rate limits does not answer this process.
    RateLimiterUnavailable,
    /// This machine's clock differs from the database's or the chain's.
    ClockWrong,
}

impl Reason {
    pub const ALL: &[Self] = &[
        Self::SyncBehind,
        Self::SyncStopped,
        Self::LaneWithoutGas,
        Self::LaneLowOnGas,
        Self::WorkerPanicked,
        Self::WorkerFailing,
        Self::MarketQuarantined,
        Self::TradeStuck,
        Self::Drift,
        Self::Recovering,
        Self::FeesAboveCeiling,
        Self::HourlyVolumeUsed,
        Self::PartWithoutProcess,
        Self::DatabaseUnavailable,
        Self::DatabaseRejectsWrites,
        Self::ChainUnavailable,
        Self::RateLimiterUnavailable,
        Self::ClockWrong,
    ];

    /// The identifier in responses.
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
            Self::PartWithoutProcess => "part_without_process",
            Self::DatabaseUnavailable => "database_unavailable",
            Self::DatabaseRejectsWrites => "database_rejects_writes",
            Self::ChainUnavailable => "chain_unavailable",
            Self::RateLimiterUnavailable => "rate_limiter_unavailable",
            Self::ClockWrong => "clock_wrong",
        }
    }

    /// Returns whether the service's readiness has a check of its own for this problem.
    pub const fn has_check(self) -> bool {
        matches!(self, Self::DatabaseUnavailable | Self::ChainUnavailable | Self::RateLimiterUnavailable)
    }
}

/// A problem. Public: the detail must not contain addresses, URLs or keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Degradation {
    pub reason: Reason,
    pub detail: String,
    /// No trade can be completed while the problem lasts.
    pub stops_trading: bool,
}

impl Degradation {
    /// Creates a problem that does not stop trading.
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into(), stops_trading: false }
    }

    #[must_use]
    pub const fn stops_trading(mut self, stops_trading: bool) -> Self {
        self.stops_trading = stops_trading;
        self
    }
}

/// The current problems of this process, one per reason.
#[derive(Debug, Default)]
pub struct Degradations(Mutex<BTreeMap<Reason, Degradation>>);

impl Degradations {
    /// Sets or clears the problem of a reason. Logs only changes.
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

    pub fn has(&self, reason: Reason) -> bool {
        self.0.lock().contains_key(&reason)
    }

    pub fn list(&self) -> Vec<Degradation> {
        self.0.lock().values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_listed() {
        // Each reason has one arm in `as_str`, which the compiler checks.
        let arms = include_str!("degradations.rs")
            .lines()
            .filter(|line| line.trim_start().starts_with("Self::") && line.contains(" => \""));
        assert_eq!(arms.count(), Reason::ALL.len(), "ALL lacks a reason");
    }
}
