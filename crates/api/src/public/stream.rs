//! `GET /api/markets/{id}/stream`: a market's events as server-sent events, without authentication.
//!
//! A stream starts with the current market, followed by its trades and status changes once their
//! blocks are final. An event's id is its position on chain. A client that was disconnected resumes
//! from this id without a gap.
//!
//! A stream reads the events since its position once. From then on it sends what the watcher has read
//! for all streams of the market. Only a client that reads too slowly for that reads by itself again.

use std::borrow::Cow;
use std::time::Duration;

use app::AppError;
use app::feed::{self, Closing as ProcessClosing, Follower, Happening, MarketEventsPage, MarketTail};
use app::limits::Place;
use app::limits::budget::Budget;
use app::markets::{displayed_price, displayed_probability};
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use domain::ids::MarketId;
use domain::market::MarketStatus;
use domain::trade::Side;
use domain::{Timestamp, Usdc, Wad};
use serde::Serialize;
use store::StoreError;
use store::markets::{Market, Outcome};
use store::movements::{Movement, MovementKind};
use tokio::time::{Interval, MissedTickBehavior, interval};
use utoipa::ToSchema;
use utoipa::openapi::schema::AnyOfBuilder;
use utoipa::openapi::{Ref, RefOr, Schema};

use http_kit::{
    ClientAddress, EventBytes, NoParameters, PathId, Problem, PublicCode, Query, Shared, heartbeats,
    last_event_id,
};

const PATH: &str = "/api/markets/{id}/stream";
/// Number of events that are read at once.
const PAGE: u32 = 100;
/// The time between two pages of a stream that reads by itself: a thousand events a second.
const PAGE_PAUSE: Duration = Duration::from_millis(100);

/// `market`: the state of the market as of a block.
#[derive(Serialize, ToSchema)]
#[schema(as = StreamedMarket, example = json!({
    "id": "0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f80",
    "question": "Will it rain in Berlin on 1 May 2026?",
    "status": "OPEN",
    "outcomes": [
        { "index": 0, "label": "Yes", "price": 0.526316 },
        { "index": 1, "label": "No", "price": 0.473684 },
    ],
    "endTime": 1_777_593_600_000_i64,
    "block": 4711,
    "asOf": "2026-04-29T12:00:00.000Z",
}))]
#[serde(rename_all = "camelCase")]
pub struct Snapshot<'a> {
    id: MarketId,
    question: &'a str,
    status: MarketStatus,
    outcomes: Vec<Price<'a>>,
    /// The time at which trading ends, in milliseconds since the Unix epoch.
    end_time: i64,
    block: u64,
    as_of: Timestamp,
}

/// An outcome's price.
#[derive(Serialize, ToSchema)]
#[schema(as = StreamedOutcome)]
#[serde(rename_all = "camelCase")]
struct Price<'a> {
    index: u8,
    label: &'a str,
    /// From 0 to 1 or, once the market is settled, the payout of one token.
    price: f64,
}

/// `trade`: a trade on chain, made through this service or not.
#[derive(Serialize, ToSchema)]
#[schema(as = StreamedTrade, example = json!({
    "id": "000000004712-000003",
    "outcomeIndex": 0,
    "side": "buy",
    "amount": "25000000",
    "tokens": "48902203193255351000",
    "priceAfter": 0.526316,
    "trader": "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
    "txHash": "0x8f1c2d3e4f5061728394a5b6c7d8e9f00112233445566778899aabbccddeeff0",
    "block": 4712,
    "at": "2026-04-29T12:00:02.000Z",
}))]
#[serde(rename_all = "camelCase")]
pub struct TradeMessage<'a> {
    /// The position of the trade on the chain, which is the id of the event.
    id: &'a str,
    outcome_index: u8,
    side: Side,
    /// USDC paid or received, fee included, in atomic-6.
    amount: Usdc,
    tokens: Wad,
    /// The outcome's price after the trade.
    price_after: Option<f64>,
    #[schema(value_type = String)]
    trader: alloy_primitives::Address,
    #[schema(value_type = String)]
    tx_hash: alloy_primitives::B256,
    block: u64,
    at: Timestamp,
}

/// `status`: a change of the market's status.
#[derive(Serialize, ToSchema)]
#[schema(as = StreamedStatus, example = json!({
    "id": "000000004713-000000",
    "status": "FROZEN",
    "block": 4713,
    "at": "2026-04-29T12:00:04.000Z",
}))]
#[serde(rename_all = "camelCase")]
pub struct StatusMessage<'a> {
    id: &'a str,
    status: MarketStatus,
    block: u64,
    at: Timestamp,
}

/// `heartbeat`: the stream is alive.
#[derive(Serialize, ToSchema)]
#[schema(as = StreamHeartbeat, example = json!({ "at": "2026-04-29T12:00:15.000Z" }))]
pub struct Heartbeat {
    at: Timestamp,
}

/// `closing`: the last event of a stream that the service ends.
#[derive(Serialize, ToSchema)]
#[schema(as = StreamClosing, example = json!({ "reason": "STOPPING", "at": "2026-04-29T12:00:30.000Z" }))]
pub struct Closing<'a> {
    /// STOPPING or an error code.
    reason: &'a str,
    at: Timestamp,
}

/// The data of an event, by the event's name: `market`, `trade`, `status`, `heartbeat` or
/// `closing`.
#[derive(Serialize)]
#[serde(untagged)]
pub enum EventData<'a> {
    Market(Snapshot<'a>),
    Trade(TradeMessage<'a>),
    Status(StatusMessage<'a>),
    Heartbeat(Heartbeat),
    Closing(Closing<'a>),
}

/// The schema is `anyOf` rather than `oneOf`, because some events have the same members as a
/// heartbeat. Only the event's name distinguishes them.
impl utoipa::PartialSchema for EventData<'_> {
    fn schema() -> RefOr<Schema> {
        let names = [
            Snapshot::name(),
            TradeMessage::name(),
            StatusMessage::name(),
            Heartbeat::name(),
            Closing::name(),
        ];
        let any = names
            .iter()
            .fold(AnyOfBuilder::new(), |any, name| any.item(Ref::from_schema_name(name.as_ref())));
        let names = "The data of an event, by its name: `market`, `trade`, `status`, `heartbeat`, `closing`.";
        Schema::AnyOf(any.description(Some(names)).build()).into()
    }
}

impl ToSchema for EventData<'_> {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("MarketStreamEvent")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        add::<Snapshot<'_>>(schemas);
        add::<TradeMessage<'_>>(schemas);
        add::<StatusMessage<'_>>(schemas);
        add::<Heartbeat>(schemas);
        add::<Closing<'_>>(schemas);
    }
}

fn add<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}

struct MarketStream {
    app: Shared,
    id: MarketId,
    liquidity: Usdc,
    /// The id of the last event that was sent.
    position: String,
    /// The market's last events, as the watcher reads them.
    tail: Follower<MarketTail>,
    /// The address's place, held as long as the stream lives.
    _place: Place,
    closing: ProcessClosing,
    heartbeats: Interval,
    /// The turns of the stream's own reads.
    turns: Interval,
    /// The next chunk, if it is shared with other streams.
    shared: Option<Bytes>,
    pending: EventBytes,
    is_behind: bool,
    is_beat_due: bool,
    has_ended: bool,
}

/// `GET /api/markets/{id}/stream`.
#[utoipa::path(
    get, path = "/api/markets/{id}/stream", operation_id = "streamMarket", tag = "Markets", summary = "Stream one market",
    description = "Server-sent events. The first is `market`, the current state of the market. Then follow \
        `trade` for every trade on chain, with the outcome's price after it, and `status` for every change \
        of status. They are sent once their blocks are final and are never reverted. The id of an event is \
        its position on the chain. A client that reconnects sends the last id as Last-Event-ID and misses \
        nothing. `heartbeat` is sent every 15 seconds, and `closing` before the service ends the stream. \
        An address may have ten open streams.",
    params(
        ("id" = MarketId, Path, description = "The market's id."),
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was received."),
    ),
    responses((status = 200, description = "The stream.", content_type = "text/event-stream", body = EventData)),
    extensions(("x-error-codes" = json!(["MARKET_NOT_FOUND", "INVALID_REQUEST"]))),
)]
pub async fn stream(
    State(app): State<Shared>,
    PathId(id): PathId,
    _: Query<NoParameters>,
    ClientAddress(ip): ClientAddress,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let ctx = &app.ctx;
    let id: MarketId = id.parse().map_err(|_| Problem::from(PublicCode::MarketNotFound))?;
    // Limits the streams per address, because no key identifies the client.
    let place = ctx.budgets().enter(Budget::MarketStreams, ip).map_err(AppError::from)?;
    let tail = ctx.process.streams.tails.follow([id]);
    // Determine the position before reading the market, so that the snapshot includes everything up
    // to it. An event may then be sent again, but none is lost.
    let position = match last_event_id(&headers)? {
        Some(text) if is_place(text) => text.to_owned(),
        Some(text) => {
            let requirement = "must be the id of an event of this stream";
            return Err(AppError::wrong_value("/header/Last-Event-ID", requirement, text).into());
        }
        None => feed::first_position(ctx).await?,
    };
    let (market, outcomes) = find(&app, id).await?;
    let mut pending = EventBytes::beginning();
    let snapshot = snapshot(&market, &outcomes, ctx.now());
    pending.push(Some(&position), "market", &EventData::Market(snapshot)).map_err(AppError::internal)?;
    let mut turns = interval(PAGE_PAUSE);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let stream = MarketStream {
        closing: ctx.process.feed.closing(),
        app,
        id,
        liquidity: market.liquidity,
        position,
        tail,
        _place: place,
        heartbeats: heartbeats(),
        turns,
        shared: None,
        pending,
        // Read at once: events may have been written since the position was determined.
        is_behind: true,
        is_beat_due: false,
        has_ended: false,
    };
    let pieces = futures::stream::unfold(stream, async |mut stream| {
        let piece = stream.next().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), stream))
    });
    Ok(EventBytes::answer(pieces))
}

/// Reads the market without the cache, whose data may be older than the position.
async fn find(app: &Shared, id: MarketId) -> Result<(Market, Vec<Outcome>), Problem> {
    let read: Result<Option<(Market, Vec<Outcome>)>, StoreError> = app
        .ctx
        .store
        .read(id, |tx, id| {
            Box::pin(async move {
                let Some(market) = store::markets::find(tx, *id).await? else { return Ok(None) };
                let outcomes = store::markets::outcomes(tx, *id).await?;
                Ok(Some((market, outcomes)))
            })
        })
        .await;
    let found = read?.filter(|(market, _)| market.chain_market_id.is_some());
    found.ok_or_else(|| Problem::from(PublicCode::MarketNotFound))
}

/// Returns whether the text has the form of an event id: the block in 12 digits and the log index
/// in 6, so that ids sort as text.
fn is_place(text: &str) -> bool {
    let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|b| b.is_ascii_digit());
    text.split_once('-').is_some_and(|(block, log)| digits(block, 12) && digits(log, 6))
}

fn snapshot<'a>(market: &'a Market, outcomes: &'a [Outcome], now: Timestamp) -> Snapshot<'a> {
    let price = |outcome: &'a Outcome| {
        let price = displayed_price(market, outcome);
        Price { index: outcome.index, label: &outcome.label, price }
    };
    Snapshot {
        id: market.id,
        question: &market.question,
        status: market.status_at(now),
        outcomes: outcomes.iter().map(price).collect(),
        end_time: market.end_time.ms(),
        block: market.as_of_block,
        as_of: market.as_of,
    }
}

impl MarketStream {
    /// Returns the next chunk, or `None` after the last one.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let piece = std::mem::take(&mut self.pending);
            if !piece.is_empty() {
                return Some(piece.into_bytes());
            }
            if let Some(piece) = self.shared.take() {
                return Some(piece);
            }
            if self.has_ended {
                return None;
            }
            if let Err(error) = self.step().await {
                tracing::warn!(%error, cause = ?error.source, "ending a market's stream after an error");
                self.end(error.code.as_str());
            }
        }
    }

    /// Sends the next events. If the stream is up to date, waits for them first.
    async fn step(&mut self) -> Result<(), AppError> {
        let Self { closing, heartbeats, turns, tail, is_beat_due, .. } = self;
        let is_behind = self.is_behind;
        tokio::select! {
            biased;
            () = closing.wait() => {
                self.end("STOPPING");
                return Ok(());
            }
            _ = heartbeats.tick(), if !is_behind => *is_beat_due = true,
            _ = turns.tick(), if is_behind => {}
            () = tail.changed(), if !is_behind => {}
        }
        // A disabled route must also end its open streams.
        self.app.ctx.process.switches.check("GET", PATH, false)?;
        if self.is_behind {
            self.read_page().await?;
        } else if self.tail.take_changed().is_some() {
            self.send_tail()?;
        }
        if self.is_beat_due && !self.is_behind {
            self.is_beat_due = false;
            let at = self.app.ctx.now();
            self.pending
                .push(None, "heartbeat", &EventData::Heartbeat(Heartbeat { at }))
                .map_err(AppError::internal)?;
        }
        Ok(())
    }

    /// Reads the events after the stream's position.
    async fn read_page(&mut self) -> Result<(), AppError> {
        // Before reading, so that a wake-up during the read is not lost.
        while self.tail.take_changed().is_some() {}
        let MarketEventsPage { happenings, position, has_more } =
            feed::read_market(&self.app.ctx, self.id, &self.position, PAGE).await?;
        for happening in &happenings {
            push(&mut self.pending, happening, self.liquidity)?;
        }
        self.position = position;
        self.is_behind = has_more;
        Ok(())
    }

    /// Sends the events that the watcher has read, if they follow the stream's position.
    fn send_tail(&mut self) -> Result<(), AppError> {
        let Some(tail) = self.tail.newest(0) else { return Ok(()) };
        if self.position < tail.after {
            // This client was too slow for an earlier tail.
            self.is_behind = true;
            return Ok(());
        }
        let is_new = |happening: &&Happening| happening.id() > self.position.as_str();
        let new: Vec<&Happening> = tail.happenings.iter().filter(is_new).collect();
        if new.is_empty() {
            // Its snapshot or its own read had them.
        } else if new.len() == tail.happenings.len() {
            self.shared = Some(tail.bytes.get(|| written(&tail.happenings, self.liquidity)));
        } else {
            for happening in new {
                push(&mut self.pending, happening, self.liquidity)?;
            }
        }
        if self.position < tail.position {
            self.position.clone_from(&tail.position);
        }
        Ok(())
    }

    fn end(&mut self, reason: &str) {
        self.has_ended = true;
        let closing = EventData::Closing(Closing { reason, at: self.app.ctx.now() });
        // Only strings, so serialization cannot fail.
        drop(self.pending.push(None, "closing", &closing));
    }
}

/// Writes the events as they are sent.
fn written(happenings: &[Happening], liquidity: Usdc) -> Bytes {
    let mut bytes = EventBytes::default();
    for happening in happenings {
        if let Err(error) = push(&mut bytes, happening, liquidity) {
            // Cannot happen: an event has no map whose keys are not strings.
            tracing::error!(%error, "could not serialize the events of a market");
        }
    }
    bytes.into_bytes()
}

fn push(bytes: &mut EventBytes, happening: &Happening, liquidity: Usdc) -> Result<(), AppError> {
    let id = happening.id();
    let pushed = match happening {
        Happening::Trade(movement) => {
            bytes.push(Some(&id), "trade", &EventData::Trade(trade(movement, liquidity)))
        }
        Happening::Status(change) => {
            let (status, block, at) = (change.status, change.block_number, change.at);
            bytes.push(Some(&id), "status", &EventData::Status(StatusMessage { id, status, block, at }))
        }
    };
    pushed.map_err(AppError::internal)
}

fn trade(movement: &Movement, liquidity: Usdc) -> TradeMessage<'_> {
    let after = movement.quantity.zip(movement.cost);
    TradeMessage {
        id: &movement.id,
        outcome_index: movement.outcome_index,
        side: if movement.kind == MovementKind::Sell { Side::Sell } else { Side::Buy },
        amount: movement.usdc,
        tokens: movement.tokens,
        price_after: after.map(|(quantity, cost)| displayed_probability(quantity, cost, liquidity)),
        trader: movement.account,
        tx_hash: movement.tx_hash,
        block: movement.block_number,
        at: movement.created_at,
    }
}
