//! The steps after signing up, preferences, public names and notifications.

use domain::Usdc;
use serde_json::json;
use testkit::TestApp;

use crate::people::{Browser, funded, rejected, sign_in_for, trader};

#[tokio::test]
async fn the_welcome_page_shows_the_step_that_is_next() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    assert_eq!(browser.get("/welcome").await.header("location"), Some(sign_in_for("/welcome").as_str()));
    let signed_up = browser.sign_up("Maya").await;
    assert_eq!(signed_up.json()["next"], "/welcome");
    let current = |page: &str, step: &str| page.contains(&format!("aria-current=\"step\">{step}</li>"));
    let page = browser.get("/welcome").await;
    assert!(
        current(&page.text, "A second owner") && page.text.contains("Put money on your account"),
        "{page}"
    );

    app.mint(browser.address().await, Usdc::from_whole(5)).await;
    let page = browser.get("/welcome").await;
    assert!(page.text.contains("Cash: $5.00") && page.text.contains("Allow trading"), "{page}");
    let enable = json!({ "kind": "enable", "perTrade": "20000000", "daily": "30000000" });
    browser.act(enable).await;
    app.run_workers().await;
    let page = browser.get("/welcome").await;
    assert!(!page.text.contains("Allow trading") && page.text.contains("Make your first trade"), "{page}");
    // The chosen caps hold for trades, and in the ticket.
    let market = app.market(&["Yes", "No"]).await;
    let ticket = browser.get(&format!("/markets/{}", market.id)).await;
    assert!(ticket.text.contains("An owner signs each order above $20.00."), "{ticket}");
}

#[tokio::test]
async fn preferences_of_the_browser_need_no_account() {
    let app = TestApp::new().await;
    let market = app.market(&["Yes", "No"]).await;
    let mut browser = trader(&app, 100).await;
    let path = format!("/markets/{}", market.id);
    assert!(browser.get(&path).await.text.contains("data-slippage=\"100\""));
    let session = browser.cookie.clone().unwrap();
    let mut anonymous = Browser::new(&app);
    let saved = anonymous.submit("/settings/preferences", &[("slippage", "50")]).await;
    assert_eq!((saved.status.as_u16(), saved.header("location")), (303, Some("/settings/preferences")));
    let cookies: Vec<_> = saved.headers.get_all("set-cookie").iter().map(|it| it.to_str().unwrap()).collect();
    assert!(cookies[0].starts_with("slippage=50; Path=/; Max-Age="), "{cookies:?}");
    assert!(cookies[1].starts_with("shortcuts=off; Path=/; Max-Age="), "{cookies:?}");
    browser.cookie = Some(format!("{session}; slippage=50; shortcuts=off"));
    let page = browser.get(&path).await;
    assert!(
        page.text.contains("data-slippage=\"50\"") && page.text.contains("move by 0.5% at most"),
        "{page}"
    );
    let page = browser.get("/settings/preferences").await;
    assert!(page.text.contains("<option value=\"50\" selected>0.5%</option>"), "{page}");
    assert!(page.text.contains("name=\"shortcuts\"> Keyboard"), "{page}");
    for wrong in ["", "51", "10000", "-1"] {
        assert_eq!(
            anonymous.submit("/settings/preferences", &[("slippage", wrong)]).await.status.as_u16(),
            400
        );
        browser.cookie = Some(format!("{session}; slippage={wrong}"));
        assert!(browser.get(&path).await.text.contains("data-slippage=\"100\""), "{wrong}");
    }
}

#[tokio::test]
async fn a_name_is_public_only_if_its_owner_chose_it_and_nobody_has_a_similar_one() {
    let app = TestApp::new().await;
    let market = app.market(&["Yes", "No"]).await;
    let (mut ada, mut ben) = (trader(&app, 100).await, funded(&app, 1).await);
    let address = format!("{:#x}", ada.address().await);
    let order = json!({
        "marketId": market.id, "outcomeIndex": 0, "side": "buy", "amountType": "usdc", "amount": "5",
        "maxSlippageBps": 10_000, "idempotencyKey": "key",
    });
    ada.post("/app/trades", order).await;
    app.run_workers().await;
    let path = format!("/traders/{address}");
    assert!(!ben.get(&path).await.text.contains("Maya"), "the name of the account is not public");

    let set = ada.submit("/settings/preferences/name", &[("publicName", " Ada  L. ")]).await;
    assert_eq!(set.header("location"), Some("/settings/preferences"), "{set}");
    assert!(ada.get("/settings/preferences").await.text.contains("value=\"Ada L.\""));
    assert!(ben.get(&path).await.text.contains("<h1>Ada L.</h1>"));
    app.advance_ms(10_000).await;
    let board = ben.get("/leaderboard").await;
    assert!(board.text.contains(&format!("<a href=\"{path}\">Ada L.</a>")), "{board}");

    for (wrong, why) in [("ada-l", "another person"), ("Foretell Support", "3 to 24"), ("x", "3 to 24")] {
        let rejected = ben.submit("/settings/preferences/name", &[("publicName", wrong)]).await;
        assert_eq!(rejected.status.as_u16(), 400, "{rejected}");
        assert!(
            rejected.text.contains(why) && rejected.text.contains(&format!("value=\"{wrong}\"")),
            "{rejected}"
        );
    }
    ada.submit("/settings/preferences/name", &[("publicName", "")]).await;
    assert!(!ben.get(&path).await.text.contains("Ada L."));
    let taken = ben.submit("/settings/preferences/name", &[("publicName", "Ada L")]).await;
    assert_eq!(taken.status.as_u16(), 303, "{taken}");
}

#[tokio::test]
async fn notifications_say_what_happened_to_the_persons_own_trades() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |_| ()).await;
    let (mut ada, mut ben) = (trader(&app, 100).await, funded(&app, 1).await);
    assert!(ada.get("/notifications").await.text.contains("Nothing here yet"));
    for number in 0..30 {
        let order = json!({
            "marketId": market.id, "outcomeIndex": 0, "side": "buy", "amountType": "usdc", "amount": "1",
            "maxSlippageBps": 10_000, "idempotencyKey": format!("key-{number}"),
        });
        assert_eq!(ada.post("/app/trades", order).await.status.as_u16(), 201);
    }
    app.run_workers().await;
    let page = ada.get("/notifications").await;
    assert_eq!(page.text.matches("Your purchase of Yes is done").count(), 25, "{page}");
    let next = page.text.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert_eq!(ada.get(&next).await.text.matches("Your purchase of Yes is done").count(), 5);
    app.resolve(market, 0).await;
    app.run_workers().await;
    app.workers.announce(&app.ctx).await;
    let page = ada.get("/notifications").await;
    assert!(page.text.contains("You can claim your winnings for Yes"), "{page}");
    ada.submit("/portfolio/claims", &[]).await;
    app.run_workers().await;
    let claims = ada.get("/portfolio/history?kind=claims").await;
    let paid = claims.text.split("Claimed ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let page = ada.get("/notifications").await;
    assert!(page.text.contains(&format!("{paid} was paid for Yes")), "{paid}: {page}");
    assert!(ben.get("/notifications").await.text.contains("Nothing here yet"));
    assert_eq!(ben.get("/notifications?before=x").await.status.as_u16(), 400);
}

#[tokio::test]
async fn an_account_with_much_money_and_one_owner_is_warned() {
    let app = TestApp::new().await;
    let mut browser = funded(&app, 499).await;
    assert!(!browser.get("/portfolio").await.text.contains("Only one owner"));
    app.mint(browser.address().await, Usdc::from_whole(1)).await;
    assert!(browser.get("/portfolio").await.text.contains("Only one owner"));
}

#[tokio::test]
async fn all_trading_is_paused_at_once_and_resumed_only_after_a_confirmation() {
    let app = TestApp::new().await;
    let market = app.market(&["Yes", "No"]).await;
    let path = format!("/markets/{}", market.id);
    let mut browser = trader(&app, 100).await;
    let order = json!({
        "marketId": market.id, "outcomeIndex": 0, "side": "buy", "amountType": "usdc", "amount": "5",
        "maxSlippageBps": 10_000, "idempotencyKey": "key",
    });
    app.advance_ms(6 * 60_000).await;
    // A stolen session may stop trading, but not start it again.
    let paused = browser.submit("/settings/security/pause", &[]).await;
    assert_eq!(paused.header("location"), Some("/settings/security"), "{paused}");
    let rejected = browser.post("/app/trades", order.clone()).await;
    assert_eq!(rejected.json()["code"], "API_KEY_PAUSED", "{rejected}");
    assert!(browser.get(&path).await.text.contains("Trading is paused"));
    assert_eq!(browser.submit("/settings/security/resume", &[]).await.status.as_u16(), 403);
    assert!(browser.get("/settings/security").await.text.contains("Trading on this site is paused."));

    browser.prove("step-up").await;
    assert_eq!(browser.submit("/settings/security/resume", &[]).await.status.as_u16(), 303);
    let traded = browser.post("/app/trades", order).await;
    assert_eq!(traded.status.as_u16(), 201, "{traded}");
}

#[tokio::test]
async fn pages_stay_readable_after_the_operator_has_revoked_the_web_key() {
    let app = TestApp::new().await;
    let market = app.market(&["Yes", "No"]).await.id;
    let mut ada = trader(&app, 100).await;
    let revoke = "UPDATE keys SET revoked_at_ms = 1 WHERE kind = 'web'";
    app.ctx.store.write(revoke, |tx, sql| Box::pin(tx.exec(sql, &[]))).await.unwrap();
    app.advance_ms(1_000).await;
    for path in ["/portfolio", "/withdraw", "/welcome", "/settings/security"] {
        let page = ada.get(path).await;
        assert_eq!(page.status.as_u16(), 200, "{path}\n{page}");
        assert!(!page.text.contains("data-kind=\"enable\""), "{path}\n{page}");
    }
    let page = ada.get(&format!("/markets/{market}")).await;
    assert!(page.text.contains("data-per-trade=\"0\"") && page.text.contains("id=\"sign-trade\""), "{page}");
    for (path, next) in
        [("/settings/security/pause", "/settings/security"), ("/portfolio/claims", "/portfolio")]
    {
        let done = ada.submit(path, &[]).await;
        assert_eq!(done.header("location"), Some(next), "{path}\n{done}");
    }
    let order = json!({
        "marketId": market, "outcomeIndex": 0, "side": "buy", "amountType": "usdc", "amount": "1",
        "maxSlippageBps": 10_000, "idempotencyKey": "7d3f1c1e-0000-4000-8000-000000000001",
    });
    rejected(&ada.post("/app/trades", order).await, 401, "API_KEY_REVOKED");
}
