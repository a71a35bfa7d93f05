//! The HTTP infrastructure of routes that need no key: the public read API, and the pages and images
//! for people.
//!
//! A request passes `finish_response` (request id, error bodies, common headers, CORS), is routed, and
//! passes its route's `guard` (rate limiter, kill switch, deadline) and its handler's extractors.
//! An error at any point is a [`Refusal`], which is rendered in one place on the way out.

mod code;
mod cors;
mod finish_response;
mod guard;
mod query;
mod rate_limit;
mod refusal;
mod route;

pub use code::Code;
pub use finish_response::{ErrorPage, finish_responses};
pub use query::{NoParameters, Parameters, Query, QueryReader, Window, number};
pub use rate_limit::ADDRESS_PER_MINUTE;
pub use refusal::{Refusal, RefusalBody};
pub use route::{Entry, Limiter, PageSize, PublicRoute, guarded};
