use serde_json::{Value, json};

use crate::support::World;

fn post(world: &World, body: &str) -> Value {
    serde_json::from_slice(&world.node.handle_http(body.as_bytes())).unwrap()
}

#[test]
fn a_request_is_answered_with_its_id() {
    let world = World::in_memory();
    let answer = post(&world, r#" {"jsonrpc":"2.0","id":"a\u0062","method":"eth_chainId"} "#);
    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": "ab", "result": "0x7a69" }));
    let answer = post(&world, r#"{"jsonrpc":"2.0","id":null,"method":"eth_chainId","params":[]}"#);
    assert_eq!(answer["result"], json!("0x7a69"));
}

#[test]
fn a_batch_is_answered_in_its_order_without_its_notifications() {
    let world = World::in_memory();
    let batch = r#"[
        {"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]},
        {"jsonrpc":"2.0","method":"foretell_mine","params":[]},
        {"jsonrpc":"2.0","id":2,"method":"eth_blockNumber","params":[]},
        7
    ]"#;
    let answer = post(&world, batch);
    assert_eq!(answer[0], json!({ "jsonrpc": "2.0", "id": 1, "result": "0x0" }));
    assert_eq!(answer[1], json!({ "jsonrpc": "2.0", "id": 2, "result": "0x1" }));
    assert_eq!(answer[2]["error"]["code"], json!(-32600));
    assert_eq!(answer.as_array().unwrap().len(), 3);
}

#[test]
fn notifications_alone_are_answered_with_nothing() {
    let world = World::in_memory();
    let notification = r#"{"jsonrpc":"2.0","method":"foretell_mine"}"#;
    assert!(world.node.handle_http(notification.as_bytes()).is_empty());
    assert!(world.node.handle_http(format!("[{notification}]").as_bytes()).is_empty());
    assert_eq!(world.head(), 2);
}

#[test]
fn what_is_no_request_gets_the_codes_of_the_standard() {
    let world = World::in_memory();
    let many = format!("[{}]", vec!["{}"; 101].join(","));
    let cases = [
        ("{", -32700),
        ("", -32700),
        ("[1,", -32700),
        ("[]", -32600),
        (many.as_str(), -32600),
        ("1", -32600),
        (r#"{"id":1,"method":"eth_chainId"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"eth_chainId"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"eth_chainId"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_mine"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":{}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":[]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x12"]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["soon"]}"#, -32602),
    ];
    for (body, code) in cases {
        let answer = post(&world, body);
        assert_eq!(answer["error"]["code"], json!(code), "{body}: {answer}");
        assert!(answer.get("result").is_none());
    }
}

#[test]
fn an_error_carries_the_revert_data() {
    let world = World::in_memory();
    let contract = world.deploy();
    let call = json!({
        "jsonrpc": "2.0", "id": 5, "method": "eth_call", "params": [{ "to": contract, "data": "0x0000" }, "latest"]
    });
    let answer = post(&world, &call.to_string());
    assert_eq!(answer["error"]["code"], json!(3));
    assert!(answer["error"]["data"].as_str().unwrap().starts_with("0x08c379a0"));
}

#[tokio::test]
async fn the_asynchronous_form_answers_the_same() {
    let world = World::in_memory();
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#,
        "[]",
        r#"[{"jsonrpc":"2.0","id":1,"method":"x"}]"#,
    ] {
        assert_eq!(world.node.call_http(body.as_bytes()).await, world.node.handle_http(body.as_bytes()));
    }
}
