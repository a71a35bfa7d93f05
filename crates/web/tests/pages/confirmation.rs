//! The confirmation of a held trade by its owner.

use app::kill_switches::{Setting, TRADING, set};
use http_testkit::Answer;
use serde_json::json;
use store::StoreError;
use testkit::{TestApp, TestMarket};

use crate::people::{Browser, trader};

/// Lets all keys hold trades from 20 USDC.
pub async fn hold_from_20(app: &TestApp) {
    const SQL: &str = "UPDATE keys SET tier = 'mm', high_value_usdc_atomic = 20000000";
    let changed: Result<u64, StoreError> =
        app.ctx.store.write((), |tx, ()| Box::pin(async move { tx.exec(SQL, &[]).await })).await;
    assert!(changed.unwrap() > 0);
    app.advance_ms(6 * 60_000).await;
}

/// Returns the path of a new order's page.
pub async fn order(browser: &mut Browser, market: TestMarket, usdc: &str) -> String {
    let order = json!({
        "marketId": market.id, "outcomeIndex": 0, "side": "buy", "amountType": "usdc", "amount": usdc,
        "maxSlippageBps": 10_000, "idempotencyKey": format!("key-{usdc}"),
    });
    let created = browser.post("/app/trades", order).await;
    assert_eq!(created.status.as_u16(), 201, "{created}");
    format!("/trades/{}", created.json()["id"].as_str().unwrap())
}

fn has_form(page: &Answer) -> bool {
    page.text.contains("/confirm\"><button")
}

#[tokio::test]
async fn an_owner_confirms_a_held_trade_after_a_fresh_confirmation() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |_| ()).await;
    let mut browser = trader(&app, 100).await;
    hold_from_20(&app).await;
    let path = order(&mut browser, market, "50").await;
    let confirm = format!("{path}/confirm");
    let page = browser.get(&path).await;
    assert!(page.text.contains("Buy Yes for 50 USDC") && page.text.contains("100.00%"), "{page}");
    assert!(page.text.contains("Confirm that it is you") && !has_form(&page), "{page}");
    assert!(!page.text.contains("ct_"), "{page}");
    let refused = browser.submit(&confirm, &[]).await;
    assert_eq!(refused.status.as_u16(), 403, "{refused}");
    assert!(refused.text.contains("STEP_UP_REQUIRED"), "{refused}");

    let mut other = trader(&app, 100).await;
    assert_eq!(other.submit(&confirm, &[]).await.status.as_u16(), 404);
    app.run_workers().await;
    assert!(browser.get(&path).await.text.contains("Confirm this trade"));

    browser.prove("step-up").await;
    assert!(has_form(&browser.get(&path).await));
    set(&app.ctx, TRADING, Setting::Off, "ada", None).await.unwrap();
    assert_eq!(browser.submit(&confirm, &[]).await.status.as_u16(), 503, "trading is halted");
    set(&app.ctx, TRADING, Setting::On, "ada", None).await.unwrap();
    for _ in 0..2 {
        assert_eq!(browser.submit(&confirm, &[]).await.header("location"), Some(path.as_str()));
    }
    app.run_workers().await;
    let page = browser.get(&path).await;
    assert!(page.text.contains("Bought") && !page.text.contains("Confirm this trade"), "{page}");
    assert_eq!(app.rows().await.trades, 1);
}

#[tokio::test]
async fn an_owner_is_warned_of_a_held_trade_that_cannot_gain() {
    let app = TestApp::new().await;
    let dear = app.market_with(&["Yes", "No"], |_| ()).await;
    let fair = app.market_with(&["Yes", "No"], |new| new.question = "Will it snow?".to_owned()).await;
    app.stranger_buys(dear, 0, "9500").await;
    app.run_workers().await;
    let mut browser = trader(&app, 100).await;
    hold_from_20(&app).await;
    let path = order(&mut browser, dear, "25").await;
    let page = browser.get(&path).await;
    assert!(page.text.contains("Confirm this trade"), "{page}");
    assert!(page.text.contains("This trade cannot gain: it costs "), "{page}");
    let path = order(&mut browser, fair, "30").await;
    let page = browser.get(&path).await;
    assert!(page.text.contains("Confirm this trade") && !page.text.contains("cannot gain"), "{page}");
}

#[tokio::test]
async fn a_trade_that_is_not_held_has_nothing_to_confirm() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |_| ()).await;
    let mut browser = trader(&app, 100).await;
    hold_from_20(&app).await;
    browser.prove("step-up").await;
    let small = order(&mut browser, market, "5").await;
    assert!(!browser.get(&small).await.text.contains("Confirm this trade"));
    let late = order(&mut browser, market, "50").await;
    app.advance_ms(app.ctx.config.confirmation_window_ms).await;
    app.run_workers().await;
    let page = browser.get(&late).await;
    assert!(page.text.contains("Nothing was traded") && !page.text.contains("Confirm this trade"), "{page}");
}
