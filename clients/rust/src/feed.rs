//! Reads the feed of events, and resumes it after every interruption.

use std::collections::{HashSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use tokio::time::timeout;

use crate::error::Error;
use crate::sse::{EventParser, ServerSentEvent};
use crate::transport::{Call, Transport};
use crate::types::FeedEvent;

/// An event of the feed, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedItem {
    /// The position of the event. Store it, and pass it as `after` to continue later.
    pub position: String,
    /// The event.
    pub event: FeedEvent,
}

/// The start of a feed without a position.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FeedStart {
    /// At the oldest event that is stored.
    #[default]
    Oldest,
    /// After the newest event.
    Latest,
}

/// Receives the number of a new generation, if the service reports it.
pub type OnGeneration = Box<dyn FnMut(Option<u64>) + Send + Sync>;

/// The options of a feed.
#[derive(Default)]
pub struct FeedOptions {
    /// Only these types; `*` for all. Default: the ends of trades, and trades that wait for a
    /// confirmation.
    pub types: Vec<String>,
    /// Continue after this position.
    pub after: Option<String>,
    /// The start without a position.
    pub from: FeedStart,
    /// Called if data was restored, and the feed is read again from its start.
    pub on_generation: Option<OnGeneration>,
}

/// The feed of events: in order, without gaps, resumed after interruptions.
///
/// It ends with an error if the key may not read on, or if events were missed (`CURSOR_EXPIRED`).
pub struct EventFeed(BoxStream<'static, Result<FeedItem, Error>>);

impl EventFeed {
    pub(crate) fn new(transport: Arc<Transport>, options: FeedOptions) -> Self {
        let items = signals(transport, options, false).filter_map(async |signal| match signal {
            Ok(Signal::Heartbeat) => None,
            Ok(Signal::Event(item)) => Some(Ok(*item)),
            Err(error) => Some(Err(error)),
        });
        Self(items.boxed())
    }

    /// Waits for the next event. Returns `None` only after an error. Dropping the future loses no
    /// event.
    ///
    /// # Errors
    ///
    /// If the feed cannot be read on.
    pub async fn try_next(&mut self) -> Result<Option<FeedItem>, Error> {
        self.0.next().await.transpose()
    }
}

impl Stream for EventFeed {
    type Item = Result<FeedItem, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(context)
    }
}

/// A message of the feed.
pub(crate) enum Signal {
    /// Everything that happens from now on will be returned.
    Heartbeat,
    Event(Box<FeedItem>),
}

/// Reads the feed. If `ends_if_refused`, every answer but a stream ends it.
pub(crate) fn signals(
    transport: Arc<Transport>,
    options: FeedOptions,
    ends_if_refused: bool,
) -> BoxStream<'static, Result<Signal, Error>> {
    let reader = Reader {
        transport,
        position: options.after.clone(),
        options,
        ends_if_refused,
        connection: None,
        failures: 0,
        returned: Recent::default(),
    };
    // After an error there is nothing more.
    futures::stream::unfold(Some(reader), async |reader| {
        let mut reader = reader?;
        match reader.next().await {
            Ok(signal) => Some((Ok(signal), Some(reader))),
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed()
}

/// Events that were returned are remembered by their ids, for a new generation.
const MAX_REMEMBERED: usize = 10_000;

/// The newest ids.
#[derive(Default)]
struct Recent {
    ids: HashSet<String>,
    order: VecDeque<String>,
}

impl Recent {
    /// Returns true if the id is new.
    fn insert(&mut self, id: &str) -> bool {
        if !self.ids.insert(id.to_owned()) {
            return false;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > MAX_REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }
}

/// One connection.
struct Connection {
    response: reqwest::Response,
    parser: EventParser,
    received: VecDeque<ServerSentEvent>,
    has_arrived: bool,
}

/// The next thing that a connection brings.
enum Received {
    Sent(ServerSentEvent),
    /// The connection broke. The feed connects again.
    Interrupted,
}

struct Reader {
    transport: Arc<Transport>,
    options: FeedOptions,
    ends_if_refused: bool,
    position: Option<String>,
    connection: Option<Connection>,
    failures: u32,
    returned: Recent,
}

impl Reader {
    async fn next(&mut self) -> Result<Signal, Error> {
        loop {
            let Some(mut connection) = self.connection.take() else {
                match self.connect().await {
                    Ok(connection) => self.connection = Some(connection),
                    Err(error) => self.recover(error).await?,
                }
                continue;
            };
            let received = connection.receive(&self.transport).await?;
            let sent = match received {
                Received::Sent(sent) if sent.name != "closing" => sent,
                // A stream that worked is resumed at once.
                _ if connection.has_arrived => continue,
                _ => {
                    self.wait(None).await;
                    continue;
                }
            };
            connection.has_arrived = true;
            self.connection = Some(connection);
            self.failures = 0;
            self.position = sent.id.or(self.position.take());
            if sent.name == "heartbeat" {
                return Ok(Signal::Heartbeat);
            }
            let event: FeedEvent = serde_json::from_str(&sent.data)
                .map_err(|_| Error::unreadable(200, "GET /v1/events: an event cannot be read"))?;
            if self.returned.insert(&event.id) {
                let position = self.position.clone().unwrap_or_default();
                return Ok(Signal::Event(Box::new(FeedItem { position, event })));
            }
        }
    }

    async fn connect(&self) -> Result<Connection, Error> {
        let types = (!self.options.types.is_empty()).then(|| ("types", self.options.types.join(",")));
        let is_latest = self.position.is_none() && self.options.from == FeedStart::Latest;
        let from = is_latest.then(|| ("from", "latest".to_owned()));
        let mut call =
            Call { query: types.into_iter().chain(from).collect(), ..Call::get("/v1/events", "data") };
        call.headers.push(("accept", "text/event-stream".to_owned()));
        call.headers.extend(self.position.clone().map(|position| ("last-event-id", position)));
        let opened = timeout(self.transport.settings.idle_timeout, self.transport.stream(&call)).await;
        let response = opened.unwrap_or_else(|_| Err(Error::connection_failed("no answer in time")))?;
        let (parser, received) = (EventParser::default(), VecDeque::new());
        Ok(Connection { response, parser, received, has_arrived: false })
    }

    /// Prepares for another connection. Returns the error if another one would fail, too.
    async fn recover(&mut self, error: Error) -> Result<(), Error> {
        if error.code == "FEED_RESTARTED" && self.position.is_some() {
            self.position = None;
            self.options.from = FeedStart::Oldest;
            if let Some(report) = &mut self.options.on_generation {
                report(error.extensions.get("generation").and_then(serde_json::Value::as_u64));
            }
            return Ok(());
        }
        let can_pass = error.status.is_none_or(|status| status == 429 || status >= 500);
        if !can_pass || (self.ends_if_refused && error.status.is_some()) {
            return Err(error);
        }
        self.wait(error.retry_after).await;
        Ok(())
    }

    async fn wait(&mut self, retry_after: Option<std::time::Duration>) {
        self.failures += 1;
        let pause = self.transport.pause(self.failures, retry_after);
        self.transport.settings.clock.sleep(pause).await;
    }
}

impl Connection {
    async fn receive(&mut self, transport: &Transport) -> Result<Received, Error> {
        loop {
            if let Some(sent) = self.received.pop_front() {
                return Ok(Received::Sent(sent));
            }
            let chunk = timeout(transport.settings.idle_timeout, self.response.chunk()).await;
            let Ok(Ok(Some(chunk))) = chunk else { return Ok(Received::Interrupted) };
            let events = self.parser.push(&chunk);
            let events =
                events.map_err(|_| Error::unreadable(200, "GET /v1/events: an event is too long"))?;
            self.received.extend(events);
        }
    }
}
