//! Follows the event feed across disconnects: it remembers the id of the last forwarded event and
//! resumes from there.

use std::time::Duration;

use domain::event::FeedPosition;
use reqwest::{Client, Response, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use super::forward::LocalReceiver;
use super::lines::{Incoming, SseEvent};

/// Silence after which a stream is considered dead: three heartbeats.
const SILENCE: Duration = Duration::from_secs(45);
/// Minimum time between two connection attempts.
const PACE: Duration = Duration::from_secs(1);

/// A user's feed, with the position of the last forwarded event.
#[derive(Debug)]
pub struct Feed {
    client: Client,
    url: String,
    api_key: SecretString,
    position: Option<FeedPosition>,
    pace: Interval,
}

/// The reason why a stream ended.
enum Cut {
    /// Another attempt may succeed.
    Again(String),
    /// Every further attempt would fail too.
    Never(String),
}

impl Feed {
    /// Creates the feed of the key's user, starting after the event `since`, or from now on.
    pub fn new(
        client: Client,
        base_url: &str,
        api_key: SecretString,
        types: &str,
        since: Option<FeedPosition>,
    ) -> Self {
        let url = format!("{}/v1/events?types={types}", base_url.trim_end_matches('/'));
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { client, url, api_key, position: since, pace }
    }

    /// Forwards events one after the other, and reconnects after temporary failures.
    ///
    /// # Errors
    ///
    /// The service's error message, if it permanently rejects the connection.
    pub async fn follow(&mut self, receiver: &LocalReceiver) -> Result<(), String> {
        loop {
            self.pace.tick().await;
            match self.stream(receiver).await {
                Cut::Again(why) => eprintln!("foretell: {why}: reconnecting"),
                Cut::Never(why) => return Err(why),
            }
        }
    }

    /// Reads one connection until it ends.
    async fn stream(&mut self, receiver: &LocalReceiver) -> Cut {
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
                Err(_) => return Cut::Again("the service sent nothing for too long".to_owned()),
            };
            incoming.push(&bytes);
            while let Some(sent) = incoming.next() {
                self.pass_on(&sent, receiver).await;
            }
        }
    }

    async fn connect(&self) -> Result<Response, Cut> {
        // Without a position, forward only new events.
        let from = if self.position.is_none() { "&from=latest" } else { "" };
        let request = self.client.get(format!("{}{from}", self.url)).header("accept", "text/event-stream");
        let request = request.header("x-api-key", self.api_key.expose_secret());
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
        // Other errors, e.g. a wrong key, would repeat forever.
        let may_pass = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        Err(if may_pass { Cut::Again(why) } else { Cut::Never(why) })
    }

    /// Posts an event, and only then advances the position.
    async fn pass_on(&mut self, sent: &SseEvent, receiver: &LocalReceiver) {
        match sent.name.as_str() {
            "heartbeat" => {}
            "closing" => eprintln!("foretell: the service closed the stream: {}", sent.data),
            name => {
                let outcome = receiver.post(&sent.data).await;
                let id = sent.id.map(|id| id.to_string()).unwrap_or_default();
                println!("{id} {name} {outcome}");
            }
        }
        self.position = sent.id.or(self.position);
    }
}
