//! OpenAPI links: values in a response that are parameters of another operation.

use serde_json::{Value, json};

/// A link from a value in a response to a parameter of another operation.
struct Link {
    operation: &'static str,
    status: &'static str,
    /// JSON pointer to the value in the response body.
    pointer: &'static str,
    target: &'static str,
    parameter: &'static str,
}

/// Builds the list from entries of the form `operation status pointer => target parameter;`.
macro_rules! links {
    ($($operation:ident $status:literal $pointer:literal => $target:ident $parameter:ident;)*) => {
        &[$(Link {
            operation: stringify!($operation),
            status: $status,
            pointer: $pointer,
            target: stringify!($target),
            parameter: stringify!($parameter),
        },)*]
    };
}

static LINKS: &[Link] = links! {
    listMarkets "200" "/data/0/id" => getMarket id;
    listMarkets "200" "/data/0/id" => getQuote id;
    listMarkets "200" "/data/0/id" => listPredictions id;
    listMarkets "200" "/data/0/id" => getMarketHistory id;
    listMarkets "200" "/pagination/cursor" => listMarkets cursor;
    listPredictions "200" "/pagination/cursor" => listPredictions cursor;
    createTrade "201" "/trade/id" => getTrade id;
    createTrade "201" "/trade/correlationId" => getTrace correlationId;
    createTrade "202" "/trade/id" => confirmTrade id;
    createTrade "202" "/trade/id" => getTrade id;
    createTrades "200" "/data/0/body/trade/id" => getTrade id;
    listEvents "200" "/data/0/data/tradeId" => getTrade id;
    listEvents "200" "/pagination/cursor" => listEvents cursor;
    listTrades "200" "/data/0/id" => getTrade id;
    listTrades "200" "/data/0/correlationId" => getTrace correlationId;
    listTrades "200" "/pagination/cursor" => listTrades cursor;
    createRedemption "201" "/redemption/id" => getRedemption id;
    createRedemption "200" "/redemption/id" => getRedemption id;
    listRedemptions "200" "/data/0/id" => getRedemption id;
    listRedemptions "200" "/pagination/cursor" => listRedemptions cursor;
    listPositions "200" "/data/0/marketId" => getMarket id;
};

/// Adds the links to their responses. The link of a held trade to its confirmation also passes the
/// token.
pub fn complete(paths: &mut Value) {
    let items = paths.as_object_mut().into_iter().flat_map(|paths| paths.values_mut());
    for operation in items.filter_map(Value::as_object_mut).flat_map(|item| item.values_mut()) {
        let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
        for link in LINKS.iter().filter(|link| link.operation == id) {
            if let Some(response) = operation["responses"].get_mut(link.status) {
                response["links"][link.target] = written(link);
            }
        }
    }
}

fn written(link: &Link) -> Value {
    let Link { pointer, target, parameter, .. } = link;
    let mut written = json!({
        "operationId": target,
        "description": format!("{pointer} of the response is the {parameter}."),
        "parameters": { *parameter: format!("$response.body#{pointer}") },
    });
    if *target == "confirmTrade" {
        // A string: generators reject any other value, although the specification allows it.
        written["requestBody"] = r#"{"token": "{$response.body#/trade/confirmation/token}"}"#.into();
    }
    written
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::v1::openapi::parsed;

    /// Returns every operation by its id.
    fn operations(document: &Value) -> BTreeMap<String, &Value> {
        let items = document["paths"].as_object().unwrap().values();
        let operations = items.flat_map(|item| item.as_object().unwrap().values());
        operations
            .map(|operation| (operation["operationId"].as_str().unwrap().to_owned(), operation))
            .collect()
    }

    #[test]
    fn a_link_connects_a_value_of_every_example_with_a_parameter() {
        let document = parsed();
        let operations = operations(&document);
        for Link { operation, status, pointer, target, parameter } in LINKS {
            let response = &operations[*operation]["responses"][status];
            assert_eq!(response["links"][target]["operationId"], **target, "{operation} {status}");
            let examples = response["content"]["application/json"]["examples"].as_object().unwrap();
            for (name, example) in examples {
                assert!(example["value"].pointer(pointer).is_some(), "{operation} {status} {name} {pointer}");
            }
            let named = |given: &Value| {
                given["name"] == **parameter || given["$ref"] == "#/components/parameters/Cursor"
            };
            let parameters = operations[*target]["parameters"].as_array().unwrap();
            assert!(parameters.iter().any(named), "{target} {parameter}");
        }
    }

    #[test]
    fn the_body_of_a_confirmation_is_a_string_that_contains_the_expression_of_the_token() {
        let document = parsed();
        let response = &operations(&document)["createTrade"]["responses"]["202"];
        let text = response["links"]["confirmTrade"]["requestBody"].as_str().unwrap();
        let (before, rest) = text.split_once("{$response.body#").unwrap();
        let (pointer, after) = rest.split_once('}').unwrap();
        let token = response.pointer(&format!("/content/application~1json/examples/held/value{pointer}"));
        let body = format!("{before}{}{after}", token.unwrap().as_str().unwrap());
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body, json!({ "token": token }));
    }
}
