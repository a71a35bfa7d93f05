//! The outcomes of a market's page: each one of 250 is found, bought and sold through the page's own
//! links.

use std::collections::BTreeSet;

use http_testkit::Answer;
use serde_json::{Value, json};
use testkit::{TestApp, TestMarket};

use crate::people::{Browser, trader};

const OUTCOMES: usize = 250;

async fn market_of_250(app: &TestApp) -> TestMarket {
    let labels: Vec<String> = (0..OUTCOMES).map(|index| format!("Candidate {index}")).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    app.market_with(&labels, |_| ()).await
}

/// Returns the values between `start` and the next quotation mark.
fn values<'a>(page: &'a Answer, start: &str) -> Vec<&'a str> {
    page.text.split(start).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

/// Follows the list's pages and returns the links to the ticket.
async fn links_of_tickets(browser: &mut Browser, market: TestMarket) -> Vec<String> {
    let start = format!("href=\"/markets/{}?outcome=", market.id);
    let mut path = format!("/markets/{}", market.id);
    let mut links = Vec::new();
    loop {
        let page = browser.get(&path).await;
        assert!(page.text.len() <= 60_000, "{path}: {} bytes", page.text.len());
        let found = values(&page, &start);
        assert!(found.len() <= 20, "{path}: {} outcomes", found.len());
        links.extend(found.iter().map(|rest| format!("/markets/{}?outcome={rest}", market.id)));
        let next = values(&page, "rel=\"next\" href=\"");
        let Some(next) = next.first() else { return links };
        path = next.replace("&#38;", "&");
    }
}

/// Returns the chosen outcome of the page's ticket and the tokens that are held of it.
fn chosen(page: &Answer) -> (usize, String) {
    let mut inputs = page.text.split("<input type=\"radio\" name=\"outcome\"").skip(1);
    let input = inputs.find(|rest| rest.split('>').next().unwrap().ends_with(" checked"));
    let input = input.unwrap_or_else(|| panic!("no outcome is chosen in {page}"));
    let value = |name: &str| input.split(name).nth(1).unwrap().split('"').next().unwrap().to_owned();
    (value("value=\"").parse().unwrap(), value("data-held=\""))
}

/// Sends an order as the ticket does.
async fn order(app: &TestApp, browser: &mut Browser, market: TestMarket, order: Value) {
    let mut order = order;
    order["marketId"] = json!(market.id);
    order["maxSlippageBps"] = json!(10_000);
    let mut answer = browser.post("/app/trades", order.clone()).await;
    if answer.status.as_u16() == 429 {
        app.advance_ms(60_000).await;
        answer = browser.post("/app/trades", order).await;
    }
    assert_eq!(answer.status.as_u16(), 201, "{answer}");
}

#[tokio::test]
async fn every_outcome_of_250_can_be_bought_and_sold_on_the_markets_page() {
    let app = TestApp::new().await;
    let market = market_of_250(&app).await;
    let mut browser = trader(&app, 100).await;
    let links = links_of_tickets(&mut browser, market).await;
    let mut bought = BTreeSet::new();
    for link in &links {
        assert!(link.ends_with("#ticket"), "{link}");
        let page = browser.get(link.split('#').next().unwrap()).await;
        assert!(page.text.contains("id=\"ticket\""), "{page}");
        let (outcome, held) = chosen(&page);
        assert_eq!(held, "0", "{link}");
        let body = json!({ "side": "buy", "amountType": "usdc", "amount": "0.01", "outcomeIndex": outcome,
            "idempotencyKey": format!("buy-{outcome}") });
        order(&app, &mut browser, market, body).await;
        bought.insert(outcome);
    }
    assert_eq!(bought, (0..OUTCOMES).collect());
    app.run_workers().await;

    // The ticket of a holder offers what is held, so it can be sold without looking for it.
    let page = browser.get(&format!("/markets/{}", market.id)).await;
    let held = values(&page, "data-held=\"");
    assert_eq!((held.len(), held.iter().filter(|tokens| **tokens == "0").count()), (OUTCOMES, 0));
    assert!(page.text.contains("Yours: "), "{page}");
    for outcome in bought {
        let body = json!({ "side": "sell", "amountType": "all", "outcomeIndex": outcome,
            "idempotencyKey": format!("sell-{outcome}") });
        order(&app, &mut browser, market, body).await;
    }
    app.run_workers().await;
    let page = browser.get("/portfolio").await;
    assert!(page.text.contains("No positions yet"), "{page}");
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_search_without_scripts_finds_an_outcome_and_keeps_the_page_small() {
    let app = TestApp::new().await;
    let market = market_of_250(&app).await;
    let mut browser = Browser::new(&app);
    let path = format!("/markets/{}", market.id);
    let page = browser.get(&path).await;
    assert!(page.text.contains(&format!("method=\"get\" action=\"{path}#outcomes\"")), "{page}");
    assert!(page.text.contains("<input class=\"grow\" type=\"search\" name=\"find\""), "{page}");
    assert!(page.text.contains("250 outcomes") && page.text.len() <= 40_000, "{}", page.text.len());
    let found = browser.get(&format!("{path}?find=cand%C3%ADdate+249")).await;
    let links = values(&found, &format!("href=\"{path}?outcome="));
    assert_eq!(links, ["249#ticket"], "{found}");
    assert!(found.text.contains("1 outcome with"), "{found}");
    let nothing = browser.get(&format!("{path}?find=%3Cb%3E")).await;
    assert!(nothing.text.contains("0 outcomes with “<bdi>&#60;b&#62;</bdi>”"), "{nothing}");
    // Links to what is not there lead to the market.
    for query in ["outcome=250", "outcome=x", "page=99", "page=-1"] {
        assert_eq!(browser.get(&format!("{path}?{query}")).await.status.as_u16(), 200, "{query}");
    }
}

#[tokio::test]
async fn each_button_of_a_card_opens_the_ticket_with_its_outcome() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |_| ()).await;
    let mut browser = trader(&app, 10).await;
    let path = format!("/markets/{}", market.id);
    let cards = browser.get("/markets").await;
    let links = values(&cards, &format!("href=\"{path}?outcome="));
    assert_eq!(links, ["0#ticket", "1#ticket"], "{cards}");
    for outcome in [0, 1] {
        let page = browser.get(&format!("{path}?outcome={outcome}")).await;
        assert_eq!(chosen(&page).0, outcome, "{page}");
    }
    assert_eq!(chosen(&browser.get(&path).await).0, 0);
}

#[tokio::test]
async fn an_outcome_that_no_card_shows_has_its_name_on_the_page_of_its_holder() {
    let app = TestApp::new().await;
    let market = market_of_250(&app).await;
    let mut browser = trader(&app, 10).await;
    let account = browser.address().await;
    for outcome in 0..10 {
        app.stranger_buys(market, outcome, "20").await;
    }
    let buy = json!({ "side": "buy", "amountType": "usdc", "amount": "1", "outcomeIndex": 249,
        "idempotencyKey": "buy-249" });
    order(&app, &mut browser, market, buy).await;
    app.run_workers().await;
    let page = browser.get(&format!("/traders/{account}")).await;
    assert!(page.text.contains("Candidate 249"), "{page}");
}

#[tokio::test]
async fn every_outcome_of_250_has_a_link_to_its_ticket() {
    let app = TestApp::new().await;
    let market = market_of_250(&app).await;
    let links = links_of_tickets(&mut Browser::new(&app), market).await;
    assert_eq!(links.into_iter().collect::<BTreeSet<_>>().len(), OUTCOMES);
}
