//! The caller's feed: what happened to the user's trades, claims and positions, numbered without gaps.

mod query;
mod record;
mod stream;

use app::feed::{self, Part};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use domain::event::FeedPosition;
use domain::page::Position;

pub use query::{Beginning, EventsQuery};
pub use record::EventRecord;

use crate::http::{
    Caller, ClientAddress, Meta, Pagination, Problem, Query, Shared, TradesRead, wants_events,
};
use crate::openapi::answers::answers;

answers! {
    /// A page of events.
    EventList = list(EventRecord);
}

/// `GET /v1/events`: what happened to the user, oldest first, as a page or as it happens.
#[utoipa::path(
    get, path = "/v1/events", operation_id = "listEvents", tag = "Events", summary = "Read what happened",
    description = "The user's events, oldest first, whichever of the user's keys they come from: the bodies that are \
        posted to webhooks, each with its number. The numbers of a user's events have no gap; where a kind is left out its \
        numbers are passed over. If the service's data is restored, the feed begins a new generation, and a position in \
        an earlier one is 410 FEED_RESTARTED: read the feed again from its start.\n\nUnlike other lists this one grows at the end that is read: pagination.cursor is never \
        null. Where hasMore is false it stands behind the last event there is, and the same request with it reads what \
        comes later.\n\nWith `Accept: text/event-stream` the same events are sent as they happen: each with its generation and \
        number as the id, such as `1-42`, its type as the name, and the item of the list as its data. An event `heartbeat` says at least every 15 \
        seconds up to which number everything was sent, an event `closing` why the stream ends. A client that was cut off \
        goes on with `Last-Event-ID`, and misses nothing. A user may have five streams open at once on a process.",
    params(
        ("types" = Option<Vec<domain::event::EventKind>>, Query, style = Form, explode = false,
            description = "Events of these types, or `*` for all. Left out: trade.confirmation-required, trade.completed, \
            trade.failed and trade.rejected.", example = json!(["trade.completed", "trade.status-changed"])),
        ("from" = Option<Beginning>, Query, description = "Where to begin without a cursor: at the oldest event that is \
            held (the default), or behind the latest."),
        ("Last-Event-ID" = Option<String>, Header, description = "Of a stream: the id of the last event that was \
            received, such as `1-42`. It takes precedence over the cursor."),
    ),
    responses((status = 200, description = "A page of events, or the stream of them.", content(
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
    let pagination = Pagination { cursor: Some(cursor), has_more, limit: query.limit };
    Ok(meta.list(items?, pagination).into_response())
}

/// A position as the cursors of lists carry it.
fn position_at(position: FeedPosition) -> Position {
    Position { created_at: domain::Timestamp::from_ms(0), id: position.to_string() }
}
