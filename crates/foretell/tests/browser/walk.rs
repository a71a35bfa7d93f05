//! One person's whole way, on the site that `foretell dev` makes in an empty folder: from the sign-up to
//! the money back in a wallet, with a key, a webhook, and an admin who resolves the market.

use domain::time::{Clock, SystemClock};
use domain::webhook::{WebhookSecret, verify};

use crate::chromium::{self, Chromium};
use crate::developer::receive;
use crate::site::Site;

/// The receiver of the withdrawal.
const WALLET: &str = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045";
/// The price of a market's first outcome.
const PRICE: &str = "document.querySelector('[data-price=\"0\"]').textContent";

/// Issues a key with a webhook, and enables it on chain. Returns its plaintext and the secret.
async fn issue_key(site: &Site, person: &Chromium, webhook: &str) -> (String, WebhookSecret) {
    person.open(&site.url("/settings/keys")).await;
    person.click("#name").await;
    person.press("Bot").await;
    person.click("#webhook").await;
    person.press(webhook).await;
    person.click("input[value=\"trades:write\"]").await;
    person.click("form[action=\"/settings/keys\"] button.main").await;
    person.wait_for("document.querySelector('.secret code')").await;
    let key = person.text_of(".secret code").await;
    let settings = person.text_of("pre.code").await;
    let secret = settings.lines().find_map(|line| line.strip_prefix("FORETELL_WEBHOOK_SECRET="));
    let secret = secret.unwrap().parse().unwrap();
    person.click("main a.btn.main").await;
    person.wait_for_path("/settings/keys/").await;
    person.click("form[data-kind=enable_key] button").await;
    person.sign_act("Allow the Gate to move USDC into your own trades").await;
    (key, secret)
}

/// Signs up, and opens the operators' pages with a passkey.
async fn become_admin(site: &Site, browser: &Chromium) {
    browser.add_authenticator().await;
    browser.open(&site.url("/sign-up")).await;
    browser.click("form button.main").await;
    browser.wait_for_path("/welcome").await;
    let newest = site.admin(&["user", "list", "--limit", "1"]).await;
    site.admin(&["user", "promote", newest[0]["id"].as_str().unwrap()]).await;
    browser.open(&site.url("/")).await;
    browser.reload_until("!!document.querySelector('a[href=\"/admin\"]')").await;
}

#[tokio::test]
async fn a_person_goes_from_the_sign_up_to_the_money_back_in_a_wallet() {
    let Some((site, person)) = chromium::start().await else { return };
    let other = Chromium::launch().await;
    let axe = chromium::axe();
    person.start_trading(&site).await;
    person.save_screenshot("walk-1-trading-enabled").await;

    // Another browser sees the price of the trade without a reload.
    let market = site.market("OPEN", true);
    other.open(&site.url(&market)).await;
    let price: String = other.value(PRICE).await;
    person.open(&site.url(&market)).await;
    person.click("#amount").await;
    person.press("100").await;
    person.wait_for("document.querySelector('[data-quote=loss]').textContent === '100.00 USDC'").await;
    person.click("[data-part=submit]").await;
    person.wait_for("document.querySelector('[data-part=state]').textContent === 'Done'").await;
    person.save_screenshot("walk-2-traded").await;
    other.wait_for(&format!("{PRICE} !== '{price}'")).await;

    // A program trades with the person's key, and its webhook is signed.
    let (url, mut received) = receive().await;
    let (key, secret) = issue_key(&site, &person, &url).await;
    site.buy_with(&key, &market, "10.00").await;
    let (headers, body) = received.recv().await.unwrap();
    let signature = headers["x-service-signature"].to_str().unwrap();
    verify(signature, &body, &secret, SystemClock::default().now()).unwrap();
    person.open(&site.url("/portfolio/history")).await;
    person.save_screenshot("walk-3-history").await;

    become_admin(&site, &other).await;
    let page = format!("/admin{market}");
    other.open(&site.url(&page)).await;
    other.click("input[value=freeze] ~ button").await;
    other.confirm_act(&axe, "Stops trading").await;
    other.wait_for_status(&site, &page, "Frozen").await;
    other.click("input[name=winner][value='0']").await;
    other.click("input[value=resolve] ~ button").await;
    other.confirm_act(&axe, "This cannot be undone").await;
    other.wait_for_status(&site, &page, "Resolved").await;
    other.save_screenshot("walk-4-resolved").await;

    person.open(&site.url("/portfolio")).await;
    person.reload_until("!!document.querySelector('form[action=\"/portfolio/claims\"] button.main')").await;
    person.save_screenshot("walk-5-claim").await;
    person.click("form[action=\"/portfolio/claims\"] button.main").await;
    person.reload_until("document.readyState === 'complete' && !document.querySelector('main table')").await;

    person.open(&site.url("/withdraw")).await;
    person.click("#to").await;
    person.press(WALLET).await;
    person.click("input[value=all]").await;
    person.click("form[data-kind=withdraw] button.main").await;
    person.sign_act(&format!("USDC to {WALLET}")).await;
    person.save_screenshot("walk-6-withdrawn").await;
    person.open(&site.url("/portfolio")).await;
    assert!(person.text_of("main").await.contains("$0.00"));
}
