//! Bodies about markets that were written a moment ago: what all keys read alike is read and serialised once for all of them.

use std::sync::Arc;

use app::fresh::Fresh;
use axum::http::Uri;
use axum::response::Response;
use domain::Timestamp;

use super::envelope::{self, Meta, Stable, Written};
use super::{Problem, Shared};

/// The most bodies, each of which is at most a page of 100 markets.
const MOST: usize = 256;

/// What was answered, by path and query, without `_meta`.
#[derive(Debug)]
pub struct KeptBodies(Fresh<Arc<str>, Stable>);

impl Default for KeptBodies {
    fn default() -> Self {
        Self(Fresh::at_most(MOST))
    }
}

impl KeptBodies {
    /// The answer to `uri` that is still fresh, or else what `write` answers, with the instant at which it reads otherwise
    /// by the clock alone. The parameters must have been judged, and the answer must be the same for every key.
    pub async fn answer<E: Written>(
        app: &Shared,
        uri: &Uri,
        meta: Meta,
        write: impl AsyncFnOnce() -> Result<(E, Option<Timestamp>), Problem>,
    ) -> Result<Response, Problem> {
        let name = uri.path_and_query().map_or("", |name| name.as_str());
        let write = async || {
            let (envelope, until) = write().await?;
            Ok::<_, Problem>((envelope.stable()?, until))
        };
        Ok(envelope::with_meta(Self::stable(app, name, write).await?, &meta))
    }

    /// The stable part that is kept under `name` and still fresh, or else the one that `write` makes.
    pub(crate) async fn stable<X>(
        app: &Shared,
        name: &str,
        write: impl AsyncFnOnce() -> Result<(Stable, Option<Timestamp>), X>,
    ) -> Result<Stable, X> {
        let Self(kept) = &app.kept;
        let as_of = app.ctx.markets_as_of();
        if let Some(stable) = kept.get(name, as_of) {
            return Ok(stable);
        }
        let (stable, until) = write().await?;
        kept.put(name.into(), as_of, until, stable.clone());
        Ok(stable)
    }
}
