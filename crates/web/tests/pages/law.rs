//! What the law lets an operator ask for: accepted terms of use, and no buyers in some countries.

use std::sync::Arc;

use app::Config;
use app::config::{CountryRule, WebSettings};
use http_testkit::ServeHttp;
use serde_json::json;
use testkit::TestApp;

use crate::confirmation::{hold_from_20, order};
use crate::people::{Browser, rejected, trader};

const TERMS: &str = "https://foretell.test/terms?v=2";
const SELL_ONLY: &str = "does not allow buying from your country";

/// Serves `app` to `browser` with these settings of the web application.
fn serve(app: &TestApp, browser: &mut Browser, change: impl FnOnce(&mut WebSettings)) {
    let mut web = app.ctx.config.web.clone().unwrap();
    change(&mut web);
    let config = Config { web: Some(web), ..app.ctx.config.as_ref().clone() };
    browser.client = app.http_with(|state| state.ctx.config = Arc::new(config)).anonymous();
}

fn refuse_antarctica(web: &mut WebSettings) {
    web.country_rule = Some(CountryRule { header: "x-country".to_owned(), refused: vec!["AQ".to_owned()] });
}

#[tokio::test]
async fn whoever_signs_up_accepts_the_shown_terms() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    assert!(!browser.get("/sign-up").await.text.contains("name=\"terms\""));
    serve(&app, &mut browser, |web| web.terms_url = Some(TERMS.to_owned()));
    let page = browser.get("/sign-up").await;
    assert!(page.text.contains(&format!("name=\"terms\" value=\"{TERMS}\" required")), "{page}");

    let challenge = browser.challenge("sign-up").await;
    let body = json!({ "challengeId": challenge.to_string(), "passkey": browser.registration(&challenge) });
    for terms in [json!(null), json!("https://foretell.test/terms?v=1")] {
        let mut old = body.clone();
        old["terms"] = terms;
        rejected(&browser.post("/app/sign-up", old).await, 400, "VALIDATION_FAILED");
    }
    let mut accepted = body;
    accepted["terms"] = json!(TERMS);
    let answer = browser.post("/app/sign-up", accepted).await;
    assert!(answer.header("set-cookie").is_some(), "{answer}");

    let users = app.ctx.store.read((), |tx, ()| Box::pin(store::users::list(tx, None, 1))).await.unwrap();
    let mut entries = app::user_log::list(&app.ctx, users[0].0.id, None, 10).await.unwrap();
    entries.retain(|entry| entry.action == "terms.accept");
    assert_eq!(entries.len(), 1);
    assert!(entries[0].detail.as_ref().unwrap().contains(TERMS), "{entries:?}");
}

#[tokio::test]
async fn nobody_signs_up_or_buys_from_a_refused_country() {
    let app = TestApp::new().await;
    let market = app.market(&["Yes", "No"]).await;
    let mut browser = trader(&app, 100).await;
    serve(&app, &mut browser, refuse_antarctica);
    let path = format!("/markets/{}", market.id);
    let order = |side: &str| {
        let amount_type = if side == "buy" { "usdc" } else { "all" };
        json!({ "marketId": market.id.to_string(), "outcomeIndex": 0, "side": side, "amountType": amount_type,
            "amount": (side == "buy").then_some("10"), "maxSlippageBps": 500, "idempotencyKey": format!("{side}-1") })
    };
    let large = json!({ "kind": "trade", "market": market.id.to_string(), "outcome": "0", "side": "buy",
        "amount": "50000000", "worst": "1" });

    assert!(!browser.get(&path).await.text.contains(SELL_ONLY));
    let bought = browser.post("/app/trades", order("buy")).await;
    assert_eq!(bought.status.as_u16(), 201, "{bought}");
    app.run_workers().await;

    browser.headers = vec![("x-country", "aq")];
    let page = browser.get(&path).await;
    assert!(page.text.contains(SELL_ONLY) && page.text.contains("value=\"buy\" disabled"), "{page}");
    rejected(&browser.post("/app/trades", order("buy")).await, 451, "COUNTRY_REFUSED");
    rejected(&browser.post("/app/acts", large).await, 451, "COUNTRY_REFUSED");
    let sold = browser.post("/app/trades", order("sell")).await;
    assert_eq!(sold.status.as_u16(), 201, "{sold}");
    assert_eq!(browser.get("/withdraw").await.status.as_u16(), 200);

    // A client's own line beside that of the proxy changes nothing.
    let client = browser.client;
    let mut browser = Browser { client, ..Browser::new(&app) };
    browser.headers = vec![("x-country", "FR"), ("x-country", "AQ")];
    let page = browser.get("/sign-up").await;
    assert!(page.text.contains("You cannot sign up from your country"), "{page}");
    assert!(!page.text.contains("data-purpose=\"sign-up\""), "{page}");
    rejected(&browser.sign_up("Maya").await, 451, "COUNTRY_REFUSED");
    browser.headers = vec![("x-country", "FR")];
    assert!(browser.sign_up("Maya").await.header("set-cookie").is_some());
}

#[tokio::test]
async fn nobody_confirms_a_held_purchase_from_a_refused_country() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |_| ()).await;
    let mut browser = trader(&app, 100).await;
    hold_from_20(&app).await;
    let path = order(&mut browser, market, "50").await;
    let confirm = format!("{path}/confirm");
    serve(&app, &mut browser, refuse_antarctica);
    browser.prove("step-up").await;
    let submit = |country: &str| {
        let request = browser.client.call("POST", &confirm).header("sec-fetch-site", "same-origin");
        let request = request.header("content-type", "application/x-www-form-urlencoded").body("");
        request.header("cookie", browser.cookie.clone().unwrap()).header("x-country", country).send()
    };
    let refused = submit("AQ").await;
    assert_eq!(refused.status.as_u16(), 451, "{refused}");
    assert_eq!(submit("FR").await.header("location"), Some(path.as_str()));
}
