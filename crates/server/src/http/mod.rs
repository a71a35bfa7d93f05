//! What every route of the trading API shares: who calls, what was sent, and the form of every answer.
//!
//! A request passes [`surround`] (request id, problem bodies, headers of every answer), is routed, passes its route's
//! [`guard`] (deadline, authentication, scope) and then the extractors of its handler. A refusal anywhere is a
//! [`Problem`], which becomes a body in one place on the way out.

mod around;
mod audit;
mod body;
mod caller;
mod client_ip;
mod compression;
mod connections;
mod envelope;
mod etag;
mod guard;
mod head_reader;
mod idempotency_key;
mod kept;
mod kill_switch;
mod no_body;
mod outcome_index;
mod page;
mod path;
mod problem;
mod query;
mod rate;
mod request_id;
mod route;
mod serve;
mod signature;
mod sse;
mod state;
mod surround;
mod throttle;
mod traceparent;
mod unread;
mod usage;
mod version;

pub use around::Around;
pub use body::{Body, JsonBody, MAX_BODY_BYTES, read_body};
pub use caller::{
    AnyKey, AuthManage, Caller, MarketsQuote, MarketsRead, PortfolioRead, ScopeMarker, TradesRead,
    TradesWrite, WebhooksManage,
};
pub use client_ip::client_ip;
pub(crate) use compression::{AcceptsGzip, Compressible};
pub use envelope::{List, Meta, Pagination, Plain, Single, json};
pub(crate) use envelope::{Stable, with_meta};
pub(crate) use etag::Condition;
pub use etag::StablePart;
pub use guard::guard;
pub(crate) use guard::{DEADLINE, panicked};
pub use idempotency_key::IdempotencyKey;
pub use kept::{KeptBodies, KeptRecord};
pub use kill_switch::check as check_switches;
pub use no_body::NoBody;
pub use outcome_index::OutcomeIndex;
pub use page::Paging;
pub use path::PathId;
pub use problem::Problem;
pub(crate) use problem::with_causes;
pub(crate) use query::read_known;
pub use query::{Asked, Given, NoParameters, Parameters, Query};
pub use rate::ClientAddress;
pub(crate) use rate::{address_of, mark_address};
pub use request_id::RequestId;
pub use route::{Deprecation, Limiter, RouteInfo};
pub use serve::{ServeLimits, Server};
pub use sse::{EventBytes, last_event_id, wants_events};
pub use state::{AppState, Shared};
pub use surround::surround;
pub use traceparent::Traceparent;
pub use unread::refuse;
pub use usage::NotCounted;
pub use version::API_VERSION;
