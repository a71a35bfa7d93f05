//! An event of the feed: the body that is posted to webhooks, with its number and its key.

use domain::ErrorCode;
use domain::Timestamp;
use domain::event::EventKind;
use domain::ids::{EventId, KeyId};
use serde::Serialize;
use serde_json::value::RawValue;
use store::events::Event;
use utoipa::ToSchema;

use crate::http::Problem;

/// Something that happened to the user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
#[serde(rename_all = "camelCase")]
pub struct EventRecord {
    /// Its number: 1 for the user's first event, and so on without a gap. It stays below 2^53, so that it is a number.
    sequence: u64,
    /// The key whose doing it comes from; null where it comes from no key.
    api_key_id: Option<KeyId>,
    /// Its id: the same in every delivery of it.
    id: EventId,
    r#type: EventKind,
    /// The version of the API that the body is written in.
    api_version: String,
    /// When it happened.
    created_at: Timestamp,
    /// What it tells, by its type.
    #[schema(value_type = Object)]
    data: serde_json::Value,
}

/// The event as it is sent. Its body is passed on byte for byte, so that it is the one that a webhook receives.
pub fn item(event: &Event) -> Result<Box<RawValue>, Problem> {
    let Event { seq, key_id, body, .. } = event;
    let key = key_id.map_or("null".to_owned(), |id| format!("\"{id}\""));
    let members = body.strip_prefix('{').unwrap_or_default();
    let text = format!("{{\"sequence\":{seq},\"apiKeyId\":{key},{members}");
    RawValue::from_string(text).map_err(|error| {
        let cause = format!("the body of the event {} is no JSON: {error}", event.id);
        app::AppError::new(ErrorCode::InternalError).caused_by(cause).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;
    use uuid::Uuid;

    fn event(body: &str) -> Event {
        let id = EventId(Uuid::from_u128(7));
        Event { seq: 12, id, kind: EventKind::Test, key_id: Some(KeyId(Uuid::nil())), body: body.to_owned() }
    }

    #[test]
    fn a_body_is_passed_on_as_it_is_behind_its_number_and_its_key() {
        let item = item(&event(r#"{"id":"7","data":{"b":1.50,"a":"x"}}"#)).unwrap();
        let nil = Uuid::nil();
        let expected =
            format!(r#"{{"sequence":12,"apiKeyId":"{nil}","id":"7","data":{{"b":1.50,"a":"x"}}}}"#);
        assert_eq!(item.get(), expected);
    }

    #[test]
    fn a_body_that_is_no_json_is_the_services_own_trouble() {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        assert_eq!(item(&event("{")).unwrap_err().status(), status);
        assert_eq!(item(&event("hello")).unwrap_err().status(), status);
    }
}
