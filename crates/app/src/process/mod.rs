//! The state that this process keeps in memory: caches, locks, listeners and health.
//!
//! Nothing here survives a restart. These types do not know [`Ctx`](crate::Ctx); the use cases and
//! workers that read and write them do.

pub mod allowlists;
pub mod audit_buffer;
pub mod boards;
pub mod degradations;
pub mod desk;
pub mod feed_hub;
pub mod idempotency_lock;
pub mod key_cache;
pub mod lanes;
pub mod leaderboards;
pub mod live;
pub mod market_cache;
pub mod pulse;
pub mod request_buffer;
pub mod row_cache;
pub mod serving;
pub mod session_cache;
pub mod streams;
pub mod switches;
pub mod ttl_cache;
pub mod usage_recorder;
pub mod user_units;
pub mod worker_registry;

use std::sync::Arc;

use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::parsing::Parsers;
use crate::traces::Traces;
use allowlists::Allowlists;
use audit_buffer::AuditBuffer;
use degradations::Degradations;
use desk::Desk;
use feed_hub::Hub;
use idempotency_lock::IdempotencyLocks;
use key_cache::KeyCache;
use lanes::Lanes;
use leaderboards::Leaderboards;
use market_cache::MarketCache;
use pulse::Pulse;
use request_buffer::RequestBuffer;
use serving::Serving;
use session_cache::SessionCache;
use streams::Streams;
use switches::Switches;
use usage_recorder::Recorder;
use user_units::UserUnits;
use worker_registry::WorkerRegistry;

/// The in-memory state of this process, shared by all handlers and workers.
#[derive(Debug, Default)]
pub struct Process {
    /// Request counts of this process that are not in the database yet.
    pub usage: Recorder,
    /// The market cache.
    pub markets: MarketCache,
    /// Locks of idempotency keys.
    pub idempotency_locks: IdempotencyLocks,
    /// Requests whose trades are created in groups.
    pub desk: Desk,
    /// The running writes of each user.
    pub user_units: UserUnits,
    /// The kill switches.
    pub switches: Switches,
    /// The lanes.
    pub lanes: Lanes,
    /// The cache of key rows.
    pub key_cache: KeyCache,
    /// The cache of sessions of the web application.
    pub session_cache: SessionCache,
    /// The cache of keys' IP allowlists, used while addresses are locked out.
    pub allowlists: Allowlists,
    /// Failed authentications that are not in the database yet.
    pub key_audit: AuditBuffer,
    /// Rejected requests and writes that are not in the database yet.
    pub requests: RequestBuffer,
    /// The listeners to feeds of users.
    pub feed: Arc<Hub>,
    /// The open streams, and what they show of markets.
    pub streams: Streams,
    /// The leaderboard cache.
    pub leaderboards: Leaderboards,
    /// The rate limits. In memory by default; see [`Ctx::with_limits`](crate::Ctx::with_limits).
    pub limits: Limits,
    /// Known problems of the service.
    pub degradations: Degradations,
    /// The metrics of this process.
    pub metrics: Arc<Metrics>,
    /// The traces of this process.
    pub traces: Arc<Traces>,
    /// Whether this process can serve requests.
    pub serving: Serving,
    /// The parsers of documents from outside.
    pub parsers: Parsers,
    /// The health of this process's workers.
    pub workers: WorkerRegistry,
    /// The last sign of life of this process's dispatcher.
    pub dispatching: Pulse,
}
