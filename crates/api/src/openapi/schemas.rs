//! Adjusts the derived schemas.

use serde_json::{Map, Value, json};

const COMPONENT: &str = "#/components/schemas/";

/// Adjusts every schema of the document:
///
/// - In responses, a nullable member is always present, and a member that may be absent is never
///   null. Nullable members are therefore required.
/// - Requests omit members instead of setting them to null, so null is not allowed.
/// - A nullable string or number is one schema with two types, not a choice between two schemas.
pub fn complete(schemas: &mut Value) {
    // A copy, because schemas are looked up while they are modified.
    let known = schemas.clone();
    let Some(schemas) = schemas.as_object_mut() else { return };
    for schema in schemas.values_mut() {
        // Only request bodies reject unknown members.
        let is_request = schema["additionalProperties"] == Value::Bool(false);
        if is_request {
            if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
                properties.values_mut().for_each(without_null);
            }
        } else {
            require_nullable(schema);
        }
        inline_nullable(schema, &known);
    }
}

/// Adjusts the schema of a query or header parameter: it cannot be null, and a list of words
/// becomes an enum. The example of an optional parameter moves to its description, because
/// interactive references would send it, and an unintended filter would match nothing.
pub fn complete_parameter(parameter: &mut Value) {
    if let Some(schema) = parameter.get_mut("schema") {
        without_null(schema);
        words_as_enum(schema);
    }
    let is_optional = parameter["required"] != Value::Bool(true);
    let Some(object) = parameter.as_object_mut().filter(|_| is_optional) else { return };
    let Some(example) = object.remove("example") else { return };
    let example = match &example {
        Value::String(text) => text.clone(),
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    };
    let description = object.get("description").and_then(Value::as_str).unwrap_or_default();
    if object.get("schema").is_some_and(|schema| schema.get("enum").is_none()) {
        let described = format!("{description} For example: `{example}`.");
        object.insert("description".to_owned(), described.trim_start().into());
    }
}

/// Replaces a pattern of words, e.g. `^(asc|desc)$`, with an enum.
fn words_as_enum(schema: &mut Value) {
    let pattern = schema.get("pattern").and_then(Value::as_str).unwrap_or_default();
    let Some(words) = pattern.strip_prefix("^(").and_then(|rest| rest.strip_suffix(")$")) else { return };
    let words: Vec<&str> = words.split('|').collect();
    let is_word =
        |word: &&str| word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    if words.iter().all(is_word) {
        let words: Vec<Value> = words.into_iter().map(Into::into).collect();
        schema["enum"] = words.into();
        schema.as_object_mut().and_then(|schema| schema.remove("pattern"));
    }
}

/// Removes null from the allowed types of `schema`.
pub fn without_null(schema: &mut Value) {
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            schema["type"] = only.clone();
        }
    }
    if let Some(reference) = nullable_reference(schema) {
        *schema = reference.clone();
    }
}

fn require_nullable(schema: &mut Value) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|given| given == name));
    let names: Vec<String> = properties
        .iter()
        .filter(|(name, property)| is_required(name) || is_nullable(property))
        .map(|(name, _)| name.clone())
        .collect();
    if !names.is_empty() {
        schema["required"] = names.into();
    }
}

fn is_nullable(schema: &Value) -> bool {
    let types = schema.get("type").and_then(Value::as_array);
    types.is_some_and(|types| types.iter().any(|kind| kind == "null")) || nullable_reference(schema).is_some()
}

/// Returns the reference, with its description, if the schema is a choice between null and one
/// named schema.
fn nullable_reference(schema: &Value) -> Option<&Value> {
    let [one, other] = schema.get("oneOf")?.as_array()?.as_slice() else { return None };
    let null = json!({ "type": "null" });
    let reference = if *one == null { other } else { one };
    (reference.get("$ref").is_some() && (*one == null || *other == null)).then_some(reference)
}

/// Replaces a choice between null and a named string or number with one schema of two types.
fn inline_nullable(schema: &mut Value, known: &Value) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    for property in properties.values_mut() {
        let Some(reference) = nullable_reference(property) else { continue };
        let named = reference["$ref"].as_str().and_then(|path| known.get(path.strip_prefix(COMPONENT)?));
        let Some(scalar) = named.and_then(Value::as_object).filter(|named| is_open_scalar(named)) else {
            continue;
        };
        let mut inlined = scalar.clone();
        inlined.insert("type".to_owned(), json!([scalar["type"], "null"]));
        if let Some(description) = reference.get("description") {
            inlined.insert("description".to_owned(), description.clone());
        }
        *property = Value::Object(inlined);
    }
}

/// Returns whether a schema is a string or number without `enum`. An enum would have to list null
/// too.
fn is_open_scalar(schema: &Map<String, Value>) -> bool {
    schema.get("type").is_some_and(Value::is_string)
        && !["properties", "items", "enum"].iter().any(|member| schema.contains_key(*member))
        && schema["type"] != "object"
}
