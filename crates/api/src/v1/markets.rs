//! Lists and reads markets.

use std::sync::Arc;

use app::process::ttl_cache::MarketsVersion;
use axum::extract::State;
use axum::response::Response;
use domain::ids::{MarketId, OrganizationId, PartnerId, ThreadId};
use domain::market::MarketStatus;
use domain::page::Page;
use domain::{ErrorCode, Timestamp};
use http_kit::{
    CachedRecord, Caller, DeferredQuery, MarketsRead, Meta, NoParameters, Paging, Parameters, PathId,
    Problem, RawQuery, Shared,
};
use store::StoreError;
use store::markets::{Market, MarketListFilter, Named, Outcome};

use super::market_record::MarketRecord;
use crate::openapi::answers::answers;

/// Up to this number, changed markets of a page are read individually. If there are more, the whole
/// page is read with one query.
const READ_ONE_BY_ONE: usize = 3;

answers! {
    MarketAnswer = single("market", MarketRecord);
    MarketList = list(MarketRecord);
}

/// The parameters `status` (comma-separated), `category`, `threadId`, `organizationId`,
/// `partnerId`, `q` (part of the question, case-insensitive), `limit` (default 20) and `cursor`.
#[derive(Debug)]
pub struct MarketsQuery {
    filter: MarketListFilter,
    paging: Paging,
}

impl Parameters for MarketsQuery {
    const NAMES: &'static [&'static str] =
        &["status", "category", "threadId", "organizationId", "partnerId", "q", "limit", "cursor"];

    fn read(given: &mut RawQuery<'_>) -> Option<Self> {
        const STATUS: &str = "must be a comma-separated list of OPEN, FROZEN, RESOLVED and CANCELLED (or active, paused, \
            resolved, cancelled, refunded, all)";
        let statuses: Vec<&[MarketStatus]> = given.list("status", STATUS, MarketStatus::from_filter_word);
        let filter = MarketListFilter {
            statuses: statuses.concat(),
            category: given.text("category"),
            thread_id: given.parsed("threadId", "must be a UUID"),
            organization_id: given.parsed("organizationId", "must be a UUID"),
            partner_id: given.parsed("partnerId", "must be a UUID"),
            text: given.text("q"),
        };
        Some(Self { filter, paging: given.paging()? })
    }
}

/// `GET /v1/markets`: the markets on chain, newest first. The filter `status` uses the stored
/// status, so a market that has just ended may be listed under OPEN although it reads FROZEN.
#[utoipa::path(
    get, path = "/v1/markets", operation_id = "listMarkets", tag = "Markets", summary = "List markets",
    description = "The markets on chain, newest first. For a moment after its end a market may be listed \
        under OPEN although its status is FROZEN.",
    params(
        ("status" = Option<Vec<String>>, Query, style = Form, explode = false, example = json!(["OPEN", "FROZEN"]),
            description = "Markets of these statuses: OPEN, FROZEN, RESOLVED, CANCELLED, or the public API's words \
                active, paused, resolved, cancelled, refunded, all."),
        ("category" = Option<String>, Query, description = "Markets of this category.", example = "weather"),
        ("threadId" = Option<ThreadId>, Query, description = "Markets of this thread."),
        ("organizationId" = Option<OrganizationId>, Query, description = "Markets of this organization."),
        ("partnerId" = Option<PartnerId>, Query, description = "Markets of this partner."),
        ("q" = Option<String>, Query, description = "Markets whose question contains this text, in upper or lower case.", example = "rain"),
    ),
    responses((status = 200, description = "A page of markets.", body = MarketList)),
)]
pub async fn list(
    State(app): State<Shared>,
    _caller: Caller<MarketsRead>,
    asked: DeferredQuery<MarketsQuery>,
    meta: Meta,
) -> Result<Response, Problem> {
    let read = async || {
        let MarketsQuery { filter, paging } = asked.parse(&app)?;
        let records = records(&app, filter, paging.page.clone()).await?;
        let (records, pagination) = paging.cut(&app.cursor, records, CachedRecord::position);
        // The response expires with the first of its records.
        let until = records.iter().map(CachedRecord::until).min();
        Ok((meta.list(records, pagination), until))
    };
    app.responses.answer(&app.ctx, &asked.uri, meta, read).await
}

/// Returns the records of a page, and one more if there are further markets. Cached records are
/// reused, because usually only a few markets changed since the last request.
async fn records(app: &Shared, filter: MarketListFilter, page: Page) -> Result<Vec<CachedRecord>, Problem> {
    let input = (filter, page);
    let named: Result<Vec<Named>, StoreError> = app
        .ctx
        .store
        .read(input.clone(), |tx, (filter, page)| Box::pin(store::markets::name(tx, filter, page)))
        .await;
    let named = named?;
    let now = app.ctx.now();
    let kept = named.iter().map(|named| app.responses.record(&app.ctx, *named, now));
    let kept: Vec<Option<CachedRecord>> = kept.collect();
    // One query for the whole page is cheaper than many single ones.
    if kept.iter().filter(|kept| kept.is_none()).count() > READ_ONE_BY_ONE {
        // Taken before the read: changes during the read must make the records stale.
        let as_of = app.ctx.markets_as_of();
        let listed: Result<Vec<_>, StoreError> = app
            .ctx
            .store
            .read(input, |tx, (filter, page)| Box::pin(store::markets::list(tx, filter, page)))
            .await;
        return listed?.into_iter().map(|(market, outcomes)| write(app, as_of, market, outcomes)).collect();
    }
    let mut records = Vec::with_capacity(kept.len());
    for (named, kept) in named.iter().zip(kept) {
        let Some(record) = kept else {
            let as_of = app.ctx.markets_as_of();
            // A chain reorganization may have removed the market in the meantime.
            if let Some((market, outcomes)) = app::markets::read(&app.ctx, named.id).await? {
                records.push(write(app, as_of, market, outcomes)?);
            }
            continue;
        };
        records.push(record);
    }
    Ok(records)
}

/// Builds a market's record and caches it.
fn write(
    app: &Shared,
    as_of: MarketsVersion,
    market: Market,
    outcomes: Vec<Outcome>,
) -> Result<CachedRecord, Problem> {
    let now = app.ctx.now();
    let named = Named { id: market.id, status: market.status, as_of_block: market.as_of_block };
    let (created_at, too_old) = (market.created_at, as_of.too_old_at());
    // Open markets change to FROZEN at their end time without any event.
    let until = next_end(&market, now).map_or(too_old, |end| end.min(too_old));
    let record = CachedRecord::new(named, created_at, until, &MarketRecord::new(market, outcomes, now))?;
    app.responses.put_record(as_of, record.clone());
    Ok(record)
}

/// `GET /v1/markets/{id}`: one market. `MARKET_NOT_FOUND` for an unknown or malformed id.
#[utoipa::path(
    get, path = "/v1/markets/{id}", operation_id = "getMarket", tag = "Markets", summary = "Read one market",
    description = "The market with its outcomes, their probabilities and, once it is settled, their payouts.",
    params(("id" = MarketId, Path, description = "The market's id.")),
    responses((status = 200, description = "The market.", body = MarketAnswer)),
    extensions(("x-error-codes" = json!(["MARKET_NOT_FOUND"]))),
)]
pub async fn find(
    State(app): State<Shared>,
    _caller: Caller<MarketsRead>,
    PathId(id): PathId,
    asked: DeferredQuery<NoParameters>,
    meta: Meta,
) -> Result<Response, Problem> {
    let read = async || {
        let NoParameters = asked.parse(&app)?;
        let (market, outcomes) = get_market(&app, &id).await?;
        let now = app.ctx.now();
        let until = next_end(&market, now);
        Ok((meta.single("market", MarketRecord::new(market, outcomes, now)), until))
    };
    app.responses.answer(&app.ctx, &asked.uri, meta, read).await
}

/// Returns the market with this id and its outcomes, if it exists on chain.
pub(super) async fn get_market(app: &Shared, id: &str) -> Result<(Market, Vec<Outcome>), Problem> {
    let not_found = || Problem::new(ErrorCode::MarketNotFound);
    let id: MarketId = id.parse().map_err(|_| not_found())?;
    let found = app::markets::find(&app.ctx, id).await?.ok_or_else(not_found)?;
    Ok(Arc::unwrap_or_clone(found))
}

/// Returns when an open market ends. Its status then changes to FROZEN without any event.
fn next_end(market: &Market, now: Timestamp) -> Option<Timestamp> {
    (market.status_at(now) == MarketStatus::Open).then_some(market.end_time)
}
