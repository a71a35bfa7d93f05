//! Posts events to a local program in the same form as webhooks.

use std::sync::Arc;
use std::time::Duration;

use domain::Clock;
use domain::webhook::{Delivery, WebhookSecret};
use reqwest::{Client, Response};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::interval;

/// Timeout of a delivery, the same as for webhooks.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two attempts to connect to the program.
const PACE: Duration = Duration::from_secs(1);

/// The local program that receives events.
pub struct LocalReceiver {
    client: Client,
    url: String,
    secret: WebhookSecret,
    clock: Arc<dyn Clock>,
}

/// The body of a delivery, extracted from a feed item. The order of the members is the order in
/// webhooks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    id: String,
    r#type: String,
    api_version: String,
    created_at: String,
    data: Box<RawValue>,
}

impl LocalReceiver {
    pub fn new(client: Client, url: String, secret: WebhookSecret, clock: Arc<dyn Clock>) -> Self {
        Self { client, url, secret, clock }
    }

    /// Posts a feed item, and describes the result. Waits for a program that does not run. Other
    /// failures are reported but not retried, because programs under development fail often.
    pub async fn post(&self, item: &str) -> String {
        let (event_id, api_version, body) = match body_of(item) {
            Ok(parts) => parts,
            Err(error) => return format!("is not an event: {error}"),
        };
        let mut pace = interval(PACE);
        let mut is_waiting = false;
        loop {
            pace.tick().await;
            match self.send(&event_id, &api_version, &body).await {
                Ok(answer) => return format!("{event_id} -> {}", answer.status()),
                Err(error) if error.is_connect() => {
                    if !is_waiting {
                        eprintln!("foretell: {error}: waiting for the receiver");
                    }
                    is_waiting = true;
                }
                Err(error) => return format!("{event_id} -> {error}"),
            }
        }
    }

    async fn send(&self, event_id: &str, api_version: &str, body: &str) -> reqwest::Result<Response> {
        let delivery = Delivery {
            event_id,
            api_version,
            body: body.as_bytes(),
            secrets: &[&self.secret],
            at: self.clock.now(),
        };
        let request = self.client.post(&self.url).timeout(TIMEOUT);
        let headers = delivery.headers().into_iter();
        let request = headers.fold(request, |request, (name, value)| request.header(name, value));
        request.body(body.to_owned()).send().await
    }
}

/// Returns an event's id, its API version, and the body that a webhook receives.
fn body_of(item: &str) -> serde_json::Result<(String, String, String)> {
    let envelope: Envelope = serde_json::from_str(item)?;
    // The members of `data` stay untouched, because it is raw JSON.
    let body = serde_json::to_string(&envelope)?;
    Ok((envelope.id, envelope.api_version, body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Timestamp;
    use domain::event::{EventKind, TestData, body};
    use domain::ids::{EventId, KeyId};
    use uuid::Uuid;

    #[test]
    fn the_posted_body_equals_that_of_a_webhook_to_the_byte() {
        let id = EventId::of_test(Uuid::from_u128(7));
        let data = TestData { test: true, api_key_id: KeyId(Uuid::nil()) };
        let posted = body(id, EventKind::Test, Timestamp::from_ms(1_777_464_000_123), &data).unwrap();
        let item = posted.replacen('{', "{\"sequence\":12,\"apiKeyId\":null,", 1);
        let (event_id, version, again) = body_of(&item).unwrap();
        assert_eq!((event_id, version.as_str()), (id.to_string(), "2026-04-29"));
        assert_eq!(again, posted);
    }

    #[test]
    fn only_events_are_posted() {
        for item in ["", "{}", "[1]"] {
            assert!(body_of(item).is_err(), "{item}");
        }
    }
}
