//! Parts of OpenAPI documents that both APIs share.

pub(crate) mod answers;
pub mod formats;
pub(crate) mod schema_examples;
pub(crate) mod schemas;
mod table;

pub(crate) use table::described_table;

use serde_json::{Value, json};

/// Returns `servers`: only the server of the document.
pub fn servers() -> Value {
    json!([{ "url": "/", "description": "The service that served this document." }])
}
