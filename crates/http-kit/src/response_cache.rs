//! Short-lived caches of market responses and of the records in them. Data that is the same for all
//! keys is read and serialized once.

use std::sync::Arc;

use app::Ctx;
use app::process::ttl_cache::{MarketsVersion, TtlCache, Weigh};
use axum::http::Uri;
use axum::response::Response;
use domain::Timestamp;
use domain::ids::MarketId;
use domain::page::PagePosition;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use store::markets::Named;

use super::Problem;
use super::compression::CompressedBodies;
use super::envelope::{self, CachedBody, Meta, Written};

/// Cache size for responses to keys. One response is at most a page of 100 markets.
const ANSWERS_BYTES: usize = 16 << 20;
/// Cache size for anonymous responses.
const FOR_ALL_BYTES: usize = 32 << 20;
/// Cache size for records.
const RECORDS_BYTES: usize = 16 << 20;

/// The response caches.
#[derive(Debug)]
pub struct ResponseCache {
    /// Whole responses without `_meta`, by path and query.
    answers: TtlCache<Arc<str>, CachedBody>,
    /// Anonymous responses. They have their own cache, so that anonymous traffic cannot evict the
    /// responses of keys.
    for_all: TtlCache<Arc<str>, CachedBody>,
    /// Market records as they appear in lists.
    records: TtlCache<MarketId, CachedRecord>,
    /// Compressed forms of the stable parts, shared by all responses.
    pub(super) compressed: CompressedBodies,
}

impl Default for ResponseCache {
    fn default() -> Self {
        Self {
            answers: TtlCache::within_bytes(ANSWERS_BYTES),
            for_all: TtlCache::within_bytes(FOR_ALL_BYTES),
            records: TtlCache::within_bytes(RECORDS_BYTES),
            compressed: CompressedBodies::default(),
        }
    }
}

/// A market's record as serialized JSON.
#[derive(Debug, Clone)]
pub struct CachedRecord(Arc<Record>);

#[derive(Debug)]
struct Record {
    named: Named,
    created_at: Timestamp,
    until: Timestamp,
    json: Box<RawValue>,
}

impl CachedRecord {
    /// Serializes the record of a market. The record expires at `until`, even if the market does
    /// not change before.
    pub fn new(
        named: Named,
        created_at: Timestamp,
        until: Timestamp,
        record: &impl Serialize,
    ) -> Result<Self, Problem> {
        let json = serde_json::value::to_raw_value(record).map_err(envelope::unwritable)?;
        Ok(Self(Arc::new(Record { named, created_at, until, json })))
    }

    /// Returns when the record expires even if nothing changes. A response that contains the record
    /// expires at the same time.
    pub fn until(&self) -> Timestamp {
        self.0.until
    }

    /// Returns the record's position for pagination cursors.
    pub fn position(&self) -> PagePosition {
        PagePosition { created_at: self.0.created_at, id: self.0.named.id.to_string() }
    }
}

impl Weigh for CachedRecord {
    fn weight_bytes(&self) -> usize {
        size_of::<Record>() + self.0.json.get().len()
    }
}

impl Weigh for CachedBody {
    fn weight_bytes(&self) -> usize {
        self.len()
    }
}

impl Serialize for CachedRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.json.serialize(serializer)
    }
}

impl ResponseCache {
    /// Returns the cached response to `uri` if it is still fresh, otherwise the one that `write`
    /// creates. `write` also returns when its response expires even if nothing changes. `write`
    /// validates the parameters, so a cached response implies valid parameters. The response must
    /// be the same for every key.
    pub async fn answer<E: Written>(
        &self,
        ctx: &Ctx,
        uri: &Uri,
        meta: Meta,
        write: impl AsyncFnOnce() -> Result<(E, Option<Timestamp>), Problem>,
    ) -> Result<Response, Problem> {
        let name = uri.path_and_query().map_or("", |name| name.as_str());
        let write = async || {
            // Errors return early and are not cached.
            let (envelope, until) = write().await?;
            Ok::<_, Problem>((envelope.stable()?, until))
        };
        let stable = stable(&self.answers, name, ctx.markets_as_of(), write).await?;
        Ok(envelope::with_meta(stable, &meta))
    }

    /// Returns a cached anonymous stable part, which may be up to 250 ms old even if the data has
    /// changed since. This way, the load of many anonymous readers does not grow with trading.
    pub async fn for_a_moment<X>(
        &self,
        ctx: &Ctx,
        name: &str,
        write: impl AsyncFnOnce() -> Result<(CachedBody, Option<Timestamp>), X>,
    ) -> Result<CachedBody, X> {
        stable(&self.for_all, name, MarketsVersion::age_alone(ctx.now()), write).await
    }

    /// Returns the cached record of a market of a list, if it is still fresh. The list's revision
    /// must match, so changes to the market's state by other processes are visible at once.
    pub fn record(&self, ctx: &Ctx, named: Named, now: Timestamp) -> Option<CachedRecord> {
        let kept = self.records.get(&named.id, ctx.market_as_of(named.id, now));
        kept.filter(|record| record.0.named == named)
    }

    /// Caches a record. `as_of` must have been taken before its data was read.
    pub fn put_record(&self, as_of: MarketsVersion, record: CachedRecord) {
        let (named, until) = (record.0.named, record.0.until);
        self.records.put(named.id, as_of, Some(until), record);
    }
}

/// Returns the cached stable part of `name` if it is as fresh as `as_of`, otherwise the one that
/// `write` creates.
async fn stable<X>(
    kept: &TtlCache<Arc<str>, CachedBody>,
    name: &str,
    as_of: MarketsVersion,
    write: impl AsyncFnOnce() -> Result<(CachedBody, Option<Timestamp>), X>,
) -> Result<CachedBody, X> {
    if let Some(stable) = kept.get(name, as_of) {
        return Ok(stable);
    }
    let (stable, until) = write().await?;
    kept.put(name.into(), as_of, until, stable.clone());
    Ok(stable)
}
