//! Every page in its states: normal, empty, pending, halted, chain away, signed out, too many requests,
//! and missing. Each is accessible and fits its window.
//!
//! They take minutes, so they run only with a folder for their pictures (`FORETELL_SCREENSHOTS`).

use testkit::RpcFault;

use crate::chromium::{self, SCREENSHOTS};
use crate::faults::Screen;
use crate::pages::find_pages;

/// Other tests open the pages in both themes at each width.
const SCREENS: [Screen; 2] = [(1280, "light"), (390, "dark")];
/// Pages that show something of the person.
const OWN: [&str; 15] = [
    "/welcome",
    "/portfolio",
    "/portfolio/history",
    "/deposit",
    "/withdraw",
    "/notifications",
    "/settings/security",
    "/settings/keys",
    "/settings/preferences",
    "/developers",
    "/developers/requests",
    "/developers/webhooks",
    "/markets?q=nothing-has-this-word",
    "/search?q=nothing-has-this-word",
    "/trades/00000000-0000-7000-8000-000000000000",
];
/// The requests of one browser that its address' limit certainly does not allow within a minute.
const TOO_MANY: &str = "Promise.all(Array.from({ length: 700 }, () => fetch('/status'))).then(() => true)";

#[tokio::test]
async fn every_page_in_every_state_is_accessible_and_fits_its_window() {
    if std::env::var(SCREENSHOTS).is_err() {
        eprintln!("skipped: {SCREENSHOTS} is not set");
        return;
    }
    let Some((mut site, browser)) = chromium::start().await else { return };
    let axe = chromium::axe();
    let public = find_pages(&site, &browser).await;
    let public: Vec<&str> = public.iter().map(String::as_str).collect();
    browser.check_pages(&site, &SCREENS, &public, &axe, "anonymous").await;

    browser.add_authenticator().await;
    browser.open(&site.url("/sign-up")).await;
    browser.click("form button.main").await;
    browser.wait_for_path("/welcome").await;
    browser.check_pages(&site, &SCREENS, &OWN, &axe, "empty").await;

    browser.open(&site.url("/welcome")).await;
    browser.click("form[action=\"/faucet\"] button").await;
    browser.wait_for("!document.querySelector('form[action=\"/faucet\"]')").await;
    browser.open(&site.url("/welcome")).await;
    browser.click("form[data-kind=enable] button").await;
    browser.sign_act("Allow the Gate to move USDC into your own trades").await;
    let market = site.market("OPEN", true);
    browser.open(&site.url(&market)).await;
    browser.click("#amount").await;
    browser.press("5").await;
    browser.wait_for("document.querySelector('[data-quote=loss]').textContent === '5.00 USDC'").await;
    browser.save_screenshot("quoted-market").await;
    browser.click("[data-part=submit]").await;
    browser.wait_for("!document.querySelector('[data-part=receipt]').hidden").await;
    let trade: String = browser.value("document.querySelector('[data-part=receipt]').pathname").await;
    let paths: Vec<&str> = public.iter().chain(&OWN).chain(&[trade.as_str()]).copied().collect();
    browser.check_pages(&site, &SCREENS, &paths, &axe, "signed-in").await;

    site.admin(&["switch", "halt", "--reason", "The oracle is checked."]).await;
    browser.open(&site.url(&market)).await;
    browser.reload_until("!!document.querySelector('[data-stop]')").await;
    browser.check_pages(&site, &SCREENS, &paths, &axe, "halted").await;
    site.admin(&["switch", "resume"]).await;

    let node = site.detach_chain().await;
    node.set(RpcFault::Refused).await;
    browser.open(&site.url(&market)).await;
    browser
        .reload_until("document.querySelector('[data-stop]')?.textContent.includes('Prices are those of')")
        .await;
    browser.check_pages(&site, &SCREENS, &paths, &axe, "chain-away").await;
    node.heal();
    browser.open(&site.url(&market)).await;
    browser.reload_until("!document.querySelector('[data-stop]')").await;
    // The node shows no newer block, so the order stays open.
    node.set(RpcFault::Stalled).await;
    browser.click("#amount").await;
    browser.press("5").await;
    browser.wait_for("document.querySelector('[data-quote=loss]').textContent === '5.00 USDC'").await;
    browser.click("[data-part=submit]").await;
    // The page still shows the receipt of the first order until the second one is accepted.
    browser
        .wait_for(&format!(
            "!['/portfolio', '{trade}'].includes(document.querySelector('[data-part=receipt]').pathname)"
        ))
        .await;
    let waiting: String = browser.value("document.querySelector('[data-part=receipt]').pathname").await;
    let pages = [waiting.as_str(), "/portfolio", "/portfolio/history", market.as_str()];
    browser.check_pages(&site, &SCREENS, &pages, &axe, "pending").await;
    node.heal();

    browser.send("Network.clearBrowserCookies", serde_json::json!({})).await;
    browser.check_pages(&site, &SCREENS, &OWN, &axe, "signed-out").await;
    browser.value::<bool>(TOO_MANY).await;
    browser.check_pages(&site, &SCREENS, &["/status", "/"], &axe, "too-many-requests").await;
}
