//! The tools for agents.

mod arguments;
mod protocol;
mod reading;
mod trading;

use domain::ErrorCode;
use http_kit::McpSettings;
use http_testkit::{Answer, Client, Http, Keyed, RequestBuilder, ServeHttp, assert_public_schema};
use serde_json::{Value, json};
use testkit::TestApp;

use crate::scene::{Scene, text};

/// Serves the tools.
fn served(app: &TestApp, can_trade: bool) -> Http {
    app.http_with(|state| state.mcp = Some(McpSettings { can_trade, hosts: Vec::new() }))
}

/// Returns the client of a scene, which may trade with the tools.
fn agent(scene: &Scene) -> Client<Keyed> {
    served(&scene.app, true).with(&scene.key)
}

/// Builds a message of the protocol.
fn message(client: &Client<Keyed>, method: &str, params: Value) -> RequestBuilder {
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    client.call("POST", "/mcp").raw_json(message.to_string())
}

fn call(client: &Client<Keyed>, tool: &str, arguments: Value) -> RequestBuilder {
    message(client, "tools/call", json!({ "name": tool, "arguments": arguments }))
}

/// Returns the result of a message.
fn result(answer: &Answer) -> Value {
    let mut body = answer.expect(200);
    assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &json!(7)), "\n{answer}");
    assert!(body.get("error").is_none(), "\n{answer}");
    body["result"].take()
}

async fn tools(client: &Client<Keyed>) -> Vec<Value> {
    result(&message(client, "tools/list", json!({})).await)["tools"].as_array().unwrap().clone()
}

async fn names(client: &Client<Keyed>) -> Vec<String> {
    tools(client).await.iter().map(|tool| text(&tool["name"]).to_owned()).collect()
}

/// Returns the answer of a tool, after comparing it with the tool's schema.
async fn answered(client: &Client<Keyed>, tool: &str, arguments: Value) -> Value {
    let answer = call(client, tool, arguments).await;
    let mut result = result(&answer);
    assert_eq!(result["isError"], false, "\n{answer}");
    let structured = result["structuredContent"].take();
    let shown: Value = serde_json::from_str(text(&result["content"][0]["text"])).unwrap();
    assert_eq!(shown, structured, "\n{answer}");
    let tools = tools(client).await;
    let described = tools.iter().find(|it| it["name"] == tool).unwrap();
    assert_public_schema(&format!("mcp {tool}"), &described["outputSchema"], &structured);
    structured
}

/// Returns the error of a tool.
async fn refused(client: &Client<Keyed>, tool: &str, arguments: Value, code: ErrorCode) -> Value {
    let answer = call(client, tool, arguments).await;
    let result = result(&answer);
    assert_eq!(result["isError"], true, "\n{answer}");
    assert!(result.get("structuredContent").is_none(), "\n{answer}");
    let error: Value = serde_json::from_str(text(&result["content"][0]["text"])).unwrap();
    assert_eq!(error["code"], code.as_str(), "\n{answer}");
    assert_eq!(error["status"], code.status(), "\n{answer}");
    assert_eq!(error["requestId"].as_str(), answer.header("x-request-id"), "\n{answer}");
    for member in ["title", "detail", "canBeRepeated", "whatToDo"] {
        assert!(error[member].as_str().is_some_and(|text| !text.is_empty()), "no {member} in\n{answer}");
    }
    error
}

/// Returns the pointers of a tool's validation error.
async fn pointers(client: &Client<Keyed>, tool: &str, arguments: Value) -> Vec<String> {
    let error = refused(client, tool, arguments, ErrorCode::ValidationFailed).await;
    let errors = error["extensions"]["errors"].as_array().unwrap();
    errors.iter().map(|error| text(&error["pointer"]).to_owned()).collect()
}

/// Returns the answer of a tool, without another message for its schema.
async fn answered_without_schema(client: &Client<Keyed>, tool: &str, arguments: Value) -> Value {
    let answer = call(client, tool, arguments).await;
    let mut result = result(&answer);
    assert_eq!(result["isError"], false, "\n{answer}");
    result["structuredContent"].take()
}
