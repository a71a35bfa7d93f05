//! Following the feed through every cut: the id of the last event that was passed on is kept, and asked for again.

use std::time::Duration;

use domain::event::FeedPosition;
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use super::forward::Receiver;
use super::lines::{Incoming, Sent};

/// After which silence a stream is dead: three heartbeats.
const SILENCE: Duration = Duration::from_secs(45);
/// At the most one attempt to connect in this time.
const PACE: Duration = Duration::from_secs(1);

/// A user's feed, and how far it was passed on.
#[derive(Debug)]
pub struct Feed {
    client: Client,
    url: String,
    api_key: String,
    position: Option<FeedPosition>,
    pace: Interval,
}

/// Why a stream has ended.
enum Cut {
    /// Another attempt may succeed.
    Again(String),
    /// None will.
    Never(String),
}

impl Feed {
    /// The feed of the key's user, behind the event `since`, or from now on.
    pub fn new(
        client: Client,
        base_url: &str,
        api_key: String,
        types: &str,
        since: Option<FeedPosition>,
    ) -> Self {
        let url = format!("{}/v1/events?types={types}", base_url.trim_end_matches('/'));
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { client, url, api_key, position: since, pace }
    }

    /// Passes events on, one after the other, until the service refuses for good.
    ///
    /// # Errors
    /// What the service says then.
    pub async fn follow(&mut self, receiver: &Receiver) -> Result<(), String> {
        loop {
            self.pace.tick().await;
            match self.stream(receiver).await {
                Cut::Again(why) => eprintln!("foretell: {why}; connecting again"),
                Cut::Never(why) => return Err(why),
            }
        }
    }

    /// One connection, from its beginning to its end.
    async fn stream(&mut self, receiver: &Receiver) -> Cut {
        let mut response = match self.connect().await {
            Ok(response) => response,
            Err(cut) => return cut,
        };
        let mut incoming = Incoming::default();
        loop {
            let bytes = match timeout(SILENCE, response.chunk()).await {
                Ok(Ok(Some(bytes))) => bytes,
                Ok(Ok(None)) => return Cut::Again("the stream has ended".to_owned()),
                Ok(Err(error)) => return Cut::Again(error.to_string()),
                Err(_) => return Cut::Again("the service is silent".to_owned()),
            };
            incoming.push(&bytes);
            while let Some(sent) = incoming.next() {
                self.pass_on(&sent, receiver).await;
            }
        }
    }

    async fn connect(&self) -> Result<Response, Cut> {
        let from = if self.position.is_none() { "&from=latest" } else { "" };
        let request = self.client.get(format!("{}{from}", self.url)).header("accept", "text/event-stream");
        let request = request.header("x-api-key", &self.api_key);
        let request = match self.position {
            Some(position) => request.header("last-event-id", position.to_string()),
            None => request,
        };
        let response = request.send().await.map_err(|error| Cut::Again(error.to_string()))?;
        let status = response.status();
        if status == StatusCode::OK {
            return Ok(response);
        }
        let problem: Value = response.json().await.unwrap_or_default();
        let text = |member: &str| problem[member].as_str().unwrap_or_default().to_owned();
        let why = format!("{status} {}: {}", text("code"), text("detail"));
        let may_pass = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        Err(if may_pass { Cut::Again(why) } else { Cut::Never(why) })
    }

    /// Posts an event, and only then counts it as passed on.
    async fn pass_on(&mut self, sent: &Sent, receiver: &Receiver) {
        match sent.name.as_str() {
            "heartbeat" => {}
            "closing" => eprintln!("foretell: the service closes the stream: {}", sent.data),
            name => {
                let outcome = receiver.post(&sent.data).await;
                let id = sent.id.map(|id| id.to_string()).unwrap_or_default();
                println!("{id} {name} {outcome}");
            }
        }
        self.position = sent.id.or(self.position);
    }
}
