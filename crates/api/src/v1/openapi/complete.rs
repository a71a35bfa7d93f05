//! Adds the parts that apply to every operation, based on the route table.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::Method;
use domain::ErrorCode;
use http_kit::{Problem, RequestId, Route};
use protocol::Documented;
use serde_json::{Map, Value, json};

use super::{codes, examples, links, parts};
use crate::openapi::{schema_examples, schemas};
use crate::v1::router::routes;

/// Base URL of the error pages in examples.
const DOCS_URL: &str = "https://foretell.example/docs";
/// Headers of every response.
const EVERY_ANSWER: &[&str] = &[
    "X-Request-Id",
    "X-Service-Api-Version",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "RateLimit",
    "RateLimit-Policy",
    "Cache-Control",
];

/// Returns the route's path in OpenAPI syntax, which has no wildcard over several segments.
pub fn template(route: &Route) -> String {
    route.path.replace("{*", "{")
}

pub fn complete(document: &mut Value) {
    let mut sent: BTreeMap<&str, ErrorCode> = BTreeMap::new();
    for route in routes() {
        let method = route.method.as_str().to_ascii_lowercase();
        let path = template(route);
        if let Some(operation) = document["paths"].get_mut(&path).and_then(|path| path.get_mut(&method)) {
            // Only codes that are used get an example component.
            sent.extend(complete_operation(operation, route));
        }
    }
    links::complete(&mut document["paths"]);
    document["tags"] = parts::tags(&used_tags(document));
    let components = &mut document["components"];
    components["securitySchemes"] = parts::security_schemes();
    components["headers"] = parts::headers();
    components["parameters"] = parts::parameters();
    components["examples"] = sent.values().map(|code| (code.to_string(), example(*code))).collect();
    components["schemas"]["Problem"] = parts::problem();
    schemas::complete(&mut components["schemas"]);
    schema_examples::complete(document);
}

/// Returns the tags that operations use.
fn used_tags(document: &Value) -> BTreeSet<String> {
    let items = document["paths"].as_object().into_iter().flat_map(Map::values);
    let operations = items.filter_map(Value::as_object).flat_map(Map::values);
    let tags = operations.filter_map(|operation| operation["tags"].as_array()).flatten();
    tags.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Completes one operation, and returns the error codes it can respond with.
fn complete_operation(operation: &mut Value, route: &Route) -> BTreeMap<&'static str, ErrorCode> {
    // Responses with changing contents have no tag.
    let changes_each_time = take(operation, "x-volatile").is_some();
    let own_codes = take(operation, "x-error-codes").unwrap_or_default();
    let has_body = operation.get("requestBody").is_some();
    let scope = route.scope.map(|scope| scope.as_str());
    operation["security"] = if route.asks_for_key() { json!([{ "ApiKey": [] }]) } else { json!([]) };
    if let Some(scope) = scope {
        operation["x-required-scope"] = scope.into();
        let description = operation["description"].as_str().unwrap_or_default();
        operation["description"] = format!("{description}\n\nThe key must have the scope `{scope}`.").into();
    }
    // Optional bodies are derived as nullable, but clients omit them instead of sending null.
    operation.pointer_mut("/requestBody/content/application~1json/schema").map(schemas::without_null);
    let conditional = route.method == Method::GET && !changes_each_time;
    complete_parameters(operation, route, conditional);
    complete_answers(operation, conditional);
    let mut all: BTreeMap<&'static str, ErrorCode> =
        codes::of_kind(route, has_body).map(|code| (code.as_str(), code)).collect();
    let own = own_codes.as_array().into_iter().flatten().filter_map(Value::as_str);
    all.extend(own.filter_map(|code| code.parse().ok()).map(|code: ErrorCode| (code.as_str(), code)));
    operation["x-error-codes"] = all.keys().copied().collect();
    add_refusals(operation, route, all.values().copied());
    add_examples(operation);
    all
}

fn complete_parameters(operation: &mut Value, route: &Route, conditional: bool) {
    let mut parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
    parameters.iter_mut().for_each(schemas::complete_parameter);
    let shared = |name: &str| json!({ "$ref": format!("#/components/parameters/{name}") });
    if let Some(page) = route.page {
        parameters.extend([parts::limit(page), shared("Cursor")]);
    }
    if conditional {
        parameters.push(shared("IfNoneMatch"));
    }
    if route.is_write() {
        parameters.push(shared("Signature"));
    }
    parameters.push(shared("ApiVersion"));
    operation["parameters"] = parameters.into();
}

/// Adds the headers to annotated responses, and a 304 if the operation is conditional.
fn complete_answers(operation: &mut Value, conditional: bool) {
    let Some(responses) = operation["responses"].as_object_mut() else { return };
    for (status, response) in responses.iter_mut() {
        let etag = (conditional && status == "200").then_some("ETag");
        let headers = headers(EVERY_ANSWER.iter().copied().chain(etag));
        match response.get_mut("headers").and_then(Value::as_object_mut) {
            Some(own) => own.extend(headers),
            None => response["headers"] = headers.into(),
        }
    }
    if conditional {
        let headers = headers(EVERY_ANSWER.iter().copied().chain(["ETag"]));
        let unchanged = json!({ "description": "The ETag in If-None-Match is current. The response has no body.", "headers": headers });
        responses.insert("304".to_owned(), unchanged);
    }
}

/// Adds one error response per status.
fn add_refusals(operation: &mut Value, route: &Route, codes: impl Iterator<Item = ErrorCode>) {
    let mut by_status: BTreeMap<u16, Vec<ErrorCode>> = BTreeMap::new();
    for code in codes {
        by_status.entry(code.status()).or_default().push(code);
    }
    for (status, codes) in by_status {
        let lines = codes.iter().map(|code| format!("- `{code}`: {}", code.default_detail()));
        let mut description = format!("One of these errors:\n\n{}", lines.collect::<Vec<_>>().join("\n"));
        if route.is_write() {
            description.push_str("\n\n`extensions.submission` reports if anything was stored or sent.");
        }
        let reference = |code: &ErrorCode| json!({ "$ref": format!("#/components/examples/{code}") });
        let examples: Map<String, Value> =
            codes.iter().map(|code| (code.to_string(), reference(code))).collect();
        let content = json!({ "schema": { "$ref": "#/components/schemas/Problem" }, "examples": examples });
        let special = match status {
            401 => Some("WWW-Authenticate"),
            429 | 503 => Some("Retry-After"),
            _ => None,
        };
        let names = EVERY_ANSWER.iter().copied().chain(["X-Service-Error-Code"]).chain(special);
        let response = json!({
            "description": description,
            "headers": headers(names),
            "content": { "application/problem+json": content },
        });
        operation["responses"][status.to_string()] = response;
    }
}

/// Adds the examples of requests and responses.
fn add_examples(operation: &mut Value) {
    let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
    if let Some(content) = operation.pointer_mut("/requestBody/content/application~1json") {
        add_to(content, &id, "request");
    }
    let Some(responses) = operation["responses"].as_object_mut() else { return };
    for (status, response) in responses {
        if let Some(content) = response.pointer_mut("/content/application~1json") {
            add_to(content, &id, status);
        }
    }
}

fn add_to(content: &mut Value, operation: &str, place: &str) {
    let found: Map<String, Value> = examples::of(operation, place)
        .map(|(name, summary, value)| (name.to_owned(), json!({ "summary": summary, "value": value })))
        .collect();
    if !found.is_empty() {
        content["examples"] = found.into();
    }
}

/// Returns references to shared headers.
fn headers(names: impl Iterator<Item = &'static str>) -> Map<String, Value> {
    names.map(|name| (name.to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }))).collect()
}

/// Returns the example of an error, identical to the body that a client gets.
fn example(code: ErrorCode) -> Value {
    let problem = Problem::sample(code);
    let instance = if code.guide().extensions.contains("submission") { "/v1/trades" } else { "/v1/markets" };
    let body = problem.body(DOCS_URL, instance, RequestId::EXAMPLE);
    json!({ "summary": code.title(), "value": serde_json::to_value(body).unwrap_or_default() })
}

fn take(operation: &mut Value, name: &str) -> Option<Value> {
    operation.as_object_mut()?.remove(name)
}
