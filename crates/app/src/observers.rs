//! Passes the reports of the store and of the nodes to the metrics and to the traces.

use std::sync::Arc;
use std::time::Duration;

use chain::RpcObserver;
use store::{RetryReason, StoreObserver, TradeMove};

use crate::metrics::Metrics;
use crate::traces::Traces;

/// The receivers of the reports.
#[derive(Debug, Clone, Default)]
pub struct Observers {
    pub metrics: Arc<Metrics>,
    pub traces: Arc<Traces>,
}

impl StoreObserver for Observers {
    fn unit(&self, unit: &'static str, took: Duration) {
        self.metrics.unit(unit, took);
        self.traces.unit(unit, took);
    }

    fn retried(&self, why: RetryReason) {
        self.metrics.retried(why);
    }

    fn trade(&self, moved: &TradeMove) {
        self.metrics.trade(moved);
        self.traces.trade_moved(moved);
    }
}

impl RpcObserver for Observers {
    fn answered(&self, method: &'static str, took: Duration, is_usable: bool) {
        self.metrics.answered(method, took, is_usable);
        self.traces.rpc(method, took, is_usable);
    }
}
