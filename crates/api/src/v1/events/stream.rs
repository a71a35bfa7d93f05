//! The event feed as server-sent events.
//!
//! A stream is a position and a subscription. When the client has read the previous chunk, the
//! stream checks the key again, and then reads the next page or waits. A slow client therefore uses
//! memory for at most one page, and a client whose key is revoked receives nothing more.

use std::net::IpAddr;

use app::AppError;
use app::caller::Caller;
use app::feed::{self, FeedStart, Subscription, Topic, WakeReason};
use app::keys;
use app::limits::budget::Budget;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::Response;
use domain::Timestamp;
use domain::event::{EventKind, FeedPosition};
use domain::key::Tier;
use http_kit::{EventBytes, Problem, Shared, check_switches, heartbeats, last_event_id};
use serde::Serialize;
use tokio::time::Interval;

use super::query::EventsQuery;
use super::record;
use crate::v1::router::routes;

/// Number of events that are read at once.
const PAGE: u32 = 100;

/// Reports that everything up to this number was sent.
#[derive(Serialize)]
struct Heartbeat {
    sequence: u64,
    at: Timestamp,
}

/// Reports why a stream ends: an error code, or `STOPPING`.
#[derive(Serialize)]
struct Closing<'a> {
    reason: &'a str,
    at: Timestamp,
}

struct EventStream {
    app: Shared,
    caller: Caller,
    ip: IpAddr,
    kinds: Vec<EventKind>,
    place: FeedStart,
    subscription: Subscription,
    /// Wakes the stream when its key has ended.
    key_end: Subscription,
    heartbeats: Interval,
    /// Events for the next chunk.
    pending: EventBytes,
    /// True if there may be events after the position.
    is_behind: bool,
    /// True if a heartbeat is due once all events are sent.
    is_beat_due: bool,
    has_ended: bool,
}

/// Opens a stream. All errors occur before its first byte, so that they have an HTTP status.
pub async fn open(
    app: Shared,
    caller: Caller,
    ip: IpAddr,
    query: EventsQuery,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    if query.is_paged {
        return Err(
            AppError::field("/limit", "must not be sent for a stream: only pages have a limit").into()
        );
    }
    let place = match last_event_id(headers)? {
        None => query.place,
        Some(text) => {
            let requirement = "must be the id of an event of this stream";
            let refusal = |_| AppError::wrong_value("/header/Last-Event-ID", requirement, text);
            FeedStart::Behind(text.parse().map_err(refusal)?)
        }
    };
    // Subscribe before the first read, so that no event is missed in between.
    let client = (ip, caller.user_id());
    let place_of_stream = match caller.key.tier {
        Tier::Free => app.ctx.budgets().enter(Budget::Feed, client),
        _ => app.ctx.budgets().enter(Budget::PaidFeed, client),
    };
    let place_of_stream = place_of_stream.map_err(AppError::from)?;
    let subscription = app.ctx.process.feed.subscribe(caller.user_id(), place_of_stream);
    let key_end = app.ctx.process.feed.follow(Topic::Key(caller.key.id));
    // Read one event first: an unreadable position must fail with a status, not with an event.
    let first = feed::read(&app.ctx, caller.user_id(), place, &query.kinds, 1).await?;
    let place = if place == FeedStart::Latest { FeedStart::Behind(first.position) } else { place };
    let stream = EventStream {
        app,
        caller,
        ip,
        kinds: query.kinds,
        place,
        subscription,
        key_end,
        heartbeats: heartbeats(),
        pending: EventBytes::beginning(),
        is_behind: true,
        is_beat_due: true,
        has_ended: false,
    };
    let pieces = futures::stream::unfold(stream, async |mut stream| {
        let piece = stream.next().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), stream))
    });
    Ok(EventBytes::answer(pieces))
}

impl EventStream {
    /// Returns the next chunk, or `None` after the last one.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.has_ended {
            if let Err(error) = self.step().await {
                // Client errors such as a revoked key are normal ends of a stream.
                if error.code.status() >= 500 {
                    tracing::warn!(%error, cause = ?error.source, "ending a stream of events after an error");
                }
                self.end(error.code.as_str());
            }
            let piece = std::mem::take(&mut self.pending);
            if !piece.is_empty() {
                return Some(piece.into_bytes());
            }
        }
        None
    }

    /// Reads events. If the stream is up to date, waits for a wake-up first.
    async fn step(&mut self) -> Result<(), AppError> {
        if self.subscription.is_closing() {
            self.end("STOPPING");
            return Ok(());
        }
        if !self.is_behind {
            tokio::select! {
                biased;
                // Heartbeats first: on a busy stream, wake-ups would otherwise hold them back.
                _ = self.heartbeats.tick() => self.is_beat_due = true,
                wake = self.subscription.wait() => if wake == WakeReason::Closing { return Ok(()) },
                // The check below ends the stream.
                _ = self.key_end.wait() => {}
            }
            self.is_behind = true;
        }
        // Before every read, so that a revoked key receives no further events.
        self.check_caller().await?;
        // Before reading, so that a wake-up during the read is not lost.
        self.subscription.catch_up();
        let part = feed::read(&self.app.ctx, self.caller.user_id(), self.place, &self.kinds, PAGE).await?;
        for event in &part.events {
            let item = record::item(event).map_err(|problem| AppError::new(problem.code()))?;
            // Each event has its own id, so that a client can resume between events of a page.
            let at = FeedPosition { sequence: event.seq, ..part.position };
            self.push(Some(at), event.kind.as_str(), &item)?;
        }
        self.place = FeedStart::Behind(part.position);
        self.is_behind = part.has_more;
        if !self.is_behind && self.is_beat_due {
            self.is_beat_due = false;
            self.heartbeats.reset();
            let at = self.app.ctx.now();
            let heartbeat = Heartbeat { sequence: part.position.sequence, at };
            self.push(Some(part.position), "heartbeat", &heartbeat)?;
        }
        Ok(())
    }

    /// Checks the key and the kill switches again, as for a new request.
    async fn check_caller(&mut self) -> Result<(), AppError> {
        let ctx = &self.app.ctx;
        let route = routes().find(|route| route.path == "/v1/events");
        self.caller = keys::check_again(ctx, &self.caller, self.ip).await?;
        route.map_or(Ok(()), |route| {
            check_switches(ctx, route)?;
            route.scope.map_or(Ok(()), |scope| self.caller.require(scope))
        })
    }

    fn push(&mut self, id: Option<FeedPosition>, name: &str, data: &impl Serialize) -> Result<(), AppError> {
        let id = id.as_ref().map(|id| id as &dyn std::fmt::Display);
        let pushed = self.pending.push(id, name, data);
        pushed.map_err(AppError::internal)
    }

    fn end(&mut self, reason: &str) {
        self.has_ended = true;
        let closing = Closing { reason, at: self.app.ctx.now() };
        // Only strings, so serialization cannot fail.
        drop(self.pending.push(None, "closing", &closing));
    }
}
