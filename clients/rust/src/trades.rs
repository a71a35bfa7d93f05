use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;

use crate::error::{Error, ErrorFamily};
use crate::feed::{FeedOptions, FeedStart, Signal, signals};
use crate::pages::Pages;
use crate::path::segment;
use crate::response::Response;
use crate::transport::{Call, CallFailure, Transport};
use crate::types::{DryRun, NewTrade, StatusChange, Submission, Trace, Trade, TradeQuery, TradeStatus};

/// Receives a status of a trade that is waited for.
pub type OnStatus = Box<dyn FnMut(&StatusChange) + Send + Sync>;

/// The options of a wait for the end of a trade.
pub struct WaitOptions {
    /// The longest wait. Default: 11 minutes, because a trade may take 10.
    pub timeout: Duration,
    /// The pause between two reads if there is no stream. Default: 1 second.
    pub poll: Duration,
    /// Receives each status of the trade, once and in order.
    pub on_status: Option<OnStatus>,
}

impl Default for WaitOptions {
    fn default() -> Self {
        // A trade has ten minutes, and the chain some time to make its result final.
        Self { timeout: Duration::from_secs(660), poll: Duration::from_secs(1), on_status: None }
    }
}

/// Reports each status of a trade once.
struct Progress {
    on_status: Option<OnStatus>,
    reported: usize,
}

impl Progress {
    fn report(&mut self, trade: &Trade) {
        if let Some(on_status) = &mut self.on_status {
            for change in trade.status_history.iter().skip(self.reported) {
                self.reported += 1;
                on_status(change);
            }
        }
    }
}

const MAX_CLIENT_REQUEST_ID: usize = 128;
/// With a stream, the trade is also read this often, in case a proxy swallows events.
const SLOW_POLL: Duration = Duration::from_secs(10);

/// The type of the events before the end of a trade.
const STATUS_CHANGED: &str = "trade.status-changed";

/// Conflicts of the name: a trade that has it is another one.
const NAME_CONFLICTS: [&str; 2] = ["IDEMPOTENCY_KEY_CONFLICT", "CLIENT_REQUEST_ID_CONFLICT"];

type Signals = BoxStream<'static, Result<Signal, Error>>;

/// Creates, confirms and reads trades.
#[derive(Clone)]
pub struct Trades {
    transport: Arc<Transport>,
}

impl Trades {
    pub(crate) const fn new(transport: Arc<Transport>) -> Self {
        Self { transport }
    }

    /// Creates a trade, exactly once. Lost answers are retried under the same name. If the outcome
    /// is still unknown at the deadline, the trade is looked up. If the name was used before, the
    /// result is the trade as it was created.
    ///
    /// # Errors
    ///
    /// If there is no trade, or if it is not known (`submission` is `unknown`): then call it again
    /// with the same name.
    pub async fn create(&self, trade: &NewTrade) -> Result<Response<Trade>, Error> {
        let mut trade = trade.clone();
        let key = match trade.idempotency_key.take().or_else(|| trade.client_request_id.clone()) {
            Some(given) => given,
            None => new_name()?,
        };
        if trade.client_request_id.is_none() && key.len() <= MAX_CLIENT_REQUEST_ID {
            trade.client_request_id = Some(key.clone());
        }
        let mut call = Call::post("/v1/trades", "trade", body_of(&trade)?);
        call.headers.push(("idempotency-key", key));
        let failure = match self.transport.send(&call).await {
            Ok(created) => return Ok(created),
            Err(failure) => failure,
        };
        let CallFailure { mut error, may_be_stored, .. } = failure;
        if !may_be_stored || NAME_CONFLICTS.contains(&error.code.as_str()) {
            return Err(error);
        }
        // If the look-up fails too, the create's error is the one that the caller can act on.
        if let Ok(Some(found)) = self.look_up(&trade).await {
            return Ok(found);
        }
        error.submission = Some(Submission::Unknown);
        Err(error)
    }

    /// Makes every check of a trade and returns what it would move. Creates nothing.
    ///
    /// # Errors
    ///
    /// If the trade would be rejected, or the service does not answer.
    pub async fn dry_run(&self, trade: &NewTrade) -> Result<Response<DryRun>, Error> {
        let mut trade = trade.clone();
        trade.dry_run = true;
        Ok(self.transport.send(&Call::post("/v1/trades", "dryRun", body_of(&trade)?)).await?)
    }

    /// Creates a trade and waits for its end: `completed`, `failed` or `rejected`. A trade that is
    /// held for its confirmation is returned at once. Follows the feed of events, or polls the trade
    /// if streams are blocked.
    ///
    /// # Errors
    ///
    /// As [`Trades::create`], and `WAIT_TIMED_OUT` if the trade does not end in time.
    pub async fn create_and_wait(&self, trade: &NewTrade) -> Result<Response<Trade>, Error> {
        self.create_and_wait_with(trade, WaitOptions::default()).await
    }

    /// Creates a trade and waits for its end, with other options. See [`Trades::create_and_wait`].
    ///
    /// # Errors
    ///
    /// As [`Trades::create_and_wait`].
    pub async fn create_and_wait_with(
        &self,
        trade: &NewTrade,
        options: WaitOptions,
    ) -> Result<Response<Trade>, Error> {
        // The stream must be open before the trade exists, so that no event is missed.
        let feed = self.open_feed(&options).await;
        let created = self.create(trade).await?;
        // A replay has the trade as it was created.
        let is_stale = created.info().is_replay && created.status != TradeStatus::PendingConfirmation;
        let current = if is_stale { self.get(&created.id).await? } else { created };
        self.wait(current, feed, options, true).await
    }

    /// Waits for the end of a trade that exists, for example after [`Trades::confirm`].
    ///
    /// # Errors
    ///
    /// If the trade cannot be read, and `WAIT_TIMED_OUT` if it does not end in time.
    pub async fn wait_for(&self, id: &str, options: WaitOptions) -> Result<Response<Trade>, Error> {
        let feed = self.open_feed(&options).await;
        let current = self.get(id).await?;
        self.wait(current, feed, options, false).await
    }

    /// Returns the feed, if its first heartbeat arrives in time.
    async fn open_feed(&self, options: &WaitOptions) -> Option<Signals> {
        let changes = options.on_status.as_ref().map(|_| STATUS_CHANGED);
        let ends = ["trade.completed", "trade.failed", "trade.rejected"];
        let types = ends.into_iter().chain(changes).map(str::to_owned).collect();
        let options = FeedOptions { types, from: FeedStart::Latest, ..FeedOptions::default() };
        let mut feed = signals(self.transport.clone(), options, true);
        let settings = &self.transport.settings;
        tokio::select! {
            first = feed.next() => matches!(first, Some(Ok(_))).then_some(feed),
            () = settings.clock.sleep(settings.stream_patience) => None,
        }
    }

    /// Follows a trade until it has ended, or returns it at once if it is held and
    /// `returns_held` is true.
    async fn wait(
        &self,
        mut current: Response<Trade>,
        mut feed: Option<Signals>,
        options: WaitOptions,
        returns_held: bool,
    ) -> Result<Response<Trade>, Error> {
        let mut progress = Progress { on_status: options.on_status, reported: 0 };
        progress.report(&current);
        if returns_held && current.status == TradeStatus::PendingConfirmation {
            return Ok(current);
        }
        let clock = &self.transport.settings.clock;
        let end = clock.now() + options.timeout;
        // True if an event has reported the end, and a read has not.
        let mut is_due = false;
        while !current.has_ended() {
            let left = end.duration_since(clock.now()).unwrap_or_default();
            if left.is_zero() {
                return Err(timed_out(&current.id));
            }
            let is_followed = feed.is_some() && !is_due;
            let pause = clock.sleep(left.min(if is_followed { SLOW_POLL } else { options.poll }));
            if let Some(signals) = &mut feed {
                tokio::select! {
                    signal = signals.next() => match signal {
                        Some(Ok(Signal::Event(item))) if item.event.data.trade_id.as_ref() == Some(&current.id) => {
                            is_due = item.event.r#type.as_str() != STATUS_CHANGED;
                        }
                        Some(Ok(_)) => continue,
                        // The stream is gone: poll.
                        Some(Err(_)) | None => feed = None,
                    },
                    () = pause => {}
                }
            } else {
                pause.await;
            }
            current = self.get(&current.id).await?;
            progress.report(&current);
        }
        Ok(current)
    }

    /// Releases a held trade with the token of its creation.
    ///
    /// # Errors
    ///
    /// If the trade is not released.
    pub async fn confirm(&self, id: &str, token: &str) -> Result<Response<Trade>, Error> {
        let body = serde_json::json!({ "token": token }).to_string();
        let call = Call::post(format!("/v1/trades/{}/confirm", segment(id)), "trade", body);
        match self.transport.send(&call).await {
            Ok(confirmed) => Ok(confirmed),
            // An earlier attempt, whose answer was lost, has confirmed the trade.
            Err(CallFailure { error, attempts, may_be_stored })
                if error.family() == ErrorFamily::Conflict
                    && error.code == "CONFIRMATION_TOKEN_USED"
                    && attempts > 1
                    && may_be_stored =>
            {
                self.get(id).await
            }
            Err(failure) => Err(failure.error),
        }
    }

    /// Reads a trade.
    ///
    /// # Errors
    ///
    /// If there is no such trade, or it cannot be read.
    pub async fn get(&self, id: &str) -> Result<Response<Trade>, Error> {
        Ok(self.transport.send(&Call::get(format!("/v1/trades/{}", segment(id)), "trade")).await?)
    }

    /// Lists trades, newest first.
    #[must_use]
    pub fn list(&self, query: &TradeQuery) -> Pages<Trade> {
        Pages::new(self.transport.clone(), "/v1/trades", query)
    }

    /// Reads the steps of a trade.
    ///
    /// # Errors
    ///
    /// If there is no such trace, or it cannot be read.
    pub async fn trace(&self, correlation_id: &str) -> Result<Response<Trace>, Error> {
        let path = format!("/v1/traces/{}", segment(correlation_id));
        Ok(self.transport.send(&Call::get(path, "trace")).await?)
    }

    /// Finds the trade of a create whose answer was lost.
    async fn look_up(&self, sent: &NewTrade) -> Result<Option<Response<Trade>>, Error> {
        let Some(name) = &sent.client_request_id else { return Ok(None) };
        let query = TradeQuery { client_request_id: Some(name.clone()), ..TradeQuery::default() };
        let mut pages = self.list(&query);
        while let Some(page) = pages.next_page().await? {
            let mut records = page.items.into_iter().zip(page.json);
            // Another trade may have had this name before.
            if let Some((trade, json)) = records.find(|(trade, _)| is_same_request(trade, sent)) {
                return Ok(Some(Response::new(trade, json, page.info)));
            }
        }
        Ok(None)
    }
}

/// Makes a name that no other trade has.
#[expect(clippy::disallowed_methods, reason = "a client has no source of names but the system's")]
fn new_name() -> Result<String, Error> {
    let mut bytes = [0; 16];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|error| Error::new("NO_RANDOMNESS", None, error.to_string()))?;
    Ok(uuid::Builder::from_random_bytes(bytes).into_uuid().to_string())
}

fn body_of(trade: &NewTrade) -> Result<String, Error> {
    serde_json::to_string(trade).map_err(|error| Error::new("INVALID_REQUEST", None, error.to_string()))
}

fn is_same_request(trade: &Trade, sent: &NewTrade) -> bool {
    trade.market_id == sent.market_id
        && trade.outcome_index == sent.outcome_index
        && trade.side == sent.side
        && trade.amount.as_deref() == sent.amount.as_ref().map(|amount| amount.as_str())
}

fn timed_out(trade_id: &str) -> Error {
    let message = format!("the trade {trade_id} has not ended yet: read it later");
    let mut error = Error::new("WAIT_TIMED_OUT", None, message);
    error.submission = Some(Submission::Submitted);
    error.extensions.insert("tradeId".to_owned(), trade_id.into());
    error
}
