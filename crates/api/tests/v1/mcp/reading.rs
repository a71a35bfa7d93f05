//! The tools that read.

use domain::ErrorCode;
use domain::key::Tier;
use serde_json::json;
use testkit::TestApp;

use super::{agent, answered, refused, served};
use crate::scene::{Scene, text};

#[tokio::test]
async fn markets_are_found_by_their_question_and_page_by_page() {
    let scene = Scene::new().await;
    let other = scene.app.market(&["Ada", "Bob", "Eve"]).await;
    let client = agent(&scene);
    let first = answered(&client, "search_markets", json!({ "limit": 1, "status": "OPEN" })).await;
    assert_eq!(first["markets"][0]["marketId"], json!(other.id));
    assert_eq!(first["markets"][0]["outcomes"].as_array().unwrap().len(), 3);
    let cursor = text(&first["nextCursor"]);
    let second =
        answered(&client, "search_markets", json!({ "limit": 1, "status": "OPEN", "cursor": cursor })).await;
    assert_eq!(second["markets"][0]["marketId"], json!(scene.market.id));
    assert_eq!(second["nextCursor"], json!(null));
    let none = answered(&client, "search_markets", json!({ "query": "nothing like it" })).await;
    assert_eq!(none["markets"], json!([]));
    let market = answered(&client, "get_market", json!({ "marketId": scene.market.id })).await;
    assert_eq!(market["question"], second["markets"][0]["question"]);
}

#[tokio::test]
async fn a_quote_is_that_of_the_trading_api_in_decimals() {
    let scene = Scene::new().await;
    let client = agent(&scene);
    let quote = |side: &str, amount: &str| json!({ "marketId": scene.market.id, "outcomeIndex": 0, "side": side, "amount": amount });
    let buy = answered(&client, "quote", quote("buy", "25.5")).await;
    let of_api = &scene.client.quote(scene.market, 0, "buy", "25500000").await.ok()["quote"];
    assert_eq!(buy["usdc"], json!({ "amount": "25.5", "unit": "USDC" }));
    let digits = text(&buy["tokens"]["amount"]).replace('.', "");
    assert_eq!(digits.trim_start_matches('0'), text(&of_api["tokensOut"]).trim_end_matches('0'));
    assert_eq!(buy["tokens"]["unit"], "outcome tokens");
    assert_eq!(buy["effectivePrice"], of_api["effectivePrice"]);
    let missing =
        json!({ "marketId": scene.app.ctx.uuid(), "outcomeIndex": 0, "side": "buy", "amount": "1" });
    refused(&client, "quote", missing, ErrorCode::MarketNotFound).await;
    let mut outside = quote("buy", "1");
    outside["outcomeIndex"] = json!(9);
    refused(&client, "quote", outside, ErrorCode::OutcomeIndexInvalid).await;
}

#[tokio::test]
async fn the_portfolio_has_the_money_and_the_positions_that_hold_tokens() {
    let scene = Scene::new().await;
    let client = agent(&scene);
    scene.settled(scene.client.buy(scene.market, 0, "25.00")).await;
    scene.settled(scene.client.buy(scene.market, 1, "5.00")).await;
    scene.settled(scene.client.sell_all(scene.market, 1)).await;
    let portfolio = answered(&client, "portfolio", json!({})).await;
    assert_eq!(portfolio["account"]["delegation"]["enabled"], true);
    assert_eq!(portfolio["account"]["availableUsdc"]["unit"], "USDC");
    let positions = portfolio["positions"].as_array().unwrap();
    assert_eq!(positions.len(), 1, "{portfolio}");
    assert_eq!(positions[0]["outcomeIndex"], 0, "{portfolio}");
}

#[tokio::test]
async fn trades_are_listed_and_traced() {
    let scene = Scene::new().await;
    let client = agent(&scene);
    let trade = scene.settled(scene.client.buy(scene.market, 0, "25.00")).await;
    let listed = answered(&client, "list_trades", json!({ "status": "completed" })).await;
    let found = &listed["trades"][0];
    assert_eq!((&found["tradeId"], &found["txHash"]), (&trade["id"], &trade["txHash"]));
    assert_eq!(found["usdc"], json!({ "amount": "25", "unit": "USDC" }));
    let traced = answered(&client, "trace", json!({ "correlationId": found["correlationId"] })).await;
    assert_eq!((&traced["tradeId"], &traced["status"]), (&trade["id"], &json!("completed")));
    assert!(traced["events"].as_array().unwrap().len() > 3, "{traced}");
}

#[tokio::test]
async fn another_users_trade_is_not_there() {
    let scene = Scene::new().await;
    let trade = scene.settled(scene.client.buy(scene.market, 0, "25.00")).await;
    let bob = scene.app.user("bob").funded("100").await;
    let key = scene.app.key(&bob, Tier::Mm).await;
    let client = served(&scene.app, true).with(&key);
    assert_eq!(answered(&client, "list_trades", json!({})).await["trades"], json!([]));
    let arguments = json!({ "correlationId": trade["correlationId"] });
    refused(&client, "trace", arguments, ErrorCode::ResourceNotFound).await;
}

#[tokio::test]
async fn a_lost_position_is_not_in_the_portfolio() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 1, "5.00")).await;
    scene.app.resolve(scene.market, 0).await;
    scene.app.run_workers().await;
    let portfolio = answered(&agent(&scene), "portfolio", json!({})).await;
    assert_eq!(portfolio["positions"], json!([]), "{portfolio}");
}

#[tokio::test]
async fn a_quote_warns_an_agent_of_a_buy_that_cannot_gain() {
    let scene = Scene::new().await;
    scene.app.stranger_buys(scene.market, 0, "9500").await;
    scene.app.run_workers().await;
    let asked = json!({ "marketId": scene.market.id, "outcomeIndex": 0, "side": "buy", "amount": "10" });
    let quote = answered(&agent(&scene), "quote", asked).await;
    assert_eq!(quote["warnings"][0]["code"], "cannot_gain", "{quote}");
}

#[tokio::test]
async fn searches_of_agents_count_like_all_others() {
    let app = TestApp::with().budgets(["searches.address=1"]).start().await;
    let user = app.user("ada").await;
    let client = served(&app, true).with(&app.key(&user, Tier::Mm).await);
    answered(&client, "search_markets", json!({ "query": "league" })).await;
    let error =
        refused(&client, "search_markets", json!({ "query": "league" }), ErrorCode::RateLimitExceeded).await;
    assert!(text(&error["detail"]).contains("searches of one address"), "{error}");
    answered(&client, "search_markets", json!({})).await;
}
