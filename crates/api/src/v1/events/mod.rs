//! The user's event feed: events about trades, claims and positions, numbered without gaps.

mod query;
mod record;
mod stream;

use app::feed::{self, Part};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use domain::event::FeedPosition;
use domain::page::PagePosition;

pub use query::{Beginning, EventsQuery};
pub use record::EventRecord;

use http_kit::{Caller, ClientAddress, Meta, Pagination, Problem, Query, Shared, TradesRead, wants_events};

use crate::openapi::answers::answers;

answers! {
    EventList = list(EventRecord);
}

/// `GET /v1/events`: what happened to the user, oldest first, as a page or as it happens.
#[utoipa::path(
    get, path = "/v1/events", operation_id = "listEvents", tag = "Events", summary = "Read the event feed",
    description = "The events of all of the user's keys, oldest first: the bodies that are posted to \
        webhooks, each with its sequence number. The numbers of a user have no gaps; the numbers of types \
        that are filtered out are skipped. If the service's data is restored, the feed starts a new \
        generation, and a cursor of an earlier one is 410 FEED_RESTARTED: read the feed again from its \
        start.\n\nUnlike other lists, this one is read towards its growing end, so pagination.cursor is \
        never null. If hasMore is false, the cursor points after the last event, and the same request with \
        it returns later events.\n\nWith `Accept: text/event-stream` the same events are sent as they \
        happen. The id is the generation and the sequence number, such as `1-42`, the name is the type, \
        and the data is the item of the list. A `heartbeat` event, sent at least every 15 seconds, names \
        the number up to which everything was sent. A `closing` event names the reason for which the \
        stream ends. A client that reconnects with `Last-Event-ID` misses nothing. A user may have five \
        streams open on one process.",
    params(
        ("types" = Option<Vec<domain::event::EventKind>>, Query, style = Form, explode = false,
            description = "Events of these types, or `*` for all. Default: trade.confirmation-required, \
            trade.completed, trade.failed and trade.rejected.", example = json!(["trade.completed", "trade.status-changed"])),
        ("from" = Option<Beginning>, Query, description = "The start of a read without a cursor: the oldest \
            stored event (the default), or after the latest one."),
        ("Last-Event-ID" = Option<String>, Header, description = "For streams: the id of the last event \
            that was received, such as `1-42`. It takes precedence over the cursor."),
    ),
    responses((status = 200, description = "A page of events, or a stream of events.", content(
        (EventList = "application/json"), (String = "text/event-stream"),
    ))),
    extensions(("x-error-codes" = json!(["CURSOR_EXPIRED", "FEED_RESTARTED"]))),
)]
pub async fn list(
    State(app): State<Shared>,
    caller: Caller<TradesRead>,
    Query(query): Query<EventsQuery>,
    ClientAddress(ip): ClientAddress,
    meta: Meta,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if wants_events(&headers) {
        return stream::open(app, caller.into_inner(), ip, query, &headers).await;
    }
    let Part { events, position, has_more } =
        feed::read(&app.ctx, caller.user_id(), query.place, &query.kinds, query.limit).await?;
    let cursor = app.cursor.encode("/v1/events", &query.filters, &position_at(position));
    let items: Result<Vec<_>, Problem> = events.iter().map(record::item).collect();
    // There is always a cursor, because the feed continues to grow.
    let pagination = Pagination { cursor: Some(cursor), has_more, limit: query.limit };
    Ok(meta.list(items?, pagination).into_response())
}

/// Wraps a feed position for pagination cursors. Feed positions have no time, so it is zero.
fn position_at(position: FeedPosition) -> PagePosition {
    PagePosition { created_at: domain::Timestamp::from_ms(0), id: position.to_string() }
}
