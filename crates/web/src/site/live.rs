//! `GET /app/live`: the state of the markets that a browser shows, as server-sent events.
//!
//! A browser has one stream for all its tabs. Each event is the current state of one market, so a
//! browser that reconnects needs no earlier event: the stream begins with the state of every market.
//! The topic `u` says only that something of the person has changed.

use std::convert::Infallible;

use app::AppError;
use app::feed::{Subscription, Topic, WakeReason};
use app::limits::Place;
use app::limits::budget::Budget;
use app::sessions::Person;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use domain::Timestamp;
use domain::ids::{MarketId, UserId};
use domain::market::MarketStatus;
use futures::future::select_all;
use http_kit::{
    ClientAddress, EventBytes, Parameters, Problem, Query, RawQuery, Shared, Visitor, heartbeats,
};
use presentation::numbers;
use serde::Serialize;
use store::StoreError;
use tokio::time::Interval;

/// Maximum number of markets of one stream.
const MOST_TOPICS: usize = 100;

/// The parameters `topics`, a list of `u` and of `m:` with a market's id, and `after`, the id of the last event that
/// the browser received.
#[derive(Debug)]
pub struct LiveQuery {
    topics: Vec<LiveTopic>,
    after: u64,
}

#[derive(Debug, Clone, Copy)]
enum LiveTopic {
    Market(MarketId),
    /// The person of the session.
    Person,
}

impl LiveTopic {
    fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("m:") {
            Some(id) => id.parse().ok().map(Self::Market),
            None => (text == "u").then_some(Self::Person),
        }
    }
}

impl Parameters for LiveQuery {
    const NAMES: &'static [&'static str] = &["topics", "after"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        let topics: Vec<LiveTopic> =
            asked.list("topics", "must be a list of u and m:MARKET_ID", LiveTopic::parse);
        if topics.len() > MOST_TOPICS {
            asked.wrong("topics", "must have at most 100 topics");
        }
        let after = asked.with("after", "must be the id of an event of this stream", http_kit::number);
        Some(Self { topics, after: after.unwrap_or_default() })
    }
}

/// The state of a market.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct MarketState {
    /// `m:` and the market's id.
    topic: String,
    status: MarketStatus,
    outcomes: Vec<OutcomePrice>,
    /// The time of the block of this state.
    at: Timestamp,
}

/// An outcome's price, from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct OutcomePrice {
    index: u8,
    price: f64,
}

/// A market that the stream follows.
struct Followed {
    id: MarketId,
    news: Subscription,
    /// The state that was sent last.
    sent: Option<MarketState>,
}

struct LiveStream {
    app: Shared,
    /// The browser's place.
    _place: Place,
    markets: Vec<Followed>,
    person: Option<PersonNews>,
    heartbeats: Interval,
    pending: EventBytes,
    /// The block of the newest state that was sent. It is the id of events.
    block: u64,
    has_ended: bool,
}

/// The events of the person of the session.
struct PersonNews {
    user_id: UserId,
    news: Subscription,
    /// The number of the last event that the stream has told, or that is older than the stream.
    last: u64,
}

impl PersonNews {
    async fn open(app: &Shared, person: &Person) -> Result<Self, StoreError> {
        let user_id = person.user_id();
        // Before the read: an event after it wakes the stream.
        let news = app.ctx.process.feed.follow(Topic::User(user_id));
        Ok(Self { user_id, news, last: last_event(app, user_id).await? })
    }

    /// Returns whether there is an event since the last call. The hub also wakes a new listener for
    /// events that are older.
    async fn catch_up(&mut self, app: &Shared) -> Result<bool, StoreError> {
        self.news.catch_up();
        let last = last_event(app, self.user_id).await?;
        Ok(std::mem::replace(&mut self.last, last) != last)
    }
}

async fn last_event(app: &Shared, user_id: UserId) -> Result<u64, StoreError> {
    let read = app
        .ctx
        .store
        .read(user_id, |tx, id| Box::pin(store::events::list_last(tx, std::slice::from_ref(id))));
    let last: Vec<(UserId, u64)> = read.await?;
    Ok(last.first().map_or(0, |(_, last)| *last))
}

/// `GET /app/live`.
pub async fn stream(
    State(app): State<Shared>,
    Query(query): Query<LiveQuery>,
    Visitor(person): Visitor,
    ClientAddress(ip): ClientAddress,
) -> Result<Response, Problem> {
    let hub = &app.ctx.process.feed;
    let place = app.ctx.budgets().enter(Budget::Streams, ip).map_err(AppError::from)?;
    let follow = |id| Followed { id, news: hub.follow(Topic::Market(id)), sent: None };
    let of_market = |topic: &LiveTopic| match topic {
        LiveTopic::Market(id) => Some(*id),
        LiveTopic::Person => None,
    };
    let markets = query.topics.iter().filter_map(of_market).map(follow).collect();
    // A session that has ended meanwhile must not stop the prices.
    let wants_person = query.topics.iter().any(|topic| matches!(topic, LiveTopic::Person));
    let person = match person.filter(|_| wants_person) {
        Some(person) => Some(PersonNews::open(&app, &person).await?),
        None => None,
    };
    let stream = LiveStream {
        app,
        _place: place,
        markets,
        person,
        heartbeats: heartbeats(),
        pending: EventBytes::beginning(),
        block: query.after,
        has_ended: false,
    };
    // The first poll reads every market.
    let pieces = futures::stream::unfold((stream, true), async |(mut stream, is_first)| {
        if is_first {
            stream.read_all().await;
        }
        let piece = stream.next().await?;
        Some((Ok::<_, Infallible>(piece), (stream, false)))
    });
    Ok(EventBytes::answer(pieces))
}

impl LiveStream {
    /// Returns the next chunk, or `None` after the last one.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let piece = std::mem::take(&mut self.pending);
            if !piece.is_empty() {
                return Some(piece.into_bytes());
            }
            if self.has_ended {
                return None;
            }
            self.step().await;
        }
    }

    /// Waits for a change of a market or of the person, or the next heartbeat.
    async fn step(&mut self) {
        let Self { markets, person, heartbeats, .. } = self;
        let own = async {
            match person {
                Some(person) => person.news.wait().await,
                None => std::future::pending().await,
            }
        };
        let woken = async {
            if markets.is_empty() {
                return std::future::pending().await;
            }
            let (reason, place, _) =
                select_all(markets.iter_mut().map(|market| Box::pin(market.news.wait()))).await;
            (reason, place)
        };
        tokio::select! {
            biased;
            _ = heartbeats.tick() => {
                // Finds changes whose wake-up was missed, such as the end of trading.
                self.read_all().await;
                self.push(None, "heartbeat", &serde_json::json!({ "at": self.app.ctx.now() }));
            }
            (reason, place) = woken => match reason {
                WakeReason::News => self.read(place).await,
                WakeReason::Closing => self.has_ended = true,
            },
            reason = own => match reason {
                WakeReason::News => self.tell_person().await,
                WakeReason::Closing => self.has_ended = true,
            },
        }
    }

    async fn tell_person(&mut self) {
        let Some(person) = &mut self.person else { return };
        match person.catch_up(&self.app).await {
            Ok(true) => {
                let event = serde_json::json!({ "topic": "u", "at": self.app.ctx.now() });
                self.push(Some(self.block), "message", &event);
            }
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "ending a browser's stream after an error");
                self.has_ended = true;
            }
        }
    }

    async fn read_all(&mut self) {
        for place in 0..self.markets.len() {
            self.read(place).await;
        }
    }

    /// Sends the state of a market if it changed since it was sent last.
    async fn read(&mut self, place: usize) {
        let Some(market) = self.markets.get_mut(place) else { return };
        // Before the read: a change during it wakes the stream again.
        market.news.catch_up();
        let (block, state) = match read_state(&self.app, market.id).await {
            Ok(Some(read)) => read,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, cause = ?error.source, "ending a browser's stream after an error");
                self.has_ended = true;
                return;
            }
        };
        let shown = |state: &MarketState| (state.status, state.outcomes.clone());
        if market.sent.as_ref().map(shown) == Some(shown(&state)) {
            return;
        }
        market.sent = Some(state.clone());
        self.block = self.block.max(block);
        self.push(Some(self.block), "message", &state);
    }

    fn push(&mut self, id: Option<u64>, name: &str, data: &impl Serialize) {
        let id = id.as_ref().map(|id| id as &dyn std::fmt::Display);
        if let Err(error) = self.pending.push(id, name, data) {
            // Cannot happen: the data has no map whose keys are not strings.
            tracing::error!(%error, "could not serialize an event of a browser's stream");
            self.has_ended = true;
        }
    }
}

/// Reads the state of a market and its block. `None` if there is no such market.
async fn read_state(app: &Shared, id: MarketId) -> Result<Option<(u64, MarketState)>, AppError> {
    // Without the cache, whose state may be older than the wake-up.
    let read = app::markets::read(&app.ctx, id).await?;
    Ok(read.map(|(market, outcomes)| {
        let price = |outcome: &store::markets::Outcome| OutcomePrice {
            index: outcome.index,
            price: numbers::of_outcome(&market, outcome),
        };
        let state = MarketState {
            topic: format!("m:{id}"),
            status: market.status_at(app.ctx.now()),
            outcomes: outcomes.iter().map(price).collect(),
            at: market.as_of,
        };
        (market.as_of_block, state)
    }))
}
