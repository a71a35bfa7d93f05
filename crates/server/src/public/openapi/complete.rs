//! What holds for every operation, added from the table of routes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{examples, parts};
use crate::openapi::schemas::{complete_parameter, without_null};
use crate::public::{Code, Limiter, PublicRoute, Refusal, routes};

/// The headers of every answer.
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

/// What any route with data can refuse with.
const EVERY_ROUTE: &[Code] = &[
    Code::RateLimitExceeded,
    Code::InternalError,
    Code::DependencyUnavailable,
    Code::RouteDisabled,
    Code::RequestTimeout,
];
/// What a document can be refused with.
const DOCUMENT: &[Code] = &[Code::RateLimitExceeded, Code::InternalError, Code::RequestTimeout];

/// Completes `document`.
pub fn complete(document: &mut Value) {
    let mut sent: BTreeSet<Code> = BTreeSet::new();
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
}

/// Completes one operation, and says which codes it can answer with.
fn complete_operation(operation: &mut Value, route: &PublicRoute) -> BTreeSet<Code> {
    let own =
        operation.as_object_mut().and_then(|operation| operation.remove("x-error-codes")).unwrap_or_default();
    operation["security"] = json!([]);
    let limit = match route.limiter {
        Limiter::PerMinute(limit) => {
            let description = operation["description"].as_str().unwrap_or_default();
            operation["description"] =
                format!("{description}\n\nAt most {limit} requests a minute from one address.").into();
            Some(limit)
        }
        Limiter::Address => None,
    };
    complete_parameters(operation, route);
    complete_answers(operation);
    let shared = if limit.is_some() { EVERY_ROUTE } else { DOCUMENT };
    let mut codes: BTreeSet<Code> = shared.iter().copied().collect();
    let takes_parameters = operation["parameters"]
        .as_array()
        .is_some_and(|parameters| parameters.iter().any(|it| it["in"] == "query"));
    codes.extend(takes_parameters.then_some(Code::InvalidRequest));
    let named = |name: &Value| Code::ALL.iter().copied().find(|code| name == code.as_str());
    codes.extend(own.as_array().into_iter().flatten().filter_map(named));
    operation["x-error-codes"] = codes.iter().map(|code| code.as_str()).collect();
    add_refusals(operation, &codes);
    add_examples(operation);
    codes
}

fn complete_parameters(operation: &mut Value, route: &PublicRoute) {
    let mut parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
    parameters.iter_mut().for_each(complete_parameter);
    let shared = |name: &str| json!({ "$ref": format!("#/components/parameters/{name}") });
    if let Some(page) = route.page {
        parameters.push(parts::limit(page));
        // The best of all is no list that one walks.
        if route.path != "/api/markets/trending" {
            parameters.push(shared("Offset"));
        }
    }
    parameters.push(shared("IfNoneMatch"));
    operation["parameters"] = parameters.into();
}

/// The headers of the annotated answers, and 304 where there is a 200.
fn complete_answers(operation: &mut Value) {
    if operation["responses"].get("200").is_none() {
        return;
    }
    let all = || headers(EVERY_ANSWER.iter().copied().chain(["ETag"]));
    operation["responses"]["200"]["headers"] = all().into();
    operation["responses"]["304"] =
        json!({ "description": "What If-None-Match names still holds. No body.", "headers": all() });
}

/// The refusals, a response for each status.
fn add_refusals(operation: &mut Value, codes: &BTreeSet<Code>) {
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in codes {
        by_status.entry(code.status()).or_default().push(*code);
    }
    for (status, codes) in by_status {
        let lines = codes.iter().map(|code| format!("- `{}`: {}", code.as_str(), code.message()));
        let description = format!("Refused:\n\n{}", lines.collect::<Vec<_>>().join("\n"));
        let reference = |code: &Code| json!({ "$ref": format!("#/components/examples/{}", code.as_str()) });
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

/// Answers have their `_meta`; what is not known is left out, so nothing is ever null.
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

/// References to shared headers.
fn headers(names: impl Iterator<Item = &'static str>) -> Map<String, Value> {
    names.map(|name| (name.to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }))).collect()
}

/// The example of a refusal: the body that a client gets.
fn example(code: Code) -> Value {
    json!({ "summary": code.title(), "value": serde_json::to_value(Refusal::sample(code).body()).unwrap_or_default() })
}
