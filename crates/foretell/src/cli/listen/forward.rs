//! Posts events to a local program in the same form as webhooks.

use std::sync::Arc;
use std::time::Duration;

use domain::Clock;
use domain::webhook::{Delivery, WebhookSecret};
use reqwest::Client;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Timeout of a delivery, the same as for webhooks.
const TIMEOUT: Duration = Duration::from_secs(10);

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

    /// Posts a feed item once, and describes the result. A failed delivery is reported but not
    /// retried, because programs under development fail often.
    pub async fn post(&self, item: &str) -> String {
        let (event_id, api_version, body) = match body_of(item) {
            Ok(parts) => parts,
            Err(error) => return format!("is not an event: {error}"),
        };
        let delivery = Delivery {
            event_id: &event_id,
            api_version: &api_version,
            body: body.as_bytes(),
            secrets: &[&self.secret],
            at: self.clock.now(),
        };
        let request = self.client.post(&self.url).timeout(TIMEOUT);
        let headers = delivery.headers().into_iter();
        let request = headers.fold(request, |request, (name, value)| request.header(name, value));
        match request.body(body.clone()).send().await {
            Ok(answer) => format!("{event_id} -> {}", answer.status()),
            Err(error) => format!("{event_id} -> {error}"),
        }
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
