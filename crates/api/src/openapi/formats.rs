//! Schemas of string formats that records store as plain strings. A field refers to one with
//! `#[schema(value_type = ..)]`.

use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// An address on the chain, in lower-case hex.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, pattern = "^0x[0-9a-f]{40}$", examples("0x5fbdb2315678afecb367f032d93f642f64180aa3"))]
pub struct Address(pub String);

/// The hash of a transaction on the chain, in lower-case hex.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, pattern = "^0x[0-9a-f]{64}$", examples("0x8f1c2d3e4f5061728394a5b6c7d8e9f00112233445566778899aabbccddeeff0"))]
pub struct TxHash(pub String);

/// An instant in a query.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, pattern = "^([0-9]{1,14}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2}))$", examples("2026-04-29T12:00:00Z"))]
pub struct Instant(pub String);

/// An amount in whole units with at most 6 decimals. Responses repeat it as it was sent.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, pattern = "^(0|[1-9][0-9]{0,11})(\\.[0-9]{1,6})?$", examples("25.00"))]
pub struct DecimalAmount(pub String);

/// The client's id of a trade.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9_.:-]+$", examples("rebalance-2026-04-29:1"))]
pub struct ClientRequestId(pub String);

/// A new text for each operation, preferably a random UUID. The same key and trade return the first
/// answer for 24 hours; the same key with another trade is rejected.
#[derive(Debug, ToSchema)]
#[schema(as = IdempotencyKey, value_type = String, pattern = "^([A-Za-z0-9_.:-]{1,255}|\"[A-Za-z0-9_.:-]{1,255}\")$", examples("5f0c9a52-6b1e-4f3c-9f5e-0d9a3c1b2e4f"))]
pub struct IdempotencyKeyText(pub String);

/// Strings of the client's own that are stored with a trade.
#[derive(Debug)]
pub enum Metadata {}

impl PartialSchema for Metadata {
    fn schema() -> RefOr<Schema> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let value = AdditionalProperties::RefOr(RefOr::T(Schema::from(text().max_length(Some(500)))));
        let key = Schema::from(text().pattern(Some("^[A-Za-z0-9_.-]{1,64}$")));
        let object = ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some("Up to 50 strings of your own, returned with the trade and with its events."))
            .max_properties(Some(50))
            .property_names(Some(key))
            .additional_properties(Some(value));
        RefOr::T(Schema::Object(object.build()))
    }
}

impl ToSchema for Metadata {}
