//! Deposits and claims.

use serde_json::json;
use testkit::TestApp;

use crate::people::{Browser, sign_in_for, trader};

/// The year of the tests' clock.
const YEAR: &str = "2027";

#[tokio::test]
async fn the_deposit_page_has_the_accounts_own_address_as_text_and_as_a_code() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    assert_eq!(browser.get("/deposit").await.header("location"), Some(sign_in_for("/deposit").as_str()));
    browser.sign_up("Maya").await;
    let address = browser.address().await;
    let page = browser.get("/deposit").await;
    assert!(page.text.contains(&format!("<code>{address}</code>")), "{page}");
    assert!(page.text.contains("<path d=\"M0 0h1v1h-1z") && page.text.contains("$0.00"), "{page}");
}

#[tokio::test]
async fn a_winning_position_is_claimed_once_and_paid() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |_| ()).await;
    let (mut winner, mut other) = (trader(&app, 100).await, trader(&app, 100).await);
    let order = json!({
        "marketId": market.id, "outcomeIndex": 0, "side": "buy", "amountType": "usdc", "amount": "50",
        "maxSlippageBps": 10_000, "idempotencyKey": "7d3f1c1e-0000-4000-8000-000000000001",
    });
    assert_eq!(winner.post("/app/trades", order).await.status.as_u16(), 201);
    app.run_workers().await;
    let early =
        winner.submit("/portfolio/claims", &[("market", &market.id.to_string()), ("outcome", "0")]).await;
    assert_eq!(early.status.as_u16(), 409, "{early}");

    app.resolve(market, 0).await;
    app.run_workers().await;
    let page = winner.get("/portfolio").await;
    assert!(page.text.contains("Claim all") && page.text.contains(">Claim $"), "{page}");
    let foreign =
        other.submit("/portfolio/claims", &[("market", &market.id.to_string()), ("outcome", "0")]).await;
    assert_eq!(foreign.status.as_u16(), 409, "{foreign}");
    for _ in 0..2 {
        let claimed = winner.submit("/portfolio/claims", &[]).await;
        assert_eq!(claimed.header("location"), Some("/portfolio"), "{claimed}");
        let page = winner.get("/portfolio").await;
        assert!(page.text.contains("Being paid") && !page.text.contains("Claim all"), "{page}");
    }
    app.run_workers().await;
    let page = winner.get("/portfolio").await;
    assert!(page.text.contains("No positions yet"), "{page}");
    let history = winner.get("/portfolio/history?kind=claims").await;
    assert!(history.text.contains("Claimed $") && history.text.contains(">Paid<"), "{history}");
    assert!(other.get("/portfolio/history?kind=claims").await.text.contains("Nothing here yet"));
    // The claim paid one USDC for each token, which is more than they cost.
    assert!(!page.text.contains("<dt>Cash</dt><dd>$50.00</dd>"), "{page}");
}

#[tokio::test]
async fn the_history_lists_and_exports_only_the_persons_own_trades() {
    let app = TestApp::new().await;
    let market = app.market_with(&["=Yes", "No"], |_| ()).await;
    let (mut ada, mut ben) = (trader(&app, 100).await, trader(&app, 100).await);
    for number in 0..30 {
        let order = json!({
            "marketId": market.id, "outcomeIndex": 0, "side": "buy", "amountType": "usdc", "amount": "1",
            "maxSlippageBps": 10_000, "idempotencyKey": format!("key-{number}"),
        });
        assert_eq!(ada.post("/app/trades", order).await.status.as_u16(), 201);
    }
    app.run_workers().await;
    let first = ada.get("/portfolio/history").await;
    assert_eq!(first.text.matches("href=\"/trades/").count(), 25, "{first}");
    let next = first.text.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let second = ada.get(&next.replace("&#38;", "&")).await;
    assert_eq!(second.text.matches("href=\"/trades/").count(), 5, "{second}");
    assert!(ben.get("/portfolio/history").await.text.contains("Nothing here yet"));

    let json = ada.get(&format!("/portfolio/history/{YEAR}.json")).await;
    let trades = json.json();
    assert_eq!(trades.as_array().unwrap().len(), 30, "{json}");
    assert_eq!((&trades[0]["usdc"], &trades[0]["outcome"]), (&json!("1"), &json!("=Yes")));
    let csv = ada.get(&format!("/portfolio/history/{YEAR}.csv")).await;
    assert_eq!((csv.text.lines().count(), csv.text.matches("\"'=Yes\"").count()), (31, 30), "{csv}");
    assert_eq!(ben.get(&format!("/portfolio/history/{YEAR}.json")).await.json(), json!([]));
    assert_eq!(ada.get("/portfolio/history/2001.json").await.json(), json!([]));
    assert_eq!(ada.get("/portfolio/history/2001.exe").await.status.as_u16(), 404);
    app.advance_ms(6 * 60_000).await;
    assert_eq!(ada.get(&format!("/portfolio/history/{YEAR}.csv")).await.status.as_u16(), 403);
}
