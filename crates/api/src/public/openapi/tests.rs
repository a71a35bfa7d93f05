//! Checks the document against the route table and against rules for all operations.

use std::collections::BTreeSet;

use http_kit::PublicCode;

use super::*;
use crate::public::routes;

fn operations(document: &Value) -> Vec<(&String, &Value)> {
    document["paths"].as_object().unwrap().iter().map(|(path, item)| (path, &item["get"])).collect()
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
    let served: BTreeSet<_> = routes().map(|route| route.path).collect();
    let document = parsed();
    let described: BTreeSet<_> = operations(&document).into_iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(served, described);
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."));
}

#[test]
fn every_operation_has_a_unique_id_a_description_and_a_known_tag() {
    let document = parsed();
    let tags: BTreeSet<_> =
        document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].to_string()).collect();
    let mut ids = BTreeSet::new();
    for (path, operation) in operations(&document) {
        assert!(ids.insert(operation["operationId"].to_string()), "{path}");
        for member in ["operationId", "summary", "description"] {
            assert!(
                operation[member].as_str().is_some_and(|text| !text.is_empty()),
                "{path} has no {member}"
            );
        }
        assert!(tags.contains(&operation["tags"][0].to_string()), "{path}");
    }
}

#[test]
fn the_limit_of_a_list_equals_the_table() {
    let document = parsed();
    for route in routes() {
        let parameters = document["paths"][route.path]["get"]["parameters"].as_array().unwrap().clone();
        let limit =
            parameters.iter().find(|parameter| parameter["name"] == "limit").map(|limit| &limit["schema"]);
        let found = limit.map(|limit| (limit["default"].as_u64(), limit["maximum"].as_u64()));
        let expected = route.page.map(|page| (Some(page.default.into()), Some(page.most.into())));
        assert_eq!(found, expected, "{}", route.path);
        for name in route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
            assert!(parameters.iter().any(|parameter| parameter["name"] == name), "{}", route.path);
        }
    }
}

#[test]
fn every_response_has_its_headers_and_every_code_its_status_and_an_example() {
    let document = parsed();
    for (path, operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            for name in ["X-Request-Id", "X-RateLimit-Reset", "RateLimit", "Access-Control-Allow-Origin"] {
                assert!(response["headers"].get(name).is_some(), "{path} {status} {name}");
            }
            assert!(status != "200" || response["headers"].get("ETag").is_some(), "{path}");
        }
        for name in operation["x-error-codes"].as_array().unwrap() {
            let code = PublicCode::ALL.iter().find(|code| name == code.as_str()).unwrap();
            let content = &operation["responses"][code.status().to_string()]["content"]["application/json"];
            let reference = content["examples"][code.as_str()]["$ref"].as_str().unwrap();
            let example = document.pointer(reference.trim_start_matches('#')).unwrap();
            assert_eq!(example["value"]["code"], code.as_str(), "{path}");
        }
    }
}

/// Annotations list codes as text, so a misspelled one would silently be lost.
#[test]
fn annotations_name_existing_codes_and_every_code_is_used() {
    let raw = serde_json::to_value(described()).unwrap();
    for (path, operation) in operations(&raw) {
        for code in operation["x-error-codes"].as_array().into_iter().flatten() {
            assert!(PublicCode::ALL.iter().any(|known| code == known.as_str()), "{path}: {code}");
        }
    }
    let document = parsed();
    let named: BTreeSet<_> = operations(&document)
        .into_iter()
        .flat_map(|(_, operation)| operation["x-error-codes"].as_array().unwrap().iter())
        .map(|code| code.as_str().unwrap())
        .collect();
    // This code is for requests without a matching operation.
    let without = ["METHOD_NOT_ALLOWED"];
    let all: BTreeSet<_> =
        PublicCode::ALL.iter().map(|code| code.as_str()).filter(|code| !without.contains(code)).collect();
    assert_eq!(named, all);
}

#[test]
fn every_response_has_meta_and_an_example() {
    let document = parsed();
    let mut with_example = BTreeSet::new();
    for (path, operation) in operations(&document) {
        let Some(content) = operation.pointer("/responses/200/content/application~1json") else { continue };
        if path == "/api/openapi.json" {
            continue;
        }
        let reference = content["schema"]["$ref"].as_str().unwrap();
        let schema = document.pointer(reference.trim_start_matches('#')).unwrap();
        assert!(schema["required"].as_array().unwrap().contains(&"_meta".into()), "{path}");
        assert!(content["examples"]["answer"]["value"].get("_meta").is_some(), "{path}");
        with_example.insert(operation["operationId"].as_str().unwrap());
    }
    let known: BTreeSet<_> = examples::operations().collect();
    assert_eq!(with_example, known);
}

#[test]
fn no_schema_allows_null() {
    walk(&parsed()["components"]["schemas"], &mut |value| {
        assert_ne!(value.get("type"), Some(&"null".into()), "{value}");
        let types = value.get("type").and_then(Value::as_array);
        assert!(types.is_none(), "{value}");
    });
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
