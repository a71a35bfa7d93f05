//! Pages while nobody can trade: they stay readable and say why.

use std::time::Duration;

use app::kill_switches::{Setting, TRADING, set};
use http_testkit::Answer;
use serde_json::json;
use testkit::{RpcFault, TestApp};

use crate::people::{Browser, trader};

const TICKET: &str = "id=\"ticket\"";
const CLOSED: &str = "Trading is closed";

/// A node that failed is paused, in real time, before it is asked again.
async fn until_a_node_is_available(app: &TestApp) {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    for _ in 0..1_500 {
        looks.tick().await;
        app::nodes::refresh(&app.ctx).await.unwrap();
        if app.ctx.chain.nodes().unwrap().is_available() {
            return;
        }
    }
    panic!("no node is available after 30 seconds");
}

#[tokio::test]
async fn a_halt_is_shown_everywhere_in_the_operators_words_and_closes_tickets() {
    let app = TestApp::new().await;
    let market = format!("/markets/{}", app.market(&["Yes", "No"]).await.id);
    let (mut ada, mut reader) = (trader(&app, 100).await, Browser::new(&app));
    assert!(ada.get(&market).await.text.contains(TICKET));

    let reason = Some("The oracle is <wrong>.".to_owned());
    set(&app.ctx, TRADING, Setting::Off, "Olga", reason).await.unwrap();
    for path in ["/", "/markets", &market, "/status"] {
        let page = reader.get(path).await;
        assert_eq!(page.status.as_u16(), 200, "{path}\n{page}");
        assert!(page.text.contains("Trading is halted"), "{path}\n{page}");
        assert!(page.text.contains("The oracle is &#60;wrong&#62;."), "{path}\n{page}");
        assert!(!page.text.contains("Olga"), "{path}\n{page}");
    }
    let page = ada.get(&market).await;
    assert!(page.text.contains(CLOSED) && !page.text.contains(TICKET), "{page}");

    set(&app.ctx, TRADING, Setting::On, "Olga", None).await.unwrap();
    let page = ada.get(&market).await;
    assert!(page.text.contains(TICKET) && !page.text.contains("Trading is halted"), "{page}");
}

fn assert_disabled(answer: &Answer) {
    assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, Some("30")), "{answer}");
    assert!(answer.text.contains("ROUTE_DISABLED"), "{answer}");
}

#[tokio::test]
async fn the_switches_of_trades_and_claims_hold_on_the_site() {
    let app = TestApp::new().await;
    let market = app.market(&["Yes", "No"]).await;
    let mut ada = trader(&app, 100).await;
    let order = |key: &str| {
        json!({
            "marketId": market.id, "outcomeIndex": 0, "side": "buy", "amountType": "usdc", "amount": "5",
            "idempotencyKey": key,
        })
    };
    let switch = |name, setting| set(&app.ctx, name, setting, "Olga", None);
    let trades = "POST /v1/trades";
    switch(trades, Setting::Off).await.unwrap();
    assert_disabled(&ada.post("/app/trades", order("one")).await);
    assert_eq!(app.rows().await.trades, 0);
    switch(trades, Setting::On).await.unwrap();
    assert_eq!(ada.post("/app/trades", order("two")).await.status.as_u16(), 201);
    app.run_workers().await;
    app.resolve(market, 0).await;
    app.run_workers().await;

    let claims = "POST /v1/redemptions";
    switch(claims, Setting::Off).await.unwrap();
    let position = [("market", market.id.to_string()), ("outcome", "0".to_owned())];
    let position = position.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_disabled(&ada.submit("/portfolio/claims", &position).await);
    assert_disabled(&ada.submit("/portfolio/claims", &[]).await);
    switch(claims, Setting::On).await.unwrap();
    let claimed = ada.submit("/portfolio/claims", &[]).await;
    assert_eq!(claimed.header("location"), Some("/portfolio"), "{claimed}");
}

#[tokio::test]
async fn pages_stay_readable_while_no_node_of_the_chain_answers() {
    let app = TestApp::with().forkable().nodes(1).start().await;
    app::nodes::refresh(&app.ctx).await.unwrap();
    let market = format!("/markets/{}", app.market(&["Yes", "No"]).await.id);
    let mut ada = trader(&app, 100).await;
    assert!(ada.get(&market).await.text.contains(TICKET));

    app.proxies[0].set(RpcFault::Refused).await;
    app::nodes::refresh(&app.ctx).await.unwrap();
    for path in ["/", "/markets", &market, "/notifications"] {
        let page = ada.get(path).await;
        assert_eq!(page.status.as_u16(), 200, "{path}\n{page}");
        assert!(page.text.contains("The chain does not answer"), "{path}\n{page}");
        assert!(page.text.contains("Prices are those of "), "{path}\n{page}");
    }
    let page = ada.get(&market).await;
    assert!(page.text.contains(CLOSED) && !page.text.contains(TICKET), "{page}");
    // What only the chain knows is not guessed.
    for path in ["/portfolio", "/withdraw"] {
        let page = ada.get(path).await;
        assert_eq!(page.status.as_u16(), 503, "{path}\n{page}");
        assert!(page.header("retry-after").is_some(), "{path}\n{page}");
        assert!(page.text.contains("DEPENDENCY_UNAVAILABLE"), "{path}\n{page}");
    }

    app.proxies[0].heal();
    until_a_node_is_available(&app).await;
    assert!(ada.get(&market).await.text.contains(TICKET));
    assert_eq!(ada.get("/portfolio").await.status.as_u16(), 200);
}
