//! The arguments of the tools.

use domain::ErrorCode;
use serde_json::json;

use super::{agent, pointers, refused};
use crate::scene::Scene;

#[tokio::test]
async fn unknown_arguments_are_rejected_by_every_tool() {
    let scene = Scene::new().await;
    let client = agent(&scene);
    let market = json!(scene.market.id);
    for (tool, known) in [
        ("search_markets", json!({})),
        ("get_market", json!({ "marketId": market })),
        ("quote", json!({ "marketId": market, "outcomeIndex": 0, "side": "buy", "amount": "1" })),
        ("portfolio", json!({})),
        ("list_trades", json!({})),
        ("trace", json!({ "correlationId": "4bf92f3577b34da6a3ce929d0e0e4736" })),
        (
            "create_trade",
            json!({ "marketId": market, "outcomeIndex": 0, "side": "buy", "amount": "1", "idempotencyKey": "k" }),
        ),
        ("redeem", json!({ "marketId": market, "outcomeIndex": 0 })),
    ] {
        let mut arguments = known;
        arguments["outcome"] = json!(1);
        assert_eq!(pointers(&client, tool, arguments).await, ["/outcome"], "{tool}");
    }
    assert_eq!(scene.app.rows().await.trades, 0);
}

#[tokio::test]
async fn arguments_of_the_wrong_type_are_rejected() {
    let scene = Scene::new().await;
    let client = agent(&scene);
    assert_eq!(
        pointers(&client, "search_markets", json!({ "limit": "5", "query": 1 })).await,
        ["/query", "/limit"]
    );
    assert_eq!(pointers(&client, "search_markets", json!({ "limit": 0 })).await, ["/limit"]);
    assert_eq!(pointers(&client, "get_market", json!({})).await, ["/marketId"]);
    let quote =
        json!({ "marketId": scene.market.id, "outcomeIndex": 0, "side": "hold", "amount": "1.0000001" });
    assert_eq!(pointers(&client, "quote", quote).await, ["/side", "/amount"]);
    let all = ["/marketId", "/outcomeIndex", "/side", "/amount"];
    assert_eq!(pointers(&client, "quote", json!({})).await, all);
}

#[tokio::test]
async fn a_repeated_argument_is_rejected() {
    let scene = Scene::new().await;
    let client = agent(&scene);
    let arguments = format!(
        r#"{{"marketId":"{}","outcomeIndex":0,"side":"buy","amount":"1","amount":"100","idempotencyKey":"k"}}"#,
        scene.market.id
    );
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"create_trade","arguments":{arguments}}}}}"#
    );
    let answer = client.call("POST", "/mcp").raw_json(message).await;
    assert!(answer.text.contains("must be sent only once"), "\n{answer}");
    assert_eq!(scene.app.rows().await.trades, 0);
}

#[tokio::test]
async fn a_malformed_id_leads_to_no_other_route() {
    let scene = Scene::new().await;
    let client = agent(&scene);
    for id in ["../key", "a/quote?outcomeIndex=0", "", "%2e%2e", "\u{0}x"] {
        let arguments = json!({ "marketId": id });
        let code = if id.contains('\0') { ErrorCode::ValidationFailed } else { ErrorCode::MarketNotFound };
        let code = if id.is_empty() { ErrorCode::ResourceNotFound } else { code };
        refused(&client, "get_market", arguments, code).await;
    }
}
