//! The metrics of this process, in the OpenMetrics format. Everything that is measured has its name,
//! its labels and its buckets here; the rest of the code only calls the recording methods.
//!
//! Labels have few values, which the code knows. They never contain users, keys or markets.

mod labels;

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use chain::RpcObserver;
use domain::ErrorCode;
use domain::ids::CorrelationId;
use domain::trade::Status;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};
use store::{PoolStatus, RetryReason, StoreObserver, TradeMove};

pub use labels::RouteLabel;
use labels::{
    BudgetScope, Build, Code, Event, Lane, Method, Name, Outcome, Pool, Quantile, RequestLabels, Route,
    Stage, TraceId, Unit, Why,
};

const PREFIX: &str = "foretell";
/// Latencies: a bucket for each power of two from 1 ms to 64 s.
const LATENCIES: (i32, i32) = (-10, 6);
/// The limit of the time in which a trade must be accepted, which is no power of two.
const ACCEPTED_S: f64 = 0.05;
/// Times from the creation of a trade to its end: to 1,024 s.
const TRADES: (i32, i32) = (-10, 10);
/// Requests of a group: 1 to 64.
const DESK_GROUP: (i32, i32) = (0, 6);
/// Intents of a batch: 1 to 128.
const BATCH_TRADES: (i32, i32) = (0, 7);
/// Gas of a batch: 65,536 to 33,554,432.
const BATCH_GAS: (i32, i32) = (16, 25);

type Gauges<L> = Family<L, Gauge>;
type FloatGauge = Gauge<f64, AtomicU64>;
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;
type TracedHistogram = HistogramWithExemplars<TraceId>;
type TracedHistograms<L> = Family<L, TracedHistogram, fn() -> TracedHistogram>;

/// The metrics and their registry.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    names: Vec<String>,
    http_requests: Family<RequestLabels, Counter>,
    http_request_seconds: TracedHistograms<Route>,
    http_in_flight: Gauge,
    trades: Family<Event, Counter>,
    trade_seconds: TracedHistograms<Stage>,
    desk_group_size: Histogram,
    trade_oldest_open_seconds: Family<Lane, FloatGauge>,
    lane_leader: Gauges<Lane>,
    batch_trades: Histogram,
    batch_gas: Histogram,
    executor_balance_wei: Family<Lane, FloatGauge>,
    executor_batches_left: Family<Lane, FloatGauge>,
    executor_pending_nonces: Gauges<Lane>,
    signer_failures: Family<Lane, Counter>,
    chain_head_block: Gauge,
    chain_synced_block: Gauge,
    chain_lag_seconds: Gauge,
    reorgs: Counter,
    rpc_seconds: Histograms<Method>,
    rpc_errors: Counter,
    store_seconds: Histograms<Unit>,
    store_retries: Family<Why, Counter>,
    store_pool: Gauges<Pool>,
    webhook_head_age_seconds: Family<Quantile, FloatGauge>,
    webhook_attempts: Family<Outcome, Counter>,
    webhook_breakers_open: Gauge,
    sink_events: Family<Outcome, Counter>,
    sink_failures: Counter,
    sink_lag_seconds: FloatGauge,
    feed_streams: Gauge,
    limiter_refusals: Counter,
    budget_limit: Gauges<BudgetScope>,
    budget_used: Gauges<BudgetScope>,
    budget_refusals: Family<BudgetScope, Counter>,
    auth_failures: Family<Code, Counter>,
    switch_off: Gauges<Name>,
    aggregates_drift: Gauge,
    trace_spans: Family<Outcome, Counter>,
    /// Chooses the traces that become exemplars. All do if this is not set.
    has_exemplar: OnceLock<fn(CorrelationId) -> bool>,
}

/// Registers metrics and remembers their names.
struct Registering {
    registry: Registry,
    names: Vec<String>,
}

impl Registering {
    /// Registers a metric. The encoder appends `_total` to the names of counters.
    fn add<M: Metric + Clone>(&mut self, name: &'static str, help: &str, metric: M) -> M {
        self.registry.register(name, help, metric.clone());
        let ending = if metric.metric_type().as_str() == "counter" { "_total" } else { "" };
        self.names.push(format!("{PREFIX}_{name}{ending}"));
        metric
    }
}

fn octaves((from, to): (i32, i32)) -> impl Iterator<Item = f64> {
    (from..=to).map(|exponent| f64::from(exponent).exp2())
}

fn latencies() -> Histogram {
    Histogram::new(octaves(LATENCIES))
}

fn traced_latencies() -> TracedHistogram {
    HistogramWithExemplars::new(octaves(LATENCIES))
}

fn trade_times() -> TracedHistogram {
    let mut bounds: Vec<f64> = octaves(TRADES).chain([ACCEPTED_S]).collect();
    bounds.sort_unstable_by(f64::total_cmp);
    HistogramWithExemplars::new(bounds.into_iter())
}

impl Default for Metrics {
    fn default() -> Self {
        let mut all = Registering { registry: Registry::with_prefix(PREFIX), names: Vec::new() };
        let build = Build { version: env!("CARGO_PKG_VERSION") };
        all.registry.register("build", "The version of the program", Info::new(build));
        all.names.push("foretell_build_info".to_owned());
        Self {
            http_requests: all.add("http_requests", "Answered requests", Family::default()),
            http_request_seconds: all.add(
                "http_request_seconds",
                "Time from a request's head to its answer",
                Family::new_with_constructor(traced_latencies as fn() -> TracedHistogram),
            ),
            http_in_flight: all.add("http_in_flight", "Requests that are being answered", Gauge::default()),
            trades: all.add("trades", "Changes of trades' states by this process", Family::default()),
            trade_seconds: all.add(
                "trade_seconds",
                "Time of a trade: accept (request to answer), sign (creation to signed batch), final (creation to end)",
                Family::new_with_constructor(trade_times as fn() -> TracedHistogram),
            ),
            desk_group_size: all.add(
                "desk_group_size",
                "Requests whose trades were created in one transaction",
                Histogram::new(octaves(DESK_GROUP)),
            ),
            trade_oldest_open_seconds: all.add(
                "trade_oldest_open_seconds",
                "Age of the lane's oldest open trade, without those held for confirmation",
                Family::default(),
            ),
            lane_leader: all.add("lane_leader", "1 if this process runs the lane", Family::default()),
            batch_trades: all.add(
                "batch_trades",
                "Trades in a signed batch",
                Histogram::new(octaves(BATCH_TRADES)),
            ),
            batch_gas: all.add("batch_gas", "Gas used by a final batch", Histogram::new(octaves(BATCH_GAS))),
            executor_balance_wei: all.add(
                "executor_balance_wei",
                "Native currency of the lane's executor",
                Family::default(),
            ),
            executor_batches_left: all.add(
                "executor_batches_left",
                "Batches of 100 trades that the executor's balance pays for at the current fee",
                Family::default(),
            ),
            executor_pending_nonces: all.add(
                "executor_pending_nonces",
                "Transactions of the lane that are signed and not final",
                Family::default(),
            ),
            signer_failures: all.add(
                "signer_failures",
                "Transactions that the lane's remote signer did not sign",
                Family::default(),
            ),
            chain_head_block: all.add("chain_head_block", "The chain's newest block", Gauge::default()),
            chain_synced_block: all.add("chain_synced_block", "The last block that was read", Gauge::default()),
            chain_lag_seconds: all.add(
                "chain_lag_seconds",
                "Time between the last block that was read and the newest one",
                Gauge::default(),
            ),
            reorgs: all.add("reorgs", "Reorganizations that this process has followed", Counter::default()),
            rpc_seconds: all.add(
                "rpc_seconds",
                "Time of a request to a node",
                Family::new_with_constructor(latencies as fn() -> Histogram),
            ),
            rpc_errors: all.add("rpc_errors", "Requests to nodes without a usable answer", Counter::default()),
            store_seconds: all.add(
                "store_seconds",
                "Time of a unit of work in the database, with its wait for a connection",
                Family::new_with_constructor(latencies as fn() -> Histogram),
            ),
            store_retries: all.add("store_retries", "Units of work that were run again", Family::default()),
            store_pool: all.add("store_pool", "Connections to the database by pool and state", Family::default()),
            webhook_head_age_seconds: all.add(
                "webhook_head_age_seconds",
                "How long due webhook queues have waited: 0.5, 0.95, 0.99 and the maximum (1)",
                Family::default(),
            ),
            webhook_attempts: all.add("webhook_attempts", "Webhook attempts by outcome", Family::default()),
            webhook_breakers_open: all.add(
                "webhook_breakers_open",
                "Webhook receivers that get no attempts for now",
                Gauge::default(),
            ),
            sink_events: all.add("sink_events", "Events for NATS by outcome", Family::default()),
            sink_failures: all.add(
                "sink_failures",
                "Steps in which NATS did not acknowledge an event",
                Counter::default(),
            ),
            sink_lag_seconds: all.add(
                "sink_lag_seconds",
                "Age of the oldest event that NATS lacks, in the process that publishes",
                FloatGauge::default(),
            ),
            feed_streams: all.add("feed_streams", "Open event streams", Gauge::default()),
            limiter_refusals: all.add(
                "limiter_refusals",
                "Requests rejected by a rate limit",
                Counter::default(),
            ),
            budget_limit: all.add(
                "budget_limit",
                "The largest use of one user, address, network, site or of all together, if limited",
                Family::default(),
            ),
            budget_used: all.add(
                "budget_used",
                "The use of the one who uses most of the budget now, as this process has counted it",
                Family::default(),
            ),
            budget_refusals: all.add(
                "budget_refusals",
                "Uses that a budget had no room for",
                Family::default(),
            ),
            auth_failures: all.add("auth_failures", "Requests with a rejected API key", Family::default()),
            switch_off: all.add("switch_off", "1 if the kill switch is off", Family::default()),
            aggregates_drift: all.add(
                "aggregates_drift",
                "Markets found to differ from the chain so far",
                Gauge::default(),
            ),
            trace_spans: all.add("trace_spans", "Retained spans of traces by outcome", Family::default()),
            has_exemplar: OnceLock::new(),
            registry: all.registry,
            names: all.names,
        }
    }
}

/// An answered request.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredRequest<'a> {
    pub route: RouteLabel,
    pub method: &'a str,
    pub status: u16,
    pub code: Option<ErrorCode>,
    pub took: Duration,
    pub trace_id: Option<CorrelationId>,
}

/// Counts a request as running until it is dropped, also if its client hangs up.
#[derive(Debug)]
pub struct InFlight(Gauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// Returns all names, without the endings of the series of histograms.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns all metrics as text, with the state of the process that was recorded last.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        encode(&mut text, &self.registry).unwrap_or_default();
        text
    }

    pub fn pools(&self, pools: &[PoolStatus]) {
        for pool in pools {
            let states = [("busy", pool.busy), ("idle", pool.idle), ("waiting", pool.waiting)];
            for (state, connections) in states {
                self.store_pool.get_or_create(&Pool { pool: pool.name, state }).set(whole(connections));
            }
        }
    }

    pub fn streams(&self, open: u64) {
        self.feed_streams.set(whole(open));
    }

    /// Records the share of a scope of a budget, and makes its series begin at 0.
    pub fn budget_share(&self, budget: &'static str, scope: &'static str, limit: u64) {
        let labels = BudgetScope { budget, scope };
        self.budget_limit.get_or_create(&labels).set(whole(limit));
        self.budget_used.get_or_create(&labels).set(0);
        self.budget_refusals.get_or_create(&labels).inc_by(0);
    }

    pub fn budget_refusal(&self, budget: &'static str, scope: &'static str) {
        self.budget_refusals.get_or_create(&BudgetScope { budget, scope }).inc();
    }

    /// Records the largest use of a share now.
    pub fn budget_use(&self, budget: &'static str, scope: &'static str, used: u64) {
        self.budget_used.get_or_create(&BudgetScope { budget, scope }).set(whole(used));
    }

    /// Records which switches are off. The others leave the list.
    pub fn switches(&self, switches: impl Iterator<Item = (String, bool)>) {
        self.switch_off.clear();
        for (name, is_off) in switches {
            self.switch_off.get_or_create(&Name { name }).set(i64::from(is_off));
        }
    }

    pub fn begin_request(&self) -> InFlight {
        self.http_in_flight.inc();
        InFlight(self.http_in_flight.clone())
    }

    pub fn request(&self, answered: &AnsweredRequest<'_>) {
        let AnsweredRequest { route, method, status, code, took, trace_id } = *answered;
        let labels = RequestLabels::new(route, method, status, code);
        self.http_requests.get_or_create(&labels).inc();
        self.http_request_seconds.get_or_create(&Route { route }).observe(
            took.as_secs_f64(),
            trace_id.and_then(|id| self.exemplar(id)),
            None,
        );
        match code {
            Some(ErrorCode::RateLimitExceeded) => {
                self.limiter_refusals.inc();
            }
            Some(code) if status == 401 => {
                self.auth_failures.get_or_create(&Code { code: code.as_str() }).inc();
            }
            _ => {}
        }
    }

    /// Records a request that has created a trade.
    pub fn trade_accepted(&self, took: Duration, trace_id: CorrelationId) {
        self.trade_took("accept", took.as_secs_f64(), trace_id);
    }

    fn trade_took(&self, stage: &'static str, seconds: f64, trace_id: CorrelationId) {
        let times = self.trade_seconds.get_or_create(&Stage { stage });
        times.observe(seconds, self.exemplar(trace_id), None);
    }

    /// Lets only the traces that `choose` accepts become exemplars, because the others cannot be looked
    /// up.
    pub fn choose_exemplars(&self, choose: fn(CorrelationId) -> bool) {
        // The first choice wins.
        let _ = self.has_exemplar.set(choose);
    }

    fn exemplar(&self, trace_id: CorrelationId) -> Option<TraceId> {
        self.has_exemplar.get().is_none_or(|choose| choose(trace_id)).then_some(TraceId(trace_id))
    }

    /// Counts spans by their outcome: `sent`, `failed` or `queue_full`.
    pub fn trace_spans(&self, outcome: &'static str, count: u64) {
        self.trace_spans.get_or_create(&Outcome { outcome }).inc_by(count);
    }

    /// Records a group of requests that the desk serves together.
    pub fn desk_group(&self, requests: usize) {
        self.desk_group_size.observe(float(requests as u64));
    }

    pub fn lane_leader(&self, lane: u16, leads: bool) {
        self.lane_leader.get_or_create(&Lane { lane }).set(i64::from(leads));
    }

    pub fn open_batches(&self, lane: u16, batches: usize) {
        self.executor_pending_nonces.get_or_create(&Lane { lane }).set(whole(batches));
    }

    pub fn batch_signed(&self, trades: u64) {
        self.batch_trades.observe(float(trades));
    }

    pub fn batch_final(&self, gas_used: u64) {
        self.batch_gas.observe(float(gas_used));
    }

    /// Records the balance of a lane's executor, and the number of batches that it pays for.
    pub fn executor_balance(&self, lane: u16, wei: f64, batches: f64) {
        self.executor_balance_wei.get_or_create(&Lane { lane }).set(wei);
        self.executor_batches_left.get_or_create(&Lane { lane }).set(batches);
    }

    pub fn signer_failed(&self, lane: u16) {
        self.signer_failures.get_or_create(&Lane { lane }).inc();
    }

    pub fn oldest_open(&self, lane: u16, age_ms: i64) {
        self.trade_oldest_open_seconds.get_or_create(&Lane { lane }).set(seconds(age_ms));
    }

    pub fn chain(&self, head: u64, synced: u64, lag_s: u64) {
        self.chain_head_block.set(whole(head));
        self.chain_synced_block.set(whole(synced));
        self.chain_lag_seconds.set(whole(lag_s));
    }

    pub fn reorganized(&self) {
        self.reorgs.inc();
    }

    /// Records how long due queues have waited: `(quantile, milliseconds)`.
    pub fn webhook_ages(&self, ages: &[(&'static str, i64)]) {
        for (quantile, age_ms) in ages {
            self.webhook_head_age_seconds.get_or_create(&Quantile { quantile }).set(seconds(*age_ms));
        }
    }

    pub fn webhook_attempt(&self, outcome: &'static str) {
        self.webhook_attempts.get_or_create(&Outcome { outcome }).inc();
    }

    /// Counts events for NATS by their outcome: `published`, `duplicate` (the stream had it) or `lost`
    /// (it was deleted before).
    pub fn sink_events(&self, outcome: &'static str, count: u64) {
        self.sink_events.get_or_create(&Outcome { outcome }).inc_by(count);
    }

    pub fn sink_failed(&self) {
        self.sink_failures.inc();
    }

    pub fn sink_lag(&self, age_ms: i64) {
        self.sink_lag_seconds.set(seconds(age_ms));
    }

    pub fn open_breakers(&self, count: u64) {
        self.webhook_breakers_open.set(whole(count));
    }

    pub fn drifted_markets(&self, count: u64) {
        self.aggregates_drift.set(whole(count));
    }
}

/// Converts milliseconds to seconds.
#[expect(clippy::float_arithmetic, reason = "metrics are floats, and no amounts")]
fn seconds(ms: i64) -> f64 {
    ms.max(0) as f64 / 1_000.0
}

fn float(count: u64) -> f64 {
    count as f64
}

fn whole(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

impl StoreObserver for Metrics {
    fn unit(&self, unit: &'static str, took: Duration) {
        self.store_seconds.get_or_create(&Unit { unit }).observe(took.as_secs_f64());
    }

    fn retried(&self, why: RetryReason) {
        self.store_retries.get_or_create(&Why { why: why.as_str() }).inc();
    }

    fn trade(&self, moved: &TradeMove) {
        self.trades.get_or_create(&Event { event: moved.to.as_str() }).inc();
        let age = seconds(moved.at.since_ms(moved.created_at));
        match moved.to {
            Status::Executing => self.trade_took("sign", age, moved.correlation_id),
            Status::Completed | Status::Failed => self.trade_took("final", age, moved.correlation_id),
            _ => {}
        }
    }
}

impl RpcObserver for Metrics {
    fn answered(&self, method: &'static str, took: Duration, is_usable: bool) {
        self.rpc_seconds.get_or_create(&Method { method }).observe(took.as_secs_f64());
        if !is_usable {
            self.rpc_errors.inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Timestamp;
    use domain::ids::TradeId;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    const NOW: Timestamp = Timestamp::from_ms(1_777_464_000_000);

    fn text_of(metrics: &Metrics) -> String {
        let mut text = String::new();
        encode(&mut text, &metrics.registry).unwrap();
        text
    }

    fn request(status: u16, code: Option<ErrorCode>) -> AnsweredRequest<'static> {
        AnsweredRequest {
            route: RouteLabel::of("/v1/trades/{id}"),
            method: "GET",
            status,
            code,
            took: Duration::from_millis(3),
            trace_id: Some(CorrelationId(0xab)),
        }
    }

    #[test]
    fn a_request_counts_with_its_route_and_its_trace_is_an_exemplar() {
        let metrics = Metrics::default();
        metrics.request(&request(200, None));
        metrics.request(&request(404, Some(ErrorCode::ResourceNotFound)));
        metrics.request(&AnsweredRequest { method: "BREW", route: RouteLabel::NONE, ..request(405, None) });
        let text = text_of(&metrics);
        for line in [
            r#"foretell_http_requests_total{route="/v1/trades/{id}",method="GET",status="200",code=""} 1"#,
            r#"foretell_http_requests_total{route="none",method="other",status="405",code=""} 1"#,
            r#"foretell_http_request_seconds_count{route="/v1/trades/{id}"} 2"#,
            r#"{trace_id="000000000000000000000000000000ab"} 0.003"#,
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn only_the_chosen_traces_become_exemplars() {
        let metrics = Metrics::default();
        metrics.choose_exemplars(|id| id == CorrelationId(0xcd));
        metrics.request(&request(200, None));
        assert!(!text_of(&metrics).contains("trace_id"));
        metrics.trade_accepted(Duration::from_millis(40), CorrelationId(0xcd));
        assert!(text_of(&metrics).contains(r#"{trace_id="000000000000000000000000000000cd"} 0.04"#));
    }

    #[test]
    fn rejected_keys_and_rate_limits_have_counters_of_their_own() {
        let metrics = Metrics::default();
        metrics.request(&request(401, Some(ErrorCode::ApiKeyRevoked)));
        metrics.request(&request(429, Some(ErrorCode::RateLimitExceeded)));
        let text = text_of(&metrics);
        assert!(text.contains(r#"foretell_auth_failures_total{code="API_KEY_REVOKED"} 1"#), "{text}");
        assert!(text.contains("foretell_limiter_refusals_total 1"), "{text}");
    }

    #[test]
    fn a_request_is_in_flight_until_it_is_dropped() {
        let metrics = Metrics::default();
        let running = [metrics.begin_request(), metrics.begin_request()];
        assert!(text_of(&metrics).contains("foretell_http_in_flight 2"));
        drop(running);
        assert!(text_of(&metrics).contains("foretell_http_in_flight 0"));
    }

    #[test]
    fn a_trade_is_timed_when_it_is_signed_and_when_it_ends() {
        let metrics = Metrics::default();
        let moved = |to, ms| TradeMove {
            trade_id: TradeId(uuid::Uuid::from_u128(0xcd)),
            to,
            created_at: NOW,
            since: NOW,
            at: NOW.plus_ms(ms),
            correlation_id: CorrelationId(0xcd),
            error: None,
            batch_id: None,
            was_held: false,
        };
        metrics.trade(&moved(Status::Pending, 0));
        metrics.trade(&moved(Status::Executing, 500));
        metrics.trade(&moved(Status::Completed, 2_000));
        metrics.trade_accepted(Duration::from_millis(40), CorrelationId(0xcd));
        let text = text_of(&metrics);
        for line in [
            r#"foretell_trades_total{event="completed"} 1"#,
            r#"foretell_trade_seconds_sum{stage="sign"} 0.5"#,
            r#"foretell_trade_seconds_sum{stage="final"} 2.0"#,
            r#"foretell_trade_seconds_bucket{le="0.05",stage="accept"} 1"#,
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    /// Returns the names of metrics in a text, without the endings of the series of histograms.
    fn mentioned(text: &str, registered: &BTreeSet<String>) -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let names = words.filter(|word| word.starts_with("foretell_"));
        names
            .map(|name| {
                let series = ["_bucket", "_count", "_sum"].into_iter().find_map(|end| name.strip_suffix(end));
                let base = series.filter(|base| registered.contains(*base));
                base.unwrap_or(name).to_owned()
            })
            .collect()
    }

    fn files_below(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
    }

    #[test]
    fn rules_dashboards_and_documents_name_exactly_the_registered_metrics() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let registered: BTreeSet<String> = Metrics::default().names().iter().cloned().collect();
        let text_of = |path: &Path| fs::read_to_string(path).unwrap();
        let document = mentioned(&text_of(&root.join("docs/monitoring.md")), &registered);
        assert_eq!(document, registered, "docs/monitoring.md");
        let mut used = BTreeSet::new();
        for folder in ["deploy/monitoring/rules", "deploy/monitoring/dashboards", "docs/runbooks"] {
            for path in files_below(&root.join(folder)) {
                let names = mentioned(&text_of(&path), &registered);
                let unknown: Vec<_> = names.difference(&registered).collect();
                assert!(unknown.is_empty(), "{}: {unknown:?}", path.display());
                used.extend(names);
            }
        }
        assert_eq!(used, registered, "each metric is in a rule or on a dashboard");
    }
}
