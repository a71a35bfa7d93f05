//! `GET /app/live`: the state of the markets that a browser shows, as server-sent events.
//!
//! A browser has one stream for all its tabs. Each event is the current state of one market, so a
//! browser that reconnects needs no earlier event: the stream begins with the state of every market.
//! All streams share the states and their bytes, so a stream costs what it takes to send them. The
//! topic `u` says only that something of the person has changed.

use std::collections::BTreeSet;
use std::convert::Infallible;

use app::AppError;
use app::feed::{self, Closing, Follower, MarketPrices, Subscription, Topic, WakeReason};
use app::limits::Place;
use app::limits::budget::Budget;
use app::sessions::{self, Person};
use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use domain::Timestamp;
use domain::ids::{MarketId, UserId};
use domain::market::MarketStatus;
use http_kit::{
    ClientAddress, EventBytes, Parameters, Problem, Query, RawQuery, Shared, Visitor, heartbeats,
};
use serde::Serialize;
use store::StoreError;
use tokio::time::Interval;

/// Maximum number of markets of one stream.
const MAX_TOPICS: usize = 100;

/// The parameters `topics`, a list of `u` and of `m:` with a market's id, and `after`, the id of the last event that
/// the browser received. A repeated topic is one topic.
#[derive(Debug)]
pub struct LiveQuery {
    topics: BTreeSet<LiveTopic>,
    after: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
        if topics.len() > MAX_TOPICS {
            asked.wrong("topics", "must have at most 100 topics");
        }
        let after = asked.with("after", "must be the id of an event of this stream", http_kit::number);
        Some(Self { topics: topics.into_iter().collect(), after: after.unwrap_or_default() })
    }
}

impl LiveQuery {
    fn markets(&self) -> Vec<MarketId> {
        let of_market = |topic: &LiveTopic| match topic {
            LiveTopic::Market(id) => Some(*id),
            LiveTopic::Person => None,
        };
        self.topics.iter().filter_map(of_market).collect()
    }
}

/// The state of a market.
#[derive(Debug, Serialize)]
struct MarketState {
    /// `m:` and the market's id.
    topic: String,
    status: MarketStatus,
    outcomes: Vec<OutcomePrice>,
    /// The time of the block of this state.
    at: Timestamp,
}

/// An outcome's price, from 0 to 1.
#[derive(Debug, Serialize)]
struct OutcomePrice {
    index: u8,
    price: f64,
}

struct LiveStream {
    app: Shared,
    /// The browser's place, and those of its markets.
    _places: [Place; 2],
    closing: Closing,
    markets: Follower<MarketPrices>,
    person: Option<PersonNews>,
    heartbeats: Interval,
    pending: EventBytes,
    /// The block of the newest state that was sent. It is the id of events.
    block: u64,
    has_ended: bool,
}

/// The events of the person of the session.
struct PersonNews {
    person: Person,
    /// The stream ends with the session.
    session: Subscription,
    news: Subscription,
    /// The number of the last event that the stream has told, or that is older than the stream.
    last: u64,
}

impl PersonNews {
    async fn open(app: &Shared, person: &Person) -> Result<Self, StoreError> {
        let user_id = person.user_id();
        // Before the read: an event after it wakes the stream.
        let news = app.ctx.process.feed.follow(Topic::User(user_id));
        let (person, session) = (person.clone(), sessions::follow(&app.ctx, person));
        Ok(Self { person, session, news, last: last_event(app, user_id).await? })
    }

    /// Waits for news of the person. The end of the session is news, too.
    async fn wait(&mut self) -> WakeReason {
        loop {
            tokio::select! {
                biased;
                reason = self.session.wait() => match reason {
                    WakeReason::News if sessions::is_still_live(&self.person, &self.session) => {}
                    WakeReason::News | WakeReason::Closing => return WakeReason::Closing,
                },
                reason = self.news.wait() => return reason,
            }
        }
    }

    /// Returns whether there is an event since the last call. The watcher also wakes a new follower
    /// for events that are older.
    fn catch_up(&mut self) -> bool {
        let last = self.news.last_event();
        std::mem::replace(&mut self.last, last) != last
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
    let markets = query.markets();
    let enter = |budget, count| app.ctx.budgets().enter_many(budget, ip, count).map_err(AppError::from);
    let places = [enter(Budget::Streams, 1)?, enter(Budget::Topics, markets.len() as u64)?];
    let markets = app.ctx.process.streams.prices.follow(markets);
    // A session that has ended meanwhile must not stop the prices.
    let person = match person.filter(|_| query.topics.contains(&LiveTopic::Person)) {
        Some(person) => Some(PersonNews::open(&app, &person).await?),
        None => None,
    };
    let stream = LiveStream {
        closing: app.ctx.process.feed.closing(),
        app,
        _places: places,
        markets,
        person,
        heartbeats: heartbeats(),
        pending: EventBytes::beginning(),
        block: query.after,
        has_ended: false,
    };
    let pieces = futures::stream::unfold(stream, async |mut stream| {
        let piece = stream.next().await?;
        Some((Ok::<_, Infallible>(piece), stream))
    });
    Ok(EventBytes::answer(pieces))
}

impl LiveStream {
    /// Returns the next chunk, or `None` after the last one. It is called when the browser has read
    /// the chunk before, so a slow browser skips to the newest state of each market.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let piece = std::mem::take(&mut self.pending);
            if !piece.is_empty() {
                return Some(piece.into_bytes());
            }
            if self.has_ended {
                return None;
            }
            match self.markets.take_changed() {
                Some(place) => {
                    if let Some(state) = self.state_of(place).await {
                        return Some(state);
                    }
                }
                None => self.step().await,
            }
        }
    }

    /// Waits for a change of a market or of the person, or the next heartbeat.
    async fn step(&mut self) {
        let Self { markets, person, heartbeats, closing, .. } = self;
        let own = async {
            match person {
                Some(person) => person.wait().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = closing.wait() => self.has_ended = true,
            // Before the others: the end of the session must not wait for them.
            reason = own => match reason {
                WakeReason::News => self.tell_person(),
                WakeReason::Closing => self.has_ended = true,
            },
            _ = heartbeats.tick() => {
                self.push(None, "heartbeat", &serde_json::json!({ "at": self.app.ctx.now() }));
            }
            () = markets.changed() => {}
        }
    }

    fn tell_person(&mut self) {
        if self.person.as_mut().is_some_and(PersonNews::catch_up) {
            let event = serde_json::json!({ "topic": "u", "at": self.app.ctx.now() });
            self.push(Some(self.block), "message", &event);
        }
    }

    /// Returns the event with the newest state of a market. `None` if there is no such market.
    async fn state_of(&mut self, place: usize) -> Option<Bytes> {
        let newest: Result<_, AppError> = feed::newest_prices(&self.app.ctx, &self.markets, place).await;
        match newest {
            Ok(Some(prices)) => {
                self.block = self.block.max(prices.block);
                Some(prices.bytes.get(|| event(&prices)))
            }
            Ok(None) => None,
            Err(error) => {
                tracing::warn!(%error, cause = ?error.source, "ending a browser's stream after an error");
                self.has_ended = true;
                None
            }
        }
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

/// Writes the event that reports the state of a market.
fn event(prices: &MarketPrices) -> Bytes {
    let price = |(index, price): &(u8, f64)| OutcomePrice { index: *index, price: *price };
    let state = MarketState {
        topic: format!("m:{}", prices.market_id),
        status: prices.status,
        outcomes: prices.prices.iter().map(price).collect(),
        at: prices.at,
    };
    let mut bytes = EventBytes::default();
    if let Err(error) = bytes.push(Some(&prices.block), "message", &state) {
        // Cannot happen: the state has no map whose keys are not strings.
        tracing::error!(%error, "could not serialize the state of a market");
    }
    bytes.into_bytes()
}
