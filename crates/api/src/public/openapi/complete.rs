//! Adds the parts that apply to every operation, based on the route table.

use std::collections::{BTreeMap, BTreeSet};

use http_kit::{Limiter, PublicCode, Route};
use serde_json::{Map, Value, json};

use super::{examples, parts};
use crate::openapi::schema_examples;
use crate::openapi::schemas::{complete_parameter, without_null};
use crate::public::routes;

/// Headers of every response.
const EVERY_ANSWER: &[&str] = &[
    "X-Request-Id",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "RateLimit",
    "RateLimit-Policy",
    "Cache-Control",
    "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers",
];

/// Error codes of every data route.
const EVERY_ROUTE: &[PublicCode] = &[
    PublicCode::RateLimitExceeded,
    PublicCode::InternalError,
    PublicCode::DependencyUnavailable,
    PublicCode::RouteDisabled,
    PublicCode::RequestTimeout,
];
/// Error codes of document routes.
const DOCUMENT: &[PublicCode] =
    &[PublicCode::RateLimitExceeded, PublicCode::InternalError, PublicCode::RequestTimeout];

pub fn complete(document: &mut Value) {
    let mut sent: BTreeSet<PublicCode> = BTreeSet::new();
    for route in routes() {
        if let Some(operation) = document["paths"].get_mut(route.path).and_then(|path| path.get_mut("get")) {
            sent.extend(complete_operation(operation, route));
        }
    }
    document["tags"] = parts::tags();
    let components = &mut document["components"];
    components["headers"] = parts::headers();
    components["parameters"] = parts::parameters();
    components["examples"] = sent.iter().map(|code| (code.as_str().to_owned(), example(*code))).collect();
    complete_schemas(&mut components["schemas"]);
    schema_examples::complete(document);
}

/// Completes one operation, and returns the error codes it can respond with.
fn complete_operation(operation: &mut Value, route: &Route) -> BTreeSet<PublicCode> {
    let own =
        operation.as_object_mut().and_then(|operation| operation.remove("x-error-codes")).unwrap_or_default();
    operation["security"] = json!([]);
    let limit = match route.limiter {
        Limiter::PerMinute(limit) => {
            let description = operation["description"].as_str().unwrap_or_default();
            operation["description"] =
                format!("{description}\n\nAt most {limit} requests per minute from one address.").into();
            Some(limit)
        }
        Limiter::Address | Limiter::User(_) => None,
    };
    complete_parameters(operation, route);
    complete_answers(operation);
    let shared = if limit.is_some() { EVERY_ROUTE } else { DOCUMENT };
    let mut codes: BTreeSet<PublicCode> = shared.iter().copied().collect();
    let takes_parameters = operation["parameters"]
        .as_array()
        .is_some_and(|parameters| parameters.iter().any(|it| it["in"] == "query"));
    // Unknown parameters are ignored, so only routes with parameters can reject any.
    codes.extend(takes_parameters.then_some(PublicCode::InvalidRequest));
    let named = |name: &Value| PublicCode::ALL.iter().copied().find(|code| name == code.as_str());
    codes.extend(own.as_array().into_iter().flatten().filter_map(named));
    operation["x-error-codes"] = codes.iter().map(|code| code.as_str()).collect();
    add_refusals(operation, &codes);
    add_examples(operation);
    codes
}

fn complete_parameters(operation: &mut Value, route: &Route) {
    let mut parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
    parameters.iter_mut().for_each(complete_parameter);
    let shared = |name: &str| json!({ "$ref": format!("#/components/parameters/{name}") });
    if let Some(page) = route.page {
        parameters.push(parts::limit(page));
        // The trending list is a ranking with a fixed size, so it has no offset.
        if route.path != "/api/markets/trending" {
            parameters.push(shared("Offset"));
        }
    }
    parameters.push(shared("IfNoneMatch"));
    operation["parameters"] = parameters.into();
}

/// Adds the headers to annotated responses, and a 304 if there is a 200.
fn complete_answers(operation: &mut Value) {
    if operation["responses"].get("200").is_none() {
        return;
    }
    let all = || headers(EVERY_ANSWER.iter().copied().chain(["ETag"]));
    operation["responses"]["200"]["headers"] = all().into();
    operation["responses"]["304"] = json!({ "description": "The ETag in If-None-Match is current. The response has no body.", "headers": all() });
}

/// Adds one error response per status.
fn add_refusals(operation: &mut Value, codes: &BTreeSet<PublicCode>) {
    let mut by_status: BTreeMap<u16, Vec<PublicCode>> = BTreeMap::new();
    for code in codes {
        by_status.entry(code.status()).or_default().push(*code);
    }
    for (status, codes) in by_status {
        let lines = codes.iter().map(|code| format!("- `{}`: {}", code.as_str(), code.default_detail()));
        let description = format!("One of these errors:\n\n{}", lines.collect::<Vec<_>>().join("\n"));
        let reference =
            |code: &PublicCode| json!({ "$ref": format!("#/components/examples/{}", code.as_str()) });
        let examples: Map<String, Value> =
            codes.iter().map(|code| (code.as_str().to_owned(), reference(code))).collect();
        let waits = matches!(status, 429 | 503).then_some("Retry-After");
        operation["responses"][status.to_string()] = json!({
            "description": description,
            "headers": headers(EVERY_ANSWER.iter().copied().chain(waits)),
            "content": { "application/json": {
                "schema": { "$ref": "#/components/schemas/Error" }, "examples": examples,
            }},
        });
    }
}

fn add_examples(operation: &mut Value) {
    let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
    if let Some(content) = operation.pointer_mut("/responses/200/content/application~1json")
        && let Some((summary, value)) = examples::of(&id)
    {
        content["examples"] = json!({ "answer": { "summary": summary, "value": value } });
    }
}

/// Adds `_meta` to response schemas, and removes null types: unknown values are left out.
fn complete_schemas(schemas: &mut Value) {
    for (name, schema) in schemas.as_object_mut().into_iter().flatten() {
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.values_mut().for_each(without_null);
        }
        if name.ends_with("Answer") {
            schema["properties"]["_meta"] = json!({ "$ref": "#/components/schemas/Meta" });
            if let Some(required) = schema["required"].as_array_mut() {
                required.push("_meta".into());
            }
        }
    }
}

/// Returns references to shared headers.
fn headers(names: impl Iterator<Item = &'static str>) -> Map<String, Value> {
    names.map(|name| (name.to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }))).collect()
}

/// Returns the example of an error, identical to the body that a client gets.
fn example(code: PublicCode) -> Value {
    json!({ "summary": code.title(), "value": serde_json::to_value(examples::error(code).public_body()).unwrap_or_default() })
}
