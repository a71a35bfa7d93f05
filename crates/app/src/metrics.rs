//! The metrics of this process, in the OpenMetrics format. Everything that is measured has its name,
//! its labels and its buckets here; the rest of the code only calls the recording methods.
//!
//! Labels have few values, which the code knows. They never contain users, keys or markets.
//!
//! `rate()` can't see the step from "no series" to 1. So every series whose labels we can list exists
//! from the first scrape, at 0: see [`labels::Closed`].

mod labels;
mod process_figures;
mod registering;

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
use prometheus_client::registry::Registry;
use store::{PoolStatus, RetryReason, StoreObserver, TradeMove};

pub use labels::{AttemptOutcome, CheckName, ClockSource, RouteLabel, SinkOutcome, SpanOutcome};
use labels::{
    Attempts, BudgetScope, Build, Check, Clocks, Degraded, Event, Lane, Method, Name, NodeLabels, Pool,
    PoolName, Quantile, RejectedKey, RequestLabels, Route, SinkEvents, Spans, Stage, StageName, TraceId,
    TradeFailure, Unit, Why,
};
use process_figures::ProcessFigures;
use registering::Registering;

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

/// The state of a node at a scrape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFigures {
    /// The node's host, which must differ from those of the other nodes.
    pub node: String,
    pub is_up: bool,
    pub head: u64,
    /// The time since the newest block that the node has shown was made. It grows while the node is
    /// dead. `None` if it has shown none.
    pub block_age_s: Option<u64>,
}

/// The metrics and their registry.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    names: Vec<String>,
    http_requests: Family<RequestLabels, Counter>,
    http_request_seconds: TracedHistograms<Route>,
    http_in_flight: Gauge,
    http_connections: Gauge,
    http_connections_max: Gauge,
    trades: Family<Event, Counter>,
    trade_failures: Family<TradeFailure, Counter>,
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
    node_up: Gauges<NodeLabels>,
    node_head_block: Gauges<NodeLabels>,
    node_block_age_seconds: Gauges<NodeLabels>,
    reorgs: Counter,
    rpc_seconds: Histograms<Method>,
    rpc_errors: Counter,
    store_seconds: Histograms<Unit>,
    store_retries: Family<Why, Counter>,
    store_pool: Gauges<Pool>,
    store_pool_max: Gauges<PoolName>,
    replica_lag_blocks: Gauge,
    webhook_head_age_seconds: Family<Quantile, FloatGauge>,
    webhook_attempts: Family<Attempts, Counter>,
    webhook_breakers_open: Gauge,
    sink_events: Family<SinkEvents, Counter>,
    sink_failures: Counter,
    sink_lag_seconds: FloatGauge,
    feed_streams: Gauge,
    limiter_refusals: Counter,
    budget_limit: Gauges<BudgetScope>,
    budget_used: Gauges<BudgetScope>,
    budget_refusals: Family<BudgetScope, Counter>,
    auth_failures: Family<RejectedKey, Counter>,
    switch_off: Gauges<Name>,
    aggregates_drift: Gauge,
    markets_quarantined: Gauge,
    degraded: Gauges<Degraded>,
    check_up: Gauges<Check>,
    clock_offset_seconds: Family<Clocks, FloatGauge>,
    backup_timestamp_seconds: FloatGauge,
    trace_spans: Family<Spans, Counter>,
    process: ProcessFigures,
    /// Chooses the traces that become exemplars. All do if this is not set.
    has_exemplar: OnceLock<fn(CorrelationId) -> bool>,
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
        let mut all = Registering::default();
        let build = Build { version: env!("CARGO_PKG_VERSION") };
        all.registry.register("foretell_build", "The version of the program", Info::new(build));
        all.names.push("foretell_build_info".to_owned());
        Self {
            process: ProcessFigures::register(&mut all),
            http_requests: all.add("http_requests", "Answered requests", Family::default()),
            http_request_seconds: all.add(
                "http_request_seconds",
                "Time from a request's head to its answer",
                Family::new_with_constructor(traced_latencies as fn() -> TracedHistogram),
            ),
            http_in_flight: all.add("http_in_flight", "Requests that are being answered", Gauge::default()),
            http_connections: all.add(
                "http_connections",
                "Open connections of the public listener",
                Gauge::default(),
            ),
            http_connections_max: all.add(
                "http_connections_max",
                "Maximum of open connections of the public listener",
                Gauge::default(),
            ),
            trades: all.complete("trades", "Changes of trades' states by this process", Family::default()),
            trade_failures: all.complete(
                "trade_failures",
                "Trades that failed or were rejected, by the code of the reason",
                Family::default(),
            ),
            trade_seconds: all.complete(
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
            node_up: all.add("node_up", "1 if the node responds and serves the right chain", Family::default()),
            node_head_block: all.add("node_head_block", "The newest block of the node", Family::default()),
            node_block_age_seconds: all.add(
                "node_block_age_seconds",
                "Time since the node's newest block was made",
                Family::default(),
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
            store_retries: all.complete("store_retries", "Units of work that were run again", Family::default()),
            store_pool: all.add("store_pool", "Connections to the database by pool and state", Family::default()),
            store_pool_max: all.add(
                "store_pool_max",
                "Maximum of connections to the database by pool",
                Family::default(),
            ),
            replica_lag_blocks: all.add(
                "replica_lag_blocks",
                "Blocks that the database has and its replica lacks",
                Gauge::default(),
            ),
            webhook_head_age_seconds: all.add(
                "webhook_head_age_seconds",
                "How long due webhook queues have waited: 0.5, 0.95, 0.99 and the maximum (1)",
                Family::default(),
            ),
            webhook_attempts: all.complete("webhook_attempts", "Webhook attempts by outcome", Family::default()),
            webhook_breakers_open: all.add(
                "webhook_breakers_open",
                "Webhook receivers that get no attempts for now",
                Gauge::default(),
            ),
            sink_events: all.complete("sink_events", "Events for NATS by outcome", Family::default()),
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
            auth_failures: all.complete("auth_failures", "Requests with a rejected API key", Family::default()),
            switch_off: all.add("switch_off", "1 if the kill switch is off", Family::default()),
            aggregates_drift: all.add(
                "aggregates_drift",
                "Markets found to differ from the chain so far",
                Gauge::default(),
            ),
            markets_quarantined: all.add("markets_quarantined", "Markets in quarantine", Gauge::default()),
            degraded: all.add(
                "degraded",
                "1 if the process reports this problem of the service",
                Family::default(),
            ),
            check_up: all.add("check_up", "1 if the check of readiness passed the last time", Family::default()),
            clock_offset_seconds: all.add(
                "clock_offset_seconds",
                "How far this machine's clock is ahead of the other one",
                Family::default(),
            ),
            backup_timestamp_seconds: all.add(
                "backup_timestamp_seconds",
                "Time of the last `foretell admin backup`, 0 if there was none",
                FloatGauge::default(),
            ),
            trace_spans: all.complete("trace_spans", "Retained spans of traces by outcome", Family::default()),
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

/// Counts a request as running, or a connection as open, until it is dropped, also if the client
/// hangs up.
#[derive(Debug)]
pub struct InFlight(Gauge);

impl InFlight {
    fn begin(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

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

    /// Records how many connections each pool may have.
    pub fn pool_limits(&self, limits: &[(&'static str, usize)]) {
        for (pool, connections) in limits {
            self.store_pool_max.get_or_create(&PoolName { pool }).set(whole(*connections));
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
        InFlight::begin(&self.http_in_flight)
    }

    /// Sets how many connections the public listener may have.
    pub fn allow_connections(&self, connections: usize) {
        self.http_connections_max.set(whole(connections));
    }

    pub fn open_connection(&self) -> InFlight {
        InFlight::begin(&self.http_connections)
    }

    /// Creates the series of the routes that this process serves: their latencies, and their server
    /// errors. The other statuses of a route appear with its first response, because nothing lists
    /// them.
    pub fn routes(&self, routes: impl IntoIterator<Item = (RouteLabel, &'static str)>) {
        let server_errors = || ErrorCode::ALL.iter().copied().filter(|code| code.status() >= 500);
        for (route, method) in routes {
            drop(self.http_request_seconds.get_or_create(&Route { route }));
            for code in server_errors() {
                let labels = RequestLabels::new(route, method, code.status(), Some(code));
                drop(self.http_requests.get_or_create(&labels));
            }
        }
    }

    /// Creates the series of the requests to nodes.
    pub fn rpc_methods(&self, methods: impl IntoIterator<Item = &'static str>) {
        for method in methods {
            drop(self.rpc_seconds.get_or_create(&Method { method }));
        }
    }

    /// Creates the counters of a lane.
    pub fn lane(&self, lane: u16) {
        drop(self.signer_failures.get_or_create(&Lane { lane }));
    }

    /// Deletes the series of a lane that was removed. A lane without a process would otherwise seem to
    /// lack one forever.
    pub fn forget_lane(&self, lane: u16) {
        let lane = Lane { lane };
        self.signer_failures.remove(&lane);
        self.lane_leader.remove(&lane);
        self.executor_pending_nonces.remove(&lane);
        for gauges in
            [&self.trade_oldest_open_seconds, &self.executor_balance_wei, &self.executor_batches_left]
        {
            gauges.remove(&lane);
        }
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
                self.auth_failures.get_or_create(&RejectedKey::of(code)).inc();
            }
            _ => {}
        }
    }

    /// Records a request that has created a trade.
    pub fn trade_accepted(&self, took: Duration, trace_id: CorrelationId) {
        self.trade_took(StageName::Accept, took.as_secs_f64(), trace_id);
    }

    fn trade_took(&self, stage: StageName, seconds: f64, trace_id: CorrelationId) {
        let times = self.trade_seconds.get_or_create(&Stage::of(stage));
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

    pub fn trace_spans(&self, outcome: SpanOutcome, count: u64) {
        self.trace_spans.get_or_create(&Spans::of(outcome)).inc_by(count);
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

    /// Records that no node answers, and the age of the last block that was read.
    pub fn chain_silent(&self, lag_s: u64) {
        self.chain_lag_seconds.set(whole(lag_s));
    }

    /// Records the nodes as they are now. Nodes that are not in the list leave it.
    pub fn nodes(&self, nodes: &[NodeFigures]) {
        for gauges in [&self.node_up, &self.node_head_block, &self.node_block_age_seconds] {
            gauges.clear();
        }
        for NodeFigures { node, is_up, head, block_age_s } in nodes {
            let labels = NodeLabels { node: node.clone() };
            self.node_up.get_or_create(&labels).set(i64::from(*is_up));
            self.node_head_block.get_or_create(&labels).set(whole(*head));
            if let Some(age_s) = block_age_s {
                self.node_block_age_seconds.get_or_create(&labels).set(whole(*age_s));
            }
        }
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

    pub fn webhook_attempt(&self, outcome: AttemptOutcome) {
        self.webhook_attempts.get_or_create(&Attempts::of(outcome)).inc();
    }

    /// Counts events for NATS.
    pub fn sink_events(&self, outcome: SinkOutcome, count: u64) {
        self.sink_events.get_or_create(&SinkEvents::of(outcome)).inc_by(count);
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

    pub fn quarantined_markets(&self, count: u64) {
        self.markets_quarantined.set(whole(count));
    }

    /// Records for each possible problem whether it exists now.
    pub fn degraded(&self, reasons: impl IntoIterator<Item = (&'static str, bool)>) {
        for (reason, exists) in reasons {
            self.degraded.get_or_create(&Degraded { reason }).set(i64::from(exists));
        }
    }

    /// Records the result of a check.
    pub fn check(&self, check: CheckName, passed: bool) {
        self.check_up.get_or_create(&Check::of(check)).set(i64::from(passed));
    }

    /// Records how many blocks the replica lacks.
    pub fn replica_lag(&self, blocks: u64) {
        self.replica_lag_blocks.set(whole(blocks));
    }

    /// Records how far this machine's clock is ahead of another one.
    pub fn clock_offset(&self, source: ClockSource, ahead_ms: i64) {
        self.clock_offset_seconds.get_or_create(&Clocks::of(source)).set(signed_seconds(ahead_ms));
    }

    /// Records the time of the last backup.
    pub fn backed_up(&self, at_ms: i64) {
        self.backup_timestamp_seconds.set(seconds(at_ms));
    }

    /// Reads what the operating system knows about this process.
    pub fn read_process(&self) {
        self.process.read();
    }
}

/// Converts milliseconds to seconds. Negative ones become 0.
fn seconds(ms: i64) -> f64 {
    signed_seconds(ms.max(0))
}

#[expect(clippy::float_arithmetic, reason = "metrics are floats, and no amounts")]
fn signed_seconds(ms: i64) -> f64 {
    ms as f64 / 1_000.0
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
        self.store_retries.get_or_create(&Why::of(why)).inc();
    }

    fn trade(&self, moved: &TradeMove) {
        self.trades.get_or_create(&Event::of(moved.to)).inc();
        if let Some(code) = moved.error {
            self.trade_failures.get_or_create(&TradeFailure { code }).inc();
        }
        let age = seconds(moved.at.since_ms(moved.created_at));
        match moved.to {
            Status::Executing => self.trade_took(StageName::Sign, age, moved.correlation_id),
            Status::Completed | Status::Failed => {
                self.trade_took(StageName::Final, age, moved.correlation_id)
            }
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
    use domain::risk::RiskRefusal;
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

    fn moved(to: Status, ms: i64) -> TradeMove {
        TradeMove {
            trade_id: TradeId(uuid::Uuid::from_u128(0xcd)),
            to,
            created_at: NOW,
            since: NOW,
            at: NOW.plus_ms(ms),
            correlation_id: CorrelationId(0xcd),
            error: None,
            batch_id: None,
            was_held: false,
        }
    }

    #[test]
    fn a_trade_that_fails_counts_with_its_code() {
        let metrics = Metrics::default();
        metrics.trade(&TradeMove { error: Some("SLIPPAGE_EXCEEDED"), ..moved(Status::Failed, 1) });
        let text = text_of(&metrics);
        let line = r#"foretell_trade_failures_total{code="SLIPPAGE_EXCEEDED"} 1"#;
        assert!(text.contains(line), "{line} in {text}");
    }

    #[test]
    fn a_trade_is_timed_when_it_is_signed_and_when_it_ends() {
        let metrics = Metrics::default();
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

    /// Returns the series of a scrape, without their values. A histogram has many: its count is enough.
    fn series_of(text: &str) -> BTreeSet<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.contains("_bucket{"));
        lines.map(|line| line.rsplit_once("} ").unwrap_or((line, "")).0.to_owned()).collect()
    }

    /// Families whose labels nothing lists before the first event. The service creates those of its
    /// routes, lanes and nodes when it knows them. Units of work are named by the compiler.
    const OPEN: [&str; 5] = [
        "foretell_http_requests_total",
        "foretell_http_request_seconds",
        "foretell_signer_failures_total",
        "foretell_rpc_seconds",
        "foretell_store_seconds",
    ];

    #[test]
    fn every_counter_and_histogram_begins_at_zero_in_the_first_scrape() {
        let metrics = Metrics::default();
        let text = text_of(&metrics);
        let of_kind = |kind: &str| {
            let family = |line: &str| line.strip_prefix("# TYPE ")?.strip_suffix(kind).map(str::to_owned);
            text.lines().filter_map(family).collect::<Vec<_>>()
        };
        let counters = of_kind(" counter").into_iter().map(|name| (format!("{name}_total"), String::new()));
        let histograms = of_kind(" histogram").into_iter().map(|name| (name, "_count".to_owned()));
        for (name, ending) in counters.chain(histograms) {
            let samples: Vec<&str> = text
                .lines()
                .filter(|line| {
                    line.strip_prefix(&format!("{name}{ending}"))
                        .is_some_and(|rest| rest.starts_with([' ', '{']))
                })
                .collect();
            assert_eq!(samples.is_empty(), OPEN.contains(&name.as_str()), "{name}: {samples:?}");
            assert!(samples.iter().all(|line| line.ends_with(" 0") || line.ends_with(" 0.0")), "{samples:?}");
        }
    }

    #[test]
    fn no_event_adds_a_series_to_a_family_with_known_labels() {
        let metrics = Metrics::default();
        let before = series_of(&text_of(&metrics));
        AttemptOutcome::ALL.iter().for_each(|outcome| metrics.webhook_attempt(*outcome));
        SinkOutcome::ALL.iter().for_each(|outcome| metrics.sink_events(*outcome, 1));
        SpanOutcome::ALL.iter().for_each(|outcome| metrics.trace_spans(*outcome, 1));
        RetryReason::ALL.iter().for_each(|why| metrics.retried(*why));
        metrics.trade_accepted(Duration::from_millis(1), CorrelationId(1));
        let codes = || ErrorCode::ALL.iter().map(|code| code.as_str());
        for code in codes().chain(RiskRefusal::ALL.iter().map(|refusal| refusal.as_str())) {
            metrics.trade(&TradeMove { error: Some(code), ..moved(Status::Failed, 1) });
        }
        Status::ALL.iter().for_each(|status| metrics.trade(&moved(*status, 1)));
        let text = text_of(&metrics);
        let after = series_of(&text);
        let added: Vec<_> = after.difference(&before).collect();
        assert!(added.is_empty(), "{added:?}");
        let zero =
            text.lines().filter(|line| line.starts_with("foretell_trades_total{") && line.ends_with(" 0"));
        assert_eq!(zero.count(), 0, "each status was recorded");
    }

    #[test]
    fn the_series_of_routes_nodes_and_lanes_exist_once_they_are_known() {
        let metrics = Metrics::default();
        metrics.routes([(RouteLabel::of("/v1/trades"), "POST")]);
        metrics.rpc_methods(["eth_call"]);
        metrics.lane(3);
        let text = text_of(&metrics);
        for line in [
            r#"foretell_http_request_seconds_count{route="/v1/trades"} 0"#,
            r#"foretell_http_requests_total{route="/v1/trades",method="POST",status="503",code="DEPENDENCY_UNAVAILABLE"} 0"#,
            r#"foretell_rpc_seconds_count{method="eth_call"} 0"#,
            r#"foretell_signer_failures_total{lane="3"} 0"#,
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        metrics.lane_leader(3, false);
        metrics.oldest_open(3, 1);
        metrics.executor_balance(3, 1.0, 1.0);
        metrics.open_batches(3, 1);
        metrics.forget_lane(3);
        assert!(!text_of(&metrics).contains("lane=\"3\""), "a removed lane has no series");
    }

    #[test]
    fn a_problem_and_a_check_are_one_or_zero() {
        let metrics = Metrics::default();
        metrics.degraded([("drift", true), ("recovering", false)]);
        metrics.check(CheckName::Database, false);
        metrics.clock_offset(ClockSource::Database, -1_500);
        let text = text_of(&metrics);
        for line in [
            r#"foretell_degraded{reason="drift"} 1"#,
            r#"foretell_degraded{reason="recovering"} 0"#,
            r#"foretell_check_up{check="database"} 0"#,
            r#"foretell_clock_offset_seconds{clock="database"} -1.5"#,
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    /// Returns the names of metrics in a text, without the endings of the series of histograms.
    fn mentioned(text: &str, registered: &BTreeSet<String>) -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let is_name = |word: &&str| word.starts_with("foretell_") || registered.contains(*word);
        let names = words.filter(is_name);
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
