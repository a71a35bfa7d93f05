//! JSON Schemas of the tools, from the same descriptions as the OpenAPI document.

use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

const COMPONENTS: &str = "#/components/schemas/";
const DEFINITIONS: &str = "#/$defs/";

/// Returns the schema of `T`, with the schemas that it refers to.
pub fn of<T: ToSchema>() -> JsonObject {
    let mut parts = Vec::new();
    T::schemas(&mut parts);
    let definitions: Map<String, Value> =
        parts.into_iter().map(|(name, schema)| (name, json!(schema))).collect();
    let mut schema = json!(T::schema());
    if !definitions.is_empty() {
        schema["$defs"] = Value::Object(definitions);
    }
    move_references(&mut schema);
    match schema {
        Value::Object(schema) => schema,
        // Every tool reads and writes objects.
        _ => JsonObject::new(),
    }
}

fn move_references(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(target)) = members.get_mut("$ref") {
                *target = target.replacen(COMPONENTS, DEFINITIONS, 1);
            }
            members.values_mut().for_each(move_references);
        }
        Value::Array(items) => items.iter_mut().for_each(move_references),
        _ => {}
    }
}
