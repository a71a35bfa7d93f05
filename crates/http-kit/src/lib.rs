//! The HTTP infrastructure that all routes share: authentication, request parsing and response
//! formats.
//!
//! A request is routed, and passes its route's [`HttpLayer`] (request id, error bodies, common
//! headers; inside it the guard: deadline, authentication, limiter, scope) and its handler's
//! extractors. An error at any point is a [`Problem`], which is rendered in one place on the way
//! out. The route's [`Surface`] decides what differs between the APIs.

mod accept;
mod audit;
mod body;
mod caller;
mod client_ip;
mod compression;
mod connections;
mod cors;
mod envelope;
mod etag;
mod finish_response;
mod guard;
mod head_reader;
mod idempotency_key;
mod kill_switch;
mod last_connections;
mod layer;
mod no_body;
mod outcome_index;
mod page;
mod path;
mod problem;
mod public_code;
mod query;
mod rate;
mod rate_limit_status;
mod render;
mod request_id;
mod response_cache;
mod route;
mod serve;
mod signature;
mod sse;
mod state;
mod surface;
mod table;
mod throttle;
mod traceparent;
mod trusted_proxies;
mod unread;
mod usage;
mod version;
mod visitor;
mod web_code;

pub use accept::prefers_markdown;
pub use body::{Body, JsonBody, MAX_BODY_BYTES, check_texts, is_json, read_body, read_object};
pub use caller::{
    AnyKey, AuthManage, Caller, MarketsQuote, MarketsRead, PortfolioRead, ScopeMarker, TradesRead,
    TradesWrite, WebhooksManage,
};
pub use client_ip::client_ip;
pub use connections::{ConnectionLimits, ConnectionMeter};
pub use envelope::{CachedBody, with_meta};
pub use envelope::{List, Meta, Pagination, Plain, Single, json};
pub use etag::StablePart;
pub use finish_response::{ErrorPage, FailedRequest};
pub use idempotency_key::IdempotencyKey;
pub use kill_switch::check as check_switches;
pub use layer::HttpLayer;
pub use no_body::NoBody;
pub use outcome_index::OutcomeIndex;
pub use page::Paging;
pub use path::PathId;
pub use problem::Problem;
pub use public_code::PublicCode;
pub use query::{DeferredQuery, NamedQuery, NoParameters, Parameters, Query, RawQuery, number};
pub use rate::{ClientAddress, Drawn, by_search, draw_further};
pub use render::PublicErrorBody;
pub use request_id::RequestId;
pub use response_cache::{CachedRecord, ResponseCache};
pub use route::{Deprecation, Limiter, PageSize, Route};
pub use serve::{ServeLimits, Server};
pub use sse::{EventBytes, heartbeats, last_event_id, wants_events};
pub use state::{AppState, McpSettings, Shared};
pub use surface::Surface;
pub use table::{Entry, refusing, router, unknown_path};
pub use traceparent::Traceparent;
pub use trusted_proxies::TrustedProxies;
pub use unread::refuse;
pub use usage::{NotCounted, OnlyRead, TradeWritten};
pub use version::API_VERSION;
pub use visitor::{Personal, SESSION_COOKIE, Visitor, cookie};
pub use web_code::WebCode;
