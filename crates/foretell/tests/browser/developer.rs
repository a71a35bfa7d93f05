//! A developer who issues a key, trades with it and inspects its webhook.

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use domain::time::{Clock, SystemClock};
use domain::webhook::{WebhookSecret, verify};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::chromium;

/// Starts a receiver of webhooks. Returns its URL, and the headers and the body of each request.
pub async fn receive() -> (String, mpsc::UnboundedReceiver<(HeaderMap, Bytes)>) {
    let (send, received) = mpsc::unbounded_channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let answer = async move |headers: HeaderMap, body: Bytes| drop(send.send((headers, body)));
    let routes = Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (url, received)
}

#[tokio::test]
async fn a_developer_issues_a_key_trades_with_it_and_inspects_its_webhook() {
    let Some((site, browser)) = chromium::start().await else { return };
    let axe = chromium::axe();
    let (url, mut received) = receive().await;
    browser.add_authenticator().await;
    browser.open(&site.url("/sign-up")).await;
    browser.click("form button.main").await;
    browser.wait_for_path("/welcome").await;
    browser.click("form[action=\"/faucet\"] button").await;
    browser.wait_for("!document.querySelector('form[action=\"/faucet\"]')").await;

    browser.open(&site.url("/settings/keys")).await;
    browser.assert_accessible(&axe).await;
    browser.click("#name").await;
    browser.press("Trading bot").await;
    browser.click("#webhook").await;
    browser.press(&url).await;
    browser.click("input[value=\"trades:write\"]").await;
    browser.click("form[action=\"/settings/keys\"] button.main").await;
    browser.wait_for("document.querySelector('.secret code')").await;
    let key = browser.text_of(".secret code").await;
    let settings = browser.text_of("pre.code").await;
    let secret = settings.lines().find_map(|line| line.strip_prefix("FORETELL_WEBHOOK_SECRET=")).unwrap();
    let secret: WebhookSecret = secret.parse().unwrap();
    browser.assert_accessible(&axe).await;
    browser.click("main a.btn.main").await;
    browser.wait_for_path("/settings/keys/").await;
    browser.assert_accessible(&axe).await;
    assert!(!browser.text_of("main").await.contains(&key));
    browser.click("form[data-kind=enable_key] button").await;
    browser.sign_act("Allow the Gate to move USDC into your own trades").await;

    let market = site.market("OPEN", true);
    site.buy_with(&key, &market, "10.00").await;
    let (headers, body) = received.recv().await.unwrap();
    let signature = headers["x-service-signature"].to_str().unwrap();
    let now = SystemClock::default().now();
    verify(signature, &body, &secret, now).unwrap();
    assert!(verify(signature, b"{}", &secret, now).is_err());
    browser.open(&site.url("/developers/webhooks?status=delivered")).await;
    browser
        .wait_for("!!document.querySelector('td a') || (setTimeout(() => location.reload(), 200), false)")
        .await;
    browser.assert_accessible(&axe).await;
    browser.click("td a").await;
    browser.wait_for_path("/developers/webhooks/").await;
    assert!(browser.text_of("ol.timeline").await.contains("HTTP 200"));
    browser.assert_accessible(&axe).await;
    browser.click("form[action$=redeliver] button").await;
    browser.wait_for("document.querySelector('main').textContent.includes('Redeliver (1 of 5)')").await;
    // The request log is written every few seconds.
    browser.open(&site.url("/developers/requests")).await;
    browser
        .wait_for("!!document.querySelector('td a[href^=\"/trades/\"]') || (setTimeout(() => location.reload(), 200), false)")
        .await;
    browser.assert_accessible(&axe).await;
    browser.click("td a[href^=\"/trades/\"]").await;
    browser.wait_for_path("/trades/").await;
    assert!(browser.text_of("ol.trace").await.contains("trade.completed"));
    browser.assert_accessible(&axe).await;
    browser.open(&site.url("/developers")).await;
    browser.wait_for("!!document.querySelector('svg.bars rect')").await;
    assert!(browser.text_of("main").await.contains(&format!("…{}", &key[key.len() - 4..])));
    browser.assert_accessible(&axe).await;
    let warnings =
        browser.warnings().await.into_iter().filter(|warning| !warning.contains("pubKeyCredParams"));
    assert_eq!(warnings.collect::<Vec<_>>(), Vec::<String>::new());
}
