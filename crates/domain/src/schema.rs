//! OpenAPI schemas of the domain's values. They are in this crate because they must match the
//! serialization.

use std::borrow::Cow;

use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::schema::{Array, KnownFormat, Object, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::candle::Interval;
use crate::event::EventKind;
use crate::ids::{
    CorrelationId, EventId, KeyId, MarketId, OrganizationId, PartnerId, RedemptionId, ThreadId, TradeId,
    UserId,
};
use crate::key::{Scope, Scopes, Tier};
use crate::market::MarketStatus;
use crate::redemption::RedemptionStatus;
use crate::thread::ThreadStatus;
use crate::trade::{AmountType, Side, Status, TraceStage};
use crate::webhook::DeliveryStatus;
use crate::{Cents, Timestamp, Usdc, UsdcDelta, Wad};

/// Takes one `type => name, schema;` per value.
macro_rules! schemas {
    ($($type:ty => $name:literal, $schema:expr;)*) => {$(
        impl PartialSchema for $type {
            fn schema() -> RefOr<Schema> {
                RefOr::from(Schema::from($schema))
            }
        }

        impl ToSchema for $type {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }
        }
    )*};
}

schemas! {
    Usdc => "UsdcAtomic", digits("An amount of USDC in atomic units (millionths), as decimal digits.", "^(0|[1-9][0-9]*)$", "25000000");
    UsdcDelta => "UsdcAtomicDelta", digits("A gain or, if negative, a loss of USDC in atomic units (millionths), as decimal digits.", "^(0|-?[1-9][0-9]*)$", "-1500000");
    Wad => "Wad", digits("A quantity with 18 decimals (1 is 1000000000000000000), as decimal digits.", "^(0|[1-9][0-9]*)$", "48902203193255351000");
    Cents => "UsdCents", ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0))
        .description(Some("Whole US cents, rounded down."));
    Timestamp => "Timestamp", format("An instant, ISO 8601 in UTC with milliseconds.", SchemaFormat::KnownFormat(KnownFormat::DateTime), "2026-04-29T12:00:00.123Z");
    UserId => "UserId", uuid("A user's id.");
    KeyId => "ApiKeyId", uuid("The id of an API key. It is not secret.");
    TradeId => "TradeId", uuid("A trade's id.");
    MarketId => "MarketId", uuid("A market's id.");
    ThreadId => "ThreadId", uuid("A thread's id.");
    OrganizationId => "OrganizationId", uuid("An organization's id.");
    PartnerId => "PartnerId", uuid("A partner's id.");
    EventId => "EventId", uuid("The id of an event. Repeated deliveries of an event have the same id.");
    RedemptionId => "RedemptionId", uuid("The id of a claim.");
    EventKind => "EventType", open("The type of an event.", EventKind::ALL.iter().map(|kind| kind.as_str()));
    CorrelationId => "CorrelationId", text("The id that links a trade to its trace. It is also a W3C trace id.").pattern(Some("^[0-9a-f]{32}$"))
        .examples(["4bf92f3577b34da6a3ce929d0e0e4736"]);
    Side => "Side", closed("buy exchanges USDC for tokens, sell exchanges tokens for USDC.", &["buy", "sell"]);
    AmountType => "AmountType", closed("The unit of amount: whole USDC, whole tokens, or all tokens that are held (without amount).", &["usdc", "tokens", "all"]);
    MarketStatus => "MarketStatus", open("OPEN is tradeable. FROZEN is paused or awaits its result. RESOLVED and CANCELLED are final.", MarketStatus::ALL.iter().map(|s| s.as_str()));
    Status => "TradeStatus", open("The status of a trade. completed, failed and rejected are final.", Status::ALL.iter().map(|s| s.as_str()));
    RedemptionStatus => "RedemptionStatus", open("The status of a claim. completed: paid, and final on chain. failed: the claim pays nothing.", RedemptionStatus::ALL.iter().map(|s| s.as_str()));
    ThreadStatus => "ThreadStatus", open("The status of a thread: upcoming before its start, active until its end, closed from its end on.", ThreadStatus::ALL.iter().map(|s| s.as_str()));
    Interval => "Interval", closed("The length of a candle: minutes, hours or a day, aligned to UTC.", &Interval::ALL.map(Interval::as_str));
    DeliveryStatus => "WebhookStatus", open("The delivery status of an event. delivered: acknowledged. failed: given up. none: not sent, because the key had no URL.", DeliveryStatus::ALL.iter().map(|s| s.as_str()));
    TraceStage => "TraceStage", open("The stage of a trade that an event belongs to.", TraceStage::ALL.iter().map(|s| s.as_str()));
    Tier => "Tier", open("The tier of a key, which sets its default limits.", ["free", "developer", "enterprise", "mm"]);
    Scope => "Scope", scope();
    Scopes => "Scopes", Array::new(scope());
}

fn text(description: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).description(Some(description))
}

fn digits(description: &str, pattern: &str, example: &str) -> Object {
    text(description).pattern(Some(pattern)).examples([example]).build()
}

fn format(description: &str, format: SchemaFormat, example: &str) -> Object {
    text(description).format(Some(format)).examples([example]).build()
}

fn uuid(description: &str) -> Object {
    format(description, SchemaFormat::Custom("uuid".to_owned()), "0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f80")
}

/// A fixed set of values. Used for values that requests contain too.
fn closed(description: &str, words: &[&str]) -> Object {
    text(description).enum_values(Some(words.iter().copied())).build()
}

/// A set of values that may grow. It is not an `enum`, because generated clients would reject
/// unknown values.
fn open(description: &str, words: impl IntoIterator<Item = &'static str>) -> Object {
    let words: Vec<_> = words.into_iter().collect();
    let description = format!("{description} Known values: {}. Others may be added.", words.join(", "));
    let extensions = ExtensionsBuilder::new().add("x-extensible-enum", words).build();
    text(&description).extensions(Some(extensions)).build()
}

fn scope() -> Object {
    open("A permission of a key.", Scope::ALL.iter().map(|scope| scope.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensible_enums_are_strings_that_list_the_known_values() {
        let RefOr::T(schema) = Status::schema() else { panic!("not inline") };
        let schema = serde_json::to_value(schema).unwrap();
        assert!(schema.get("enum").is_none());
        assert_eq!(schema["x-extensible-enum"].as_array().map(Vec::len), Some(Status::ALL.len()));
        assert!(schema["description"].as_str().is_some_and(|text| text.contains("pending_confirmation")));
    }

    #[test]
    fn closed_enums_list_exactly_the_serialized_values() {
        for (schema, words) in [
            (
                Side::schema(),
                [Side::Buy, Side::Sell].map(|side| serde_json::to_value(side).unwrap()).to_vec(),
            ),
            (
                AmountType::schema(),
                [AmountType::Usdc, AmountType::Tokens, AmountType::All]
                    .map(|kind| serde_json::to_value(kind).unwrap())
                    .to_vec(),
            ),
            (
                Interval::schema(),
                Interval::ALL.map(|interval| serde_json::to_value(interval).unwrap()).to_vec(),
            ),
        ] {
            let schema = serde_json::to_value(schema).unwrap();
            assert_eq!(schema["enum"].as_array(), Some(&words));
        }
    }
}
