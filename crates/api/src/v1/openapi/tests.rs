//! Checks the document against the router and against rules for all operations.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::Method;
use domain::ErrorCode;
use domain::key::Scope;
use http_kit::Route;
use serde_json::json;

use super::*;
use crate::v1::router::routes;

/// Returns every operation by method and path.
fn operations(document: &Value) -> BTreeMap<(String, String), Value> {
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, item)| {
        item.as_object()
            .unwrap()
            .iter()
            .map(move |(method, operation)| ((method.to_ascii_uppercase(), path.clone()), operation.clone()))
    });
    operations.collect()
}

/// Follows a `$ref` once.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let reference = value.get("$ref").and_then(Value::as_str);
    reference.map_or(value, |reference| document.pointer(reference.trim_start_matches('#')).unwrap())
}

fn walk(value: &Value, visit: &mut dyn FnMut(&Value)) {
    visit(value);
    match value {
        Value::Object(members) => members.values().for_each(|member| walk(member, visit)),
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        _ => {}
    }
}

#[test]
fn the_document_describes_exactly_the_routes_of_the_table() {
    let key = |route: &Route| (route.method.to_string(), complete::template(route));
    let served: BTreeSet<_> = routes().map(key).collect();
    let described: BTreeSet<_> = operations(&parsed()).into_keys().collect();
    assert_eq!(served, described);
}

#[test]
fn operations_agree_with_the_table_on_scope_and_pages() {
    let document = parsed();
    let operations = operations(&document);
    for route in routes() {
        let operation = &operations[&(route.method.to_string(), complete::template(route))];
        let scope = operation.get("x-required-scope").and_then(Value::as_str);
        assert_eq!(scope, route.scope.map(Scope::as_str), "{}", route.path);
        assert_eq!(
            operation["security"].as_array().unwrap().is_empty(),
            !route.asks_for_key(),
            "{}",
            route.path
        );
        let parameters: BTreeMap<_, _> = operation["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|parameter| {
                let parameter = resolved(&document, parameter);
                (parameter["name"].as_str().unwrap(), &parameter["schema"])
            })
            .collect();
        let default = parameters.get("limit").and_then(|schema| schema["default"].as_u64());
        assert_eq!(default, route.page.map(|page| page.default.into()), "{}", route.path);
        assert_eq!(parameters.contains_key("cursor"), route.page.is_some(), "{}", route.path);
        assert!(parameters.contains_key("X-Service-Api-Version"), "{}", route.path);
        assert_eq!(
            parameters.contains_key("X-Service-Signature"),
            route.method == Method::POST,
            "{}",
            route.path
        );
        let template = complete::template(route);
        let in_path: Vec<_> =
            template.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        assert!(in_path.iter().all(|name| parameters.contains_key(name)), "{}", route.path);
    }
}

#[test]
fn every_operation_has_a_unique_id_a_description_and_a_known_tag() {
    let document = parsed();
    let tags: BTreeSet<_> =
        document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].clone().to_string()).collect();
    let mut ids = BTreeSet::new();
    for (key, operation) in operations(&document) {
        assert!(ids.insert(operation["operationId"].to_string()), "{key:?}");
        for member in ["operationId", "summary", "description"] {
            assert!(
                operation[member].as_str().is_some_and(|text| !text.is_empty()),
                "{key:?} has no {member}"
            );
        }
        assert!(
            operation["tags"].as_array().unwrap().iter().all(|tag| tags.contains(&tag.to_string())),
            "{key:?}"
        );
    }
}

#[test]
fn every_code_of_an_operation_is_in_the_catalog_with_its_status_and_an_example() {
    let document = parsed();
    for (key, operation) in operations(&document) {
        for code in operation["x-error-codes"].as_array().unwrap() {
            let code: ErrorCode = code.as_str().unwrap().parse().unwrap();
            let status = code.status().to_string();
            let content = &operation["responses"][&status]["content"]["application/problem+json"];
            let example = resolved(&document, &content["examples"][code.as_str()]);
            assert_eq!(example["value"]["code"], code.as_str(), "{key:?}");
        }
    }
}

/// Annotations list codes as text, so a misspelled one would silently be lost.
#[test]
fn annotations_name_existing_codes() {
    let raw = serde_json::to_value(described()).unwrap();
    for (key, operation) in operations(&raw) {
        for code in operation["x-error-codes"].as_array().into_iter().flatten() {
            assert!(code.as_str().unwrap().parse::<ErrorCode>().is_ok(), "{key:?}: {code}");
        }
    }
}

#[test]
fn every_response_has_the_common_headers_and_reads_have_a_304() {
    let document = parsed();
    for (key, operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            for name in [
                "X-Request-Id",
                "X-Service-Api-Version",
                "X-RateLimit-Remaining",
                "RateLimit",
                "Cache-Control",
            ] {
                assert!(response["headers"].get(name).is_some(), "{key:?} {status} {name}");
            }
            let refused = status.parse::<u16>().unwrap() >= 400
                && response["content"].get("application/problem+json").is_some();
            assert_eq!(
                response["headers"].get("X-Service-Error-Code").is_some(),
                refused,
                "{key:?} {status}"
            );
        }
        let keyed_read = key.0 == "GET" && !operation["security"].as_array().unwrap().is_empty();
        assert!(!keyed_read || operation["responses"].get("304").is_some(), "{key:?}");
        assert!(!keyed_read || operation["responses"]["200"]["headers"].get("ETag").is_some(), "{key:?}");
    }
}

#[test]
fn a_route_for_any_key_requires_a_key_and_no_scope() {
    let operations = operations(&parsed());
    let key = &operations[&("GET".to_owned(), "/v1/key".to_owned())];
    assert_eq!(key["security"], serde_json::json!([{ "ApiKey": [] }]));
    let codes: Vec<_> = key["x-error-codes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(codes.contains(&"API_KEY_MISSING") && !codes.contains(&"INSUFFICIENT_SCOPE"), "{codes:?}");
}

#[test]
fn an_optional_body_is_not_required_and_never_null() {
    let document = parsed();
    let operations = operations(&document);
    let body = &operations[&("POST".to_owned(), "/v1/account/pause".to_owned())]["requestBody"];
    assert_ne!(body["required"], true);
    let schema = &body["content"]["application/json"]["schema"];
    assert_eq!(schema["$ref"], "#/components/schemas/NoBody");
    let body = &operations[&("POST".to_owned(), "/v1/trades".to_owned())]["requestBody"];
    assert_eq!(body["required"], true);
}

#[test]
fn every_json_body_has_an_example() {
    let document = parsed();
    let mut places = BTreeSet::new();
    for (key, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap().to_owned();
        let mut contents: Vec<(String, &Value)> = Vec::new();
        if let Some(body) = operation.pointer("/requestBody/content/application~1json") {
            contents.push(("request".into(), body));
        }
        for (status, response) in operation["responses"].as_object().unwrap() {
            if let Some(content) = response.pointer("/content/application~1json") {
                contents.push((status.clone(), content));
            }
        }
        for (place, content) in contents {
            // The document does not contain itself.
            let missing = content.get("examples").is_none() && id != "getOpenApi";
            assert!(!missing, "{key:?} {place} has no example");
            places.insert((id.clone(), place));
        }
    }
    let known =
        |(operation, place): &(&str, &str)| places.contains(&((*operation).to_owned(), (*place).to_owned()));
    let lost: Vec<_> = examples::places().filter(|place| !known(place)).collect();
    assert_eq!(lost, [], "examples of no body");
}

#[test]
fn the_version_header_is_one_shared_parameter_with_an_open_set_of_values() {
    let document = parsed();
    let shared = "#/components/parameters/ApiVersion";
    for (key, operation) in operations(&document) {
        let versions = |parameter: &&Value| resolved(&document, parameter)["name"] == "X-Service-Api-Version";
        let given: Vec<_> = operation["parameters"].as_array().unwrap().iter().filter(versions).collect();
        assert_eq!(given, [&json!({ "$ref": shared })], "{key:?}");
    }
    let schema = &document["components"]["parameters"]["ApiVersion"]["schema"];
    assert_eq!(*schema, json!({ "type": "string", "x-extensible-enum": [API_VERSION] }));
}

#[test]
fn requests_reject_unknown_members_and_responses_allow_them() {
    let document = parsed();
    for (key, operation) in operations(&document) {
        if let Some(content) = operation.pointer("/requestBody/content/application~1json/schema") {
            assert_eq!(resolved(&document, content)["additionalProperties"], false, "{key:?}");
        }
        for response in operation["responses"].as_object().unwrap().values() {
            for content in response["content"].as_object().into_iter().flat_map(|content| content.values()) {
                let schema = resolved(&document, &content["schema"]);
                assert_ne!(schema["additionalProperties"], false, "{key:?}");
            }
        }
    }
}

#[test]
fn every_schema_has_an_example() {
    let document = parsed();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let has_none = |schema: &Value| schema.get("example").is_none() && schema.get("examples").is_none();
    let missing: Vec<_> =
        schemas.iter().filter(|(_, schema)| has_none(schema)).map(|(name, _)| name).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_reference_resolves_and_no_schema_is_unused() {
    let document = parsed();
    let mut references = BTreeSet::new();
    walk(&document, &mut |value| {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            references.insert(reference.to_owned());
        }
    });
    for reference in &references {
        assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(references.contains(&format!("#/components/schemas/{name}")), "{name} is not used");
    }
}

#[test]
fn a_nullable_text_is_one_schema_with_two_types() {
    let trade = &parsed()["components"]["schemas"]["Trade"];
    assert_eq!(trade["properties"]["tokensOut"]["type"], serde_json::json!(["string", "null"]));
    assert_eq!(trade["properties"]["completedAt"]["format"], "date-time");
    assert!(trade["required"].as_array().unwrap().contains(&"tokensOut".into()));
    let quote = &parsed()["components"]["schemas"]["Quote"];
    assert!(!quote["required"].as_array().unwrap().contains(&"usdcIn".into()));
}

#[test]
fn the_document_is_openapi_3_1_in_the_current_version() {
    let document = parsed();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."));
    assert_eq!(document["info"]["version"], API_VERSION);
}
