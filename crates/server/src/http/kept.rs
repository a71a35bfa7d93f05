//! Bodies about markets that were written a moment ago, and the records that they are made of: what all keys read alike is
//! read and serialised once for all of them.

use std::sync::Arc;

use app::fresh::{AsOf, Fresh, Weigh};
use axum::http::Uri;
use axum::response::Response;
use domain::Timestamp;
use domain::ids::MarketId;
use domain::page::Position;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use store::markets::Named;

use super::compression::CompressedBodies;
use super::envelope::{self, Meta, Stable, Written};
use super::{Problem, Shared};

/// Bytes of bodies for keys, each of which is at most a page of 100 markets.
const ANSWERS_BYTES: usize = 16 << 20;
/// The same for readers without a name.
const FOR_ALL_BYTES: usize = 32 << 20;
/// Bytes of records.
const RECORDS_BYTES: usize = 16 << 20;

/// What was answered.
#[derive(Debug)]
pub struct KeptBodies {
    /// Whole answers by path and query, without `_meta`.
    answers: Fresh<Arc<str>, Stable>,
    /// Those to readers without a name, who push out none that keys read.
    for_all: Fresh<Arc<str>, Stable>,
    /// Markets as lists show them.
    records: Fresh<MarketId, KeptRecord>,
    /// The compressed forms of whatever was answered to clients that accept gzip.
    pub(super) compressed: CompressedBodies,
}

impl Default for KeptBodies {
    fn default() -> Self {
        Self {
            answers: Fresh::within_bytes(ANSWERS_BYTES),
            for_all: Fresh::within_bytes(FOR_ALL_BYTES),
            records: Fresh::within_bytes(RECORDS_BYTES),
            compressed: CompressedBodies::default(),
        }
    }
}

/// A market's record in its JSON.
#[derive(Debug, Clone)]
pub struct KeptRecord(Arc<Record>);

#[derive(Debug)]
struct Record {
    named: Named,
    created_at: Timestamp,
    until: Timestamp,
    json: Box<RawValue>,
}

impl KeptRecord {
    /// The record of a market of that name, which is over at `until` whatever happens.
    pub fn new(
        named: Named,
        created_at: Timestamp,
        until: Timestamp,
        record: &impl Serialize,
    ) -> Result<Self, Problem> {
        let json = serde_json::value::to_raw_value(record).map_err(envelope::unwritable)?;
        Ok(Self(Arc::new(Record { named, created_at, until, json })))
    }

    /// When it is over by the clock alone, and so is every answer that it is part of.
    pub fn until(&self) -> Timestamp {
        self.0.until
    }

    /// Where it stands in a list.
    pub fn position(&self) -> Position {
        Position { created_at: self.0.created_at, id: self.0.named.id.to_string() }
    }
}

impl Weigh for KeptRecord {
    fn weight_bytes(&self) -> usize {
        size_of::<Record>() + self.0.json.get().len()
    }
}

impl Weigh for Stable {
    fn weight_bytes(&self) -> usize {
        self.len()
    }
}

impl Serialize for KeptRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.json.serialize(serializer)
    }
}

impl KeptBodies {
    /// The answer to `uri` that is still fresh, or else what `write` answers, with the instant at which it reads otherwise
    /// by the clock alone. `write` judges the parameters, so that what is kept was judged
    /// once; the answer must be the same for every key.
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
        let stable = stable(&app.kept.answers, name, app.ctx.markets_as_of(), write).await?;
        Ok(envelope::with_meta(stable, &meta))
    }

    /// The same for readers without a name, who may be told to ask again in seconds: whatever has changed since, the stable part
    /// that is kept stands for a quarter of a second, so that a crowd costs no more while there is trading.
    pub(crate) async fn for_a_moment<X>(
        app: &Shared,
        name: &str,
        write: impl AsyncFnOnce() -> Result<(Stable, Option<Timestamp>), X>,
    ) -> Result<Stable, X> {
        stable(&app.kept.for_all, name, AsOf::age_alone(app.ctx.now()), write).await
    }

    /// The record of the market that a list names, where it is still fresh: also what other processes have done to the
    /// market's state shows at once.
    pub fn record(app: &Shared, named: Named, now: Timestamp) -> Option<KeptRecord> {
        let kept = app.kept.records.get(&named.id, app.ctx.market_as_of(named.id, now));
        kept.filter(|record| record.0.named == named)
    }

    /// Keeps a record of what was read after `as_of` was noted.
    pub fn put_record(app: &Shared, as_of: AsOf, record: KeptRecord) {
        let (named, until) = (record.0.named, record.0.until);
        app.kept.records.put(named.id, as_of, Some(until), record);
    }
}

/// The stable part that is kept under `name` and as fresh as `as_of`, or else the one that `write` makes.
async fn stable<X>(
    kept: &Fresh<Arc<str>, Stable>,
    name: &str,
    as_of: AsOf,
    write: impl AsyncFnOnce() -> Result<(Stable, Option<Timestamp>), X>,
) -> Result<Stable, X> {
    if let Some(stable) = kept.get(name, as_of) {
        return Ok(stable);
    }
    let (stable, until) = write().await?;
    kept.put(name.into(), as_of, until, stable.clone());
    Ok(stable)
}
