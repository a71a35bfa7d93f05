//! The log of rejected requests and writes that the owner of a key can read.
//!
//! Requests are collected in memory, and a worker writes them every few seconds. A process that
//! crashes loses the requests since its last write. Writes that failed are repeated.

use async_trait::async_trait;
use domain::ids::{CorrelationId, EventId, TradeId, UserId};
use domain::page::{MAX_PAGE, Page};
use domain::time::DAY_MS;
use store::requests::{LoggedRequest, RequestFilter};

use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

pub use crate::process::request_buffer::MOST_PER_MINUTE;

/// The retention of requests.
pub const KEEP_MS: i64 = 7 * DAY_MS;
/// The maximum number of rows per transaction.
const AT_ONCE: usize = 500;

/// Writes the collected requests. Those that could not be written stay in memory.
pub async fn flush(ctx: &Ctx) -> Result<(), AppError> {
    let mut left = ctx.process.requests.take(ctx.now());
    while !left.is_empty() {
        let batch: Vec<LoggedRequest> = left.drain(..left.len().min(AT_ONCE)).collect();
        let added = ctx.store.write(batch.clone(), |tx, rows| Box::pin(store::requests::add(tx, rows))).await;
        if let Err(error) = added {
            ctx.process.requests.put_back([batch, left].concat());
            return Err(error.into());
        }
    }
    Ok(())
}

/// The worker that writes requests. Requests are still served while workers stop, so the shutdown
/// must flush once more.
#[derive(Debug, Default)]
pub struct RequestWriter;

#[async_trait]
impl Worker for RequestWriter {
    fn name(&self) -> &'static str {
        "request log"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        flush(ctx).await.map(|()| Progress::Idle)
    }
}

/// What an id of the user leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The request with the id, or the requests of the trade or key with it.
    pub requests: Vec<LoggedRequest>,
    pub trade: Option<TradeId>,
    /// The webhook event with the id.
    pub event: Option<EventId>,
}

/// Looks up the id of a request, a trade, a trace, a webhook event or a key of the user.
pub async fn search(ctx: &Ctx, user_id: UserId, text: &str) -> Result<Found, AppError> {
    let found = ctx.store.read((user_id, text.trim().to_owned()), |tx, (user_id, text)| {
        Box::pin(async move {
            // A trade's own id is also the default id of its trace.
            let of_trade = text.parse().ok().map(CorrelationId::of);
            let trade = match of_trade.or_else(|| text.parse().ok()) {
                Some(id) => store::trades::find_traced(tx, *user_id, id).await?.map(|(id, _)| id),
                None => None,
            };
            let event = match text.parse::<EventId>() {
                Ok(id) => store::webhooks::find(tx, *user_id, id).await?.map(|event| event.event_id),
                Err(_) => None,
            };
            let filter = match (trade, text.parse()) {
                (Some(trade), _) => RequestFilter::OfTrade(trade),
                (None, Ok(key)) => RequestFilter::OfKey(key),
                (None, Err(_)) => RequestFilter::WithId(text.clone()),
            };
            let page = Page { limit: MAX_PAGE, after: None };
            let requests = store::requests::list(tx, *user_id, &filter, &page).await?;
            Ok::<_, store::StoreError>(Found { requests, trade, event })
        })
    });
    Ok(found.await?)
}
