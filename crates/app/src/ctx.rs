//! The application context: the first argument of every use case.

use std::sync::Arc;

use chain::Chain;
use domain::ids::{MarketId, UserId};
use domain::{Clock, Timestamp};
use store::{BoxFuture, Store, StoreError, Tx};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::config::{Config, default_confirmations, default_max_fee_per_gas};
use crate::entropy::{Entropy, Ids};
use crate::limits::{Budgets, Limits};
use crate::metrics::Metrics;
use crate::observers::Observers;
use crate::process::Process;
use crate::process::lanes::Lanes;
use crate::process::ttl_cache::MarketsVersion;
use crate::traces::{SpanSink, is_sampled};

/// The service's parts and settings, shared by all handlers and workers.
#[derive(Clone)]
pub struct Ctx {
    pub store: Store,
    pub chain: Chain,
    pub clock: Arc<dyn Clock>,
    /// The source of ids and random bytes.
    pub ids: Arc<Ids>,
    pub config: Arc<Config>,
    pub wake: Arc<WorkerSignals>,
    /// The in-memory state of this process.
    pub process: Arc<Process>,
}

/// Signals that wake workers early, so that they can poll slowly.
#[derive(Debug, Default)]
pub struct WorkerSignals {
    pub executor: Notify,
    /// A transaction was sent, so there may be a new block.
    pub sync: Notify,
    /// The clock was moved, so any worker may have due work. Only a test clock moves.
    pub clock: Notify,
}

impl Ctx {
    pub fn new(
        store: Store,
        chain: Chain,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        config: Config,
    ) -> Self {
        let lanes = Lanes::of_executors(&config.executors);
        let metrics: Arc<Metrics> = Arc::default();
        let limits = Limits::memory().with_budgets(config.budgets.clone(), Arc::clone(&metrics));
        let process = Arc::new(Process { limits, metrics, lanes, ..Process::default() });
        let observers = Arc::new(Observers {
            metrics: Arc::clone(&process.metrics),
            traces: Arc::clone(&process.traces),
        });
        store.observe(Arc::<Observers>::clone(&observers));
        if let Some(nodes) = chain.nodes() {
            process.metrics.rpc_methods(chain::RPC_METHODS);
            nodes.observe(observers);
        }
        Self {
            store,
            chain,
            clock,
            ids: Arc::new(Ids::new(entropy)),
            config: Arc::new(config),
            wake: Arc::default(),
            process,
        }
    }

    /// Replaces the rate limits in memory. Call it before the context is used, because all other
    /// state of the process is reset.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        let metrics = Arc::clone(&self.process.metrics);
        let traces = Arc::clone(&self.process.traces);
        let lanes = Lanes::of_executors(&self.config.executors);
        let limits = limits.with_budgets(self.config.budgets.clone(), Arc::clone(&metrics));
        let process = Process { limits, metrics, traces, lanes, ..Process::default() };
        Self { process: Arc::new(process), ..self }
    }

    /// Returns the budgets of strangers.
    pub fn budgets(&self) -> &Budgets {
        self.process.limits.budgets()
    }

    /// Records traces from now on, and passes those that are retained to `sink`. Exemplars of metrics
    /// then only name traces that can be looked up.
    pub fn trace_to(&self, sink: Arc<dyn SpanSink>) {
        self.process.metrics.choose_exemplars(is_sampled);
        self.process.traces.start(sink, self.random());
    }

    /// Returns a context for public data that may be some seconds old. A replica of the database may
    /// answer its reads.
    #[must_use]
    pub fn for_public(&self) -> Self {
        Self { store: self.store.for_public(), ..self.clone() }
    }

    /// Returns the state that a market read from now on will reflect. Take it before the read.
    pub fn markets_as_of(&self) -> MarketsVersion {
        MarketsVersion { version: self.store.markets_version(), at: self.now() }
    }

    /// Returns the state that a cached market must reflect to be used at `now`.
    pub fn market_as_of(&self, id: MarketId, now: Timestamp) -> MarketsVersion {
        MarketsVersion { version: self.store.market_version(id), at: now }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the number of blocks, including the trade's own, that make a trade final.
    pub fn confirmations(&self) -> u64 {
        self.config.confirmations.unwrap_or_else(|| default_confirmations(self.chain.chain_id()))
    }

    /// Returns the maximum fee per gas in wei.
    pub fn max_fee_per_gas(&self) -> u128 {
        self.config.max_fee_per_gas.unwrap_or_else(|| default_max_fee_per_gas(self.chain.chain_id()))
    }

    /// Returns a new version 7 UUID, which sorts after those made before by this process.
    pub fn uuid(&self) -> Uuid {
        self.ids.next(self.now())
    }

    /// Returns random bytes.
    pub fn random<const N: usize>(&self) -> [u8; N] {
        self.ids.random()
    }

    /// Runs a write that locks rows of `user_id`; see [`Store::try_write`].
    ///
    /// # Errors
    /// Those of the store, and `Unavailable` if the user's earlier writes take too long.
    pub async fn write_of_user<I, T, E>(
        &self,
        user_id: UserId,
        input: I,
        unit: impl for<'a> Fn(&'a mut Tx, &'a I) -> BoxFuture<'a, Result<T, E>> + Send + Sync + 'static,
    ) -> Result<T, E>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let Some(limit) = self.store.units_per_user() else { return self.store.try_write(input, unit).await };
        let Some(permit) = self.process.user_units.begin(user_id, limit).await else {
            let why = "the user's earlier writes are still waiting";
            return Err(E::from(StoreError::Unavailable(why.to_owned())));
        };
        // The permit is part of the input, so that it lasts as long as the write, even if the
        // caller is dropped.
        let name = store::module_of(&unit);
        self.store.try_write_as(name, (permit, input), move |tx, (_, input)| unit(tx, input)).await
    }
}
