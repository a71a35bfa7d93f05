//! The feed as it happens.
//!
//! A stream is a position and a place in the hub. It is asked for its next piece when the client has taken the one before:
//! then it judges the key anew, reads the next page behind its position, or waits. So a slow client holds a page at the most,
//! and one whose key is revoked is told nothing more.

use std::net::IpAddr;
use std::time::Duration;

use app::AppError;
use app::feed::{self, Place, Subscription, Topic, Wake};
use app::keys::{self, Caller};
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::Response;
use domain::ErrorCode;
use domain::Timestamp;
use domain::event::{EventKind, FeedPosition};
use serde::Serialize;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::query::EventsQuery;
use super::record;
use crate::http::{EventBytes, Problem, Shared, check_switches, last_event_id};
use crate::router::routes;

/// How long nothing is sent at the most.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Events that are read at once.
const PAGE: u32 = 100;
/// The streams that one user may have open on a process.
const MOST_STREAMS: usize = 5;

/// Everything up to this number was sent.
#[derive(Serialize)]
struct Heartbeat {
    sequence: u64,
    at: Timestamp,
}

/// Why a stream ends: a code of the catalogue, or `STOPPING`.
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
    place: Place,
    subscription: Subscription,
    heartbeats: Interval,
    /// What waits to be sent with the next piece.
    pending: EventBytes,
    /// Whether there may be something behind the position.
    is_behind: bool,
    /// Whether a heartbeat is due once everything was sent.
    is_beat_due: bool,
    has_ended: bool,
}

/// Opens a stream: every refusal comes before its first byte.
pub async fn open(
    app: Shared,
    caller: Caller,
    ip: IpAddr,
    query: EventsQuery,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    if query.is_paged {
        return Err(AppError::field("/limit", "must not be sent for a stream: it belongs to pages").into());
    }
    let place = match last_event_id(headers)? {
        None => query.place,
        Some(text) => {
            let requirement = "must be the id of an event of this stream";
            let refusal = |_| AppError::wrong_value("/header/Last-Event-ID", requirement, text);
            Place::Behind(text.parse().map_err(refusal)?)
        }
    };
    let subscription = app.ctx.feed.subscribe(Topic::User(caller.user_id()), MOST_STREAMS)?;
    // A place that cannot be read is told by a status, not by an event.
    let first = feed::read(&app.ctx, caller.user_id(), place, &query.kinds, 1).await?;
    let place = if place == Place::Latest { Place::Behind(first.position) } else { place };
    let mut heartbeats = interval(HEARTBEAT);
    heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    heartbeats.reset();
    let stream = EventStream {
        app,
        caller,
        ip,
        kinds: query.kinds,
        place,
        subscription,
        heartbeats,
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
    /// The next piece; `None` behind the last.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.has_ended {
            if let Err(error) = self.step().await {
                if error.code.status() >= 500 {
                    tracing::warn!(%error, cause = ?error.source, "a stream of events ends");
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

    /// Reads, or waits until that makes sense.
    async fn step(&mut self) -> Result<(), AppError> {
        if self.subscription.is_closing() {
            self.end("STOPPING");
            return Ok(());
        }
        if !self.is_behind {
            tokio::select! {
                biased;
                // Who is told of what happens all the time is told up to where, too.
                _ = self.heartbeats.tick() => self.is_beat_due = true,
                wake = self.subscription.wait() => if wake == Wake::Closing { return Ok(()) },
            }
            self.is_behind = true;
        }
        self.judge().await?;
        self.subscription.catch_up();
        let part = feed::read(&self.app.ctx, self.caller.user_id(), self.place, &self.kinds, PAGE).await?;
        for event in &part.events {
            let item = record::item(event).map_err(|problem| AppError::new(problem.code()))?;
            let at = FeedPosition { sequence: event.seq, ..part.position };
            self.push(Some(at), event.kind.as_str(), &item)?;
        }
        self.place = Place::Behind(part.position);
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

    /// The key as it is now, and the switch of the route, as a new request would find them.
    async fn judge(&mut self) -> Result<(), AppError> {
        let ctx = &self.app.ctx;
        let route = routes().find(|route| route.path == "/v1/events");
        self.caller = keys::judge_again(ctx, &self.caller, self.ip).await?;
        route.map_or(Ok(()), |route| {
            check_switches(ctx, route)?;
            route.scope.map_or(Ok(()), |scope| self.caller.require(scope))
        })
    }

    fn push(&mut self, id: Option<FeedPosition>, name: &str, data: &impl Serialize) -> Result<(), AppError> {
        let id = id.as_ref().map(|id| id as &dyn std::fmt::Display);
        let pushed = self.pending.push(id, name, data);
        pushed.map_err(|error| AppError::new(ErrorCode::InternalError).caused_by(error))
    }

    fn end(&mut self, reason: &str) {
        self.has_ended = true;
        let closing = Closing { reason, at: self.app.ctx.now() };
        // Texts alone: writing them does not fail.
        drop(self.pending.push(None, "closing", &closing));
    }
}
