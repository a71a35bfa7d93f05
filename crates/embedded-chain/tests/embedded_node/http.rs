//! Tests of JSON-RPC request bodies and the limits of callers.

use std::time::Duration;

use embedded_chain::Access;
use serde_json::{Value, json};

use crate::support::World;

fn post(world: &World, body: &str) -> Value {
    post_as(world, body, &TEST_ACCESS)
}

fn post_as(world: &World, body: &str, access: &Access) -> Value {
    serde_json::from_slice(&world.node.handle_http(body.as_bytes(), access)).unwrap()
}

const TEST_ACCESS: Access = Access { test_methods: true, ..Access::OPERATOR };

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
fn only_notifications_get_no_answer() {
    let world = World::in_memory();
    let notification = r#"{"jsonrpc":"2.0","method":"foretell_mine"}"#;
    assert!(world.node.handle_http(notification.as_bytes(), &TEST_ACCESS).is_empty());
    assert!(world.node.handle_http(format!("[{notification}]").as_bytes(), &TEST_ACCESS).is_empty());
    assert_eq!(world.head(), 2);
}

#[test]
fn invalid_requests_get_the_standard_error_codes() {
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

/// Builds a call to code that runs until its gas is used up.
fn endless_call(id: u32) -> Value {
    let at = "0x00000000000000000000000000000000000000e0";
    json!({
        "jsonrpc": "2.0", "id": id, "method": "eth_call",
        "params": [{ "to": at }, "latest", { at: { "code": "0x5b5f56" } }]
    })
}

#[test]
fn test_methods_exist_only_for_permitted_callers() {
    let world = World::in_memory();
    for method in ["evm_mine", "foretell_mine", "anvil_mine", "hardhat_mine"] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method }).to_string();
        for access in [Access::PUBLIC, Access::OPERATOR] {
            assert_eq!(post_as(&world, &body, &access)["error"]["code"], json!(-32601), "{method}");
        }
    }
    assert_eq!(world.head(), 0);
}

#[test]
fn a_call_stops_at_the_callers_gas_limit() {
    let world = World::in_memory();
    // GAS PUSH0 MSTORE PUSH1 32 PUSH0 RETURN: returns the gas that the call received.
    let mut call = endless_call(1);
    call["params"][2]["0x00000000000000000000000000000000000000e0"]["code"] = json!("0x5a5f5260205ff3");
    let gas = |access| {
        let answer = post_as(&world, &call.to_string(), &access);
        u64::from_str_radix(answer["result"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
    };
    assert!(gas(Access::PUBLIC) < Access::PUBLIC.call_gas);
    assert!(gas(Access::OPERATOR) > Access::PUBLIC.call_gas);
}

#[test]
fn a_batch_is_cut_off_at_its_time_or_length_limit() {
    let world = World::in_memory();
    let batch = json!([endless_call(1), endless_call(2)]).to_string();
    let in_time = Access { batch_time: Duration::ZERO, ..Access::PUBLIC };
    let short = Access { batch_bytes: 1, ..Access::PUBLIC };
    let codes = |access| {
        let answers = post_as(&world, &batch, &access);
        [0, 1].map(|n| answers[n]["error"]["code"].as_i64().unwrap())
    };
    assert_eq!(codes(Access::OPERATOR), [-32000, -32000], "out of gas");
    assert_eq!(codes(in_time), [-32005, -32005]);
    assert_eq!(codes(short), [-32000, -32005]);
}
