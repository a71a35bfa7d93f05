//! Checks every response in a test against the OpenAPI document: status, error code, headers and
//! body.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use axum::http::{HeaderMap, Method};
use jsonschema::Validator;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::Answer;

/// The document of an API. Its schemas are closed: a member that no schema names fails a test,
/// although clients must ignore unknown members.
struct Contract {
    document: Value,
    components: Value,
}

static TRADING: LazyLock<Contract> = LazyLock::new(|| Contract::of(api::v1::openapi::parsed()));
static PUBLIC: LazyLock<Contract> = LazyLock::new(|| Contract::of(api::public::openapi::parsed()));

impl Contract {
    fn of(document: Value) -> Self {
        let mut components = json!({ "schemas": document["components"]["schemas"] });
        close(&mut components);
        Self { document, components }
    }

    /// Returns the document of the API that the path belongs to.
    fn at(path: &str) -> &'static Self {
        if path.starts_with("/api/") { &PUBLIC } else { &TRADING }
    }
}

static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

/// Checks the response to `method path`, if the document describes that operation.
///
/// # Panics
/// If the response does not match the document.
pub fn check(method: &Method, path: &str, answer: &Answer) {
    let contract = Contract::at(path);
    let Some((template, operation)) = operation(method, path) else { return };
    let status = answer.status.as_str();
    let Some(response) = operation["responses"].get(status) else {
        panic!("{method} {template} has no {status} in the OpenAPI document:\n{answer}")
    };
    check_headers(contract, &format!("{method} {template} {status}"), response, &answer.headers);
    if let Some(code) = code_of(path, answer) {
        let codes = operation["x-error-codes"].as_array();
        let known = codes.is_some_and(|codes| codes.contains(&code));
        assert!(known, "{method} {template} does not describe its {code}:\n{answer}");
    }
    let kind = answer.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if matches!(kind, "application/json" | "application/problem+json") && !answer.text.is_empty() {
        let schema = &response["content"][kind]["schema"];
        assert!(!schema.is_null(), "{method} {template} {status} describes no {kind}:\n{answer}");
        assert_valid(contract, &format!("{method} {template} {status} {kind}"), schema, &answer.json());
    }
}

/// Returns the code of an error response. The trading API has it in a header, the public API only
/// in the body.
fn code_of(path: &str, answer: &Answer) -> Option<Value> {
    if path.starts_with("/api/") && answer.status.as_u16() >= 400 && !answer.text.is_empty() {
        return Some(answer.json()["code"].take());
    }
    let code = answer.headers.get("x-service-error-code")?;
    Some(json!(code.to_str().unwrap_or_default()))
}

/// Checks that documented headers are present and valid, and that the API's own headers are
/// documented.
fn check_headers(contract: &Contract, place: &str, response: &Value, headers: &HeaderMap) {
    let described: HashMap<_, _> = response["headers"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, header)| (name.to_ascii_lowercase(), resolved(contract, header)))
        .collect();
    for (name, header) in &described {
        match headers.get(name) {
            Some(value) => {
                let value = value.to_str().unwrap_or_default();
                let is_integer = header["schema"]["type"] == "integer";
                let value =
                    if is_integer { serde_json::from_str(value).unwrap_or_default() } else { json!(value) };
                assert_valid(contract, &format!("{place} {name}"), &header["schema"], &value);
            }
            None => assert!(header["required"] != true, "{place} lacks its {name}: {headers:?}"),
        }
    }
    for name in headers.keys().map(|name| name.as_str()) {
        let own = name.starts_with("x-s") || name.starts_with("x-r") || name.starts_with("idempotent");
        assert!(!own || described.contains_key(name), "{place} describes no {name}: {headers:?}");
    }
}

/// Resolves a `$ref` within the document.
fn resolved<'a>(contract: &'a Contract, value: &'a Value) -> &'a Value {
    let reference = value.get("$ref").and_then(Value::as_str);
    let found = reference.and_then(|reference| contract.document.pointer(reference.trim_start_matches('#')));
    found.unwrap_or(value)
}

/// Asserts that a value matches a schema of the public API's document.
pub fn assert_public_schema(place: &str, schema: &Value, value: &Value) {
    assert_valid(&PUBLIC, place, schema, value);
}

/// Asserts that a value matches the schema at `place`.
fn assert_valid(contract: &Contract, place: &str, schema: &Value, value: &Value) {
    let validator = Arc::clone(VALIDATORS.lock().entry(place.to_owned()).or_insert_with(|| {
        let mut schema = schema.clone();
        schema["components"] = contract.components.clone();
        let options = jsonschema::options().should_validate_formats(true);
        Arc::new(options.build(&schema).unwrap_or_else(|error| panic!("{place}: {error}")))
    }));
    let errors: Vec<_> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(
        errors.is_empty(),
        "{place} is not as the OpenAPI document says:\n{}\n{value:#}",
        errors.join("\n")
    );
}

/// Returns the documented operation for `method path`.
fn operation(method: &Method, path: &str) -> Option<(&'static str, &'static Value)> {
    let matches = |template: &str| {
        let (mut expected, mut given) = (template.split('/'), path.split('/'));
        let all = expected
            .by_ref()
            .zip(given.by_ref())
            .all(|(part, given)| part == given || (part.starts_with('{') && !given.is_empty()));
        all && template.matches('/').count() == path.matches('/').count()
    };
    // A path without parameters takes precedence over one with parameters.
    let trading = api::v1::router::routes().filter(|route| route.method == *method).map(|route| route.path);
    let public = api::public::routes().filter(|_| *method == Method::GET).map(|route| route.path);
    let templates = trading.chain(public).filter(|template| matches(template));
    let template = templates.min_by_key(|template| template.contains('{'))?;
    let paths = &Contract::at(path).document["paths"];
    Some((template, paths.get(template)?.get(method.as_str().to_ascii_lowercase())?))
}

fn close(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            let is_schema = members.get("type").is_some_and(|kind| kind == "object")
                && members.contains_key("properties");
            if is_schema && !members.contains_key("additionalProperties") {
                members.insert("additionalProperties".to_owned(), false.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn is_valid(schema: &'static str, value: &Value) -> bool {
        let reference = json!({ "$ref": format!("#/components/schemas/{schema}") });
        catch_unwind(|| assert_valid(&TRADING, schema, &reference, value)).is_ok()
    }

    #[test]
    fn unknown_and_invalid_members_are_detected() {
        let good = json!({ "cursor": null, "hasMore": false, "limit": 20 });
        assert!(is_valid("Pagination", &good));
        for (member, value) in
            [("total", json!(5)), ("limit", json!("20")), ("limit", json!(null)), ("hasMore", json!(null))]
        {
            let mut bad = good.clone();
            bad[member] = value;
            assert!(!is_valid("Pagination", &bad), "{bad}");
        }
        assert!(!is_valid("Pagination", &json!({ "hasMore": false, "limit": 20 })));
        assert!(!is_valid("Timestamp", &json!("yesterday")) && !is_valid("UsdcAtomic", &json!("1.5")));
    }

    #[test]
    fn a_documented_header_must_be_present_and_valid() {
        let response = json!({ "headers": {
            "X-RateLimit-Limit": { "$ref": "#/components/headers/X-RateLimit-Limit" },
            "Retry-After": { "$ref": "#/components/headers/Retry-After" },
        }});
        let holds = |headers: &[(&'static str, &'static str)]| {
            let line = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            let headers = headers.iter().map(line).collect();
            catch_unwind(|| check_headers(&TRADING, "headers", &response, &headers)).is_ok()
        };
        assert!(holds(&[("x-ratelimit-limit", "300")]));
        assert!(holds(&[("x-ratelimit-limit", "300"), ("retry-after", "1")]));
        assert!(!holds(&[("retry-after", "1")]), "it lacks what is promised");
        assert!(!holds(&[("x-ratelimit-limit", "many")]) && !holds(&[("x-ratelimit-limit", "-1")]));
        assert!(!holds(&[("x-ratelimit-limit", "300"), ("x-service-other", "1")]), "it is not described");
    }

    #[test]
    fn an_answer_is_checked_against_the_operation_of_its_path() {
        let of = |path: &str| operation(&Method::GET, path).map(|(template, _)| template);
        assert_eq!(of("/v1/portfolio/positions"), Some("/v1/portfolio/positions"));
        assert_eq!(of("/v1/markets/7/quote"), Some("/v1/markets/{id}/quote"));
        assert_eq!(of("/v1/trades/x"), Some("/v1/trades/{id}"));
        assert_eq!(of("/api/markets/trending"), Some("/api/markets/trending"));
        assert_eq!(of("/api/markets/x"), Some("/api/markets/{id}"));
        for path in ["/v1/trades/", "/v1//trades", "/v1/nothing", "/docs/nothing"] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
