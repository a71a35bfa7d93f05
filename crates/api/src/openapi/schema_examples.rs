//! Examples of schemas, taken from the examples of requests and responses.
//!
//! References and generators show a schema without the body that it is part of. Its example is
//! the part of a body's example that the schema describes, so that no value is written twice.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

const SCHEMA: &str = "#/components/schemas/";
const EXAMPLE: &str = "#/components/examples/";

/// Adds an example to every schema that has none.
pub fn complete(document: &mut Value) {
    let mut found = Found { components: &document["components"], examples: BTreeMap::new() };
    for body in bodies(&document["paths"]) {
        for example in body["examples"].as_object().into_iter().flat_map(Map::values) {
            found.collect(&body["schema"], found.value_of(example));
        }
    }
    let mut examples = found.of_schemas();
    let schemas = document["components"]["schemas"].as_object_mut().into_iter().flatten();
    for (name, schema) in schemas.filter(|(_, schema)| own_example(schema).is_none()) {
        if let Some(example) = examples.remove(name.as_str()) {
            schema["examples"] = json!([example]);
        }
    }
}

/// Returns the example that the schema itself has.
fn own_example(schema: &Value) -> Option<&Value> {
    schema.get("example").or_else(|| schema.get("examples")?.get(0))
}

/// Returns the contents of all requests and responses.
fn bodies(paths: &Value) -> impl Iterator<Item = &Value> {
    let items = paths.as_object().into_iter().flat_map(Map::values);
    let operations = items.filter_map(Value::as_object).flat_map(Map::values);
    let holders = operations.flat_map(|operation| {
        let responses = operation["responses"].as_object().into_iter().flat_map(Map::values);
        operation.get("requestBody").into_iter().chain(responses)
    });
    holders.flat_map(|holder| holder["content"].as_object().into_iter().flat_map(Map::values))
}

/// The first example of each schema.
struct Found<'a> {
    components: &'a Value,
    examples: BTreeMap<String, Value>,
}

impl<'a> Found<'a> {
    /// Returns the value of an example of a body.
    fn value_of(&self, example: &'a Value) -> &'a Value {
        let name = example.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix(EXAMPLE));
        &name.map_or(example, |name| &self.components["examples"][name])["value"]
    }

    /// Returns the name and the schema of a reference.
    fn referred(&self, schema: &Value) -> Option<(&'a str, &'a Value)> {
        let name = schema.get("$ref")?.as_str()?.strip_prefix(SCHEMA)?;
        let (name, schema) = self.components["schemas"].as_object()?.get_key_value(name)?;
        Some((name, schema))
    }

    /// Stores the parts of `value` for the schemas that describe them.
    fn collect(&mut self, schema: &Value, value: &Value) {
        if value.is_null() {
            return;
        }
        if let Some((name, schema)) = self.referred(schema) {
            self.examples.entry(name.to_owned()).or_insert_with(|| value.clone());
            return self.collect(schema, value);
        }
        for choice in choices(schema) {
            if self.fits(choice, value) {
                self.collect(choice, value);
            }
        }
        let properties = &schema["properties"];
        for (name, member) in value.as_object().into_iter().flatten() {
            if let Some(schema) = properties.get(name).or_else(|| schema.get("additionalProperties")) {
                self.collect(schema, member);
            }
        }
        for item in value.as_array().into_iter().flatten() {
            self.collect(&schema["items"], item);
        }
    }

    /// Returns whether `value` can be the value of one choice among several.
    fn fits(&self, choice: &Value, value: &Value) -> bool {
        let schema = self.referred(choice).map_or(choice, |(_, schema)| schema);
        let is_object = schema.get("properties").is_some() || schema["type"] == "object";
        let mut required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        schema["type"] != "null"
            && is_object == value.is_object()
            && required.all(|name| value.get(name).is_some())
    }

    /// Returns the examples of all schemas. One that no body reached has its own example, its first word,
    /// or the example of its first choice.
    fn of_schemas(mut self) -> BTreeMap<String, Value> {
        let schemas = self.components["schemas"].as_object().into_iter().flatten();
        for (_, schema) in schemas.clone() {
            if let Some(example) = own_example(schema) {
                self.collect(schema, example);
            }
        }
        for (name, schema) in schemas {
            let words = schema.get("enum").or_else(|| schema.get("x-extensible-enum"));
            let choice = choices(schema).next().and_then(|choice| self.referred(choice));
            let chosen =
                choice.and_then(|(name, schema)| own_example(schema).or_else(|| self.examples.get(name)));
            if let Some(example) = words.and_then(|words| words.get(0)).or(chosen).cloned() {
                self.examples.entry(name.clone()).or_insert(example);
            }
        }
        self.examples
    }
}

/// Returns the schemas of which a value has one or all.
fn choices(schema: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|word| schema.get(word)?.as_array());
    lists.flatten()
}
