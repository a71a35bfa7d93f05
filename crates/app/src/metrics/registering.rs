//! The registration of metrics.

use std::hash::Hash;

use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::registry::{Metric, Registry};

use super::labels::Closed;

const PREFIX: &str = "foretell_";

/// Registers metrics and remembers their names.
#[derive(Debug, Default)]
pub(super) struct Registering {
    pub registry: Registry,
    pub names: Vec<String>,
}

impl Registering {
    /// Registers a metric. The encoder appends `_total` to the names of counters.
    pub fn add<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.add_as(format!("{PREFIX}{name}"), help, metric)
    }

    /// Registers a metric whose name other systems know.
    pub fn add_as<M: Metric + Clone>(&mut self, name: impl Into<String>, help: &str, metric: M) -> M {
        let name = name.into();
        self.registry.register(name.as_str(), help, metric.clone());
        let ending = if metric.metric_type().as_str() == "counter" { "_total" } else { "" };
        self.names.push(format!("{name}{ending}"));
        metric
    }

    /// Registers a family, and creates all its series.
    pub fn complete<L, M, C>(&mut self, name: &str, help: &str, family: Family<L, M, C>) -> Family<L, M, C>
    where
        L: Closed + EncodeLabelSet + Clone + Hash + Eq + std::fmt::Debug + Send + Sync + 'static,
        M: EncodeMetric + TypedMetric + std::fmt::Debug + Send + Sync + 'static,
        C: MetricConstructor<M> + Clone + Send + Sync + 'static,
        Family<L, M, C>: Metric,
    {
        for labels in L::all() {
            drop(family.get_or_create(&labels));
        }
        self.add(name, help, family)
    }
}
