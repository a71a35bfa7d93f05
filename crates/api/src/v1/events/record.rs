//! A feed event: the body that webhooks receive, with its sequence number and key.

use domain::Timestamp;
use domain::event::{EventKind, feed_body};
use domain::ids::{EventId, KeyId};
use serde::Serialize;
use serde_json::value::RawValue;
use store::events::FeedEvent;
use utoipa::ToSchema;

use http_kit::Problem;

/// An event of the user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
#[serde(rename_all = "camelCase")]
pub struct EventRecord {
    /// The sequence number: 1 for the user's first event, without gaps. It is below 2^53.
    sequence: u64,
    /// The key that caused the event. Null if no key did.
    api_key_id: Option<KeyId>,
    /// The id of the event, the same in every delivery.
    id: EventId,
    r#type: EventKind,
    /// The API version of the body.
    api_version: String,
    /// The time at which the event happened.
    created_at: Timestamp,
    /// The data of the event, which depends on its type.
    #[schema(value_type = Object)]
    data: serde_json::Value,
}

/// Returns the event as JSON. Its body is copied byte for byte, so that it is identical to the body
/// that webhooks receive.
pub fn item(event: &FeedEvent) -> Result<Box<RawValue>, Problem> {
    let text = feed_body(event.seq, event.key_id, &event.body);
    RawValue::from_string(text).map_err(|error| {
        let cause = format!("the body of the event {} is not JSON: {error}", event.id);
        app::AppError::internal(cause).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;
    use http_kit::Surface;
    use uuid::Uuid;

    fn event(body: &str) -> FeedEvent {
        let id = EventId(Uuid::from_u128(7));
        FeedEvent {
            seq: 12,
            id,
            kind: EventKind::Test,
            key_id: Some(KeyId(Uuid::nil())),
            body: body.to_owned(),
        }
    }

    #[test]
    fn a_stored_body_is_sent_unchanged_after_its_sequence_and_key() {
        let item = item(&event(r#"{"id":"7","data":{"b":1.50,"a":"x"}}"#)).unwrap();
        let nil = Uuid::nil();
        let expected =
            format!(r#"{{"sequence":12,"apiKeyId":"{nil}","id":"7","data":{{"b":1.50,"a":"x"}}}}"#);
        assert_eq!(item.get(), expected);
    }

    #[test]
    fn a_stored_body_that_is_not_json_is_an_internal_error() {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        assert_eq!(item(&event("{")).unwrap_err().status(Surface::Trading), status);
        assert_eq!(item(&event("hello")).unwrap_err().status(Surface::Trading), status);
    }
}
