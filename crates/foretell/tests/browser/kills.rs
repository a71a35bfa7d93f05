//! The process is killed at each point of signing up, of an act and of a trade: the page tells the truth
//! afterwards, and repeating is safe.

use serde_json::json;

use crate::chromium::{self, Chromium};
use crate::site::Site;

/// Holds the page's POST to `heldPath`: before it is sent, or between its answer and the page.
const HOLD: &str = "
    const send = window.fetch;
    window.fetch = async (path, options) => {
        if (options?.method !== 'POST' || !window.heldPath || !path.endsWith(window.heldPath)) {
            return send(path, options);
        }
        window.heldPath = null;
        if (!window.isBefore) await send(path, options);
        await new Promise((release) => (window.release = release));
        const end = window.isBefore ? send(path, options) : Promise.reject(new TypeError('Failed to fetch'));
        return end.finally(() => (window.hasEnded = true));
    };";
const ANNOUNCED: &str = "document.querySelector('form [data-announce]').textContent";
const STATE: &str = "document.querySelector('[data-part=state]').textContent";
const ERROR: &str = "document.querySelector('[data-part=error]').textContent";

/// The point at which the process is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kill {
    /// Before the request arrives.
    Before,
    /// After the request was processed. Its answer is lost.
    After,
}

impl Chromium {
    /// Kills the process at the page's next POST to `path`, to which `button` leads, and starts it again.
    async fn click_and_kill(&self, site: &mut Site, button: &str, path: &str, kill: Kill) {
        let is_before = kill == Kill::Before;
        let hold = format!(
            "Object.assign(window, {{ heldPath: '{path}', isBefore: {is_before}, release: null, hasEnded: false }})"
        );
        self.value::<serde_json::Value>(&hold).await;
        self.click(button).await;
        self.wait_for("!!window.release").await;
        site.stop().await;
        self.execute::<()>("release()").await;
        self.wait_for("hasEnded").await;
        site.serve().await;
    }

    /// Enters an amount to buy, and waits for its quote.
    async fn enter_order(&self, usdc: &str) {
        self.execute::<()>("document.getElementById('amount').value = ''").await;
        self.click("#amount").await;
        self.press(usdc).await;
        let quoted = format!("document.querySelector('[data-quote=loss]').textContent === '{usdc}.00 USDC'");
        self.wait_for(&quoted).await;
    }
}

async fn count_users(site: &Site) -> usize {
    site.admin(&["user", "list", "--limit", "100"]).await.as_array().unwrap().len()
}

#[tokio::test]
async fn a_sign_up_at_a_kill_is_found_by_signing_in_or_repeated() {
    let Some((mut site, browser)) = chromium::start().await else { return };
    browser.run_before_pages(HOLD).await;
    browser.add_authenticator().await;
    let users = count_users(&site).await;
    browser.open(&site.url("/sign-up")).await;
    browser.click_and_kill(&mut site, "form button.main", "/app/sign-up", Kill::After).await;
    browser.wait_for(&format!("{ANNOUNCED} === 'The answer was lost.'")).await;
    assert_eq!(count_users(&site).await, users + 1);
    browser.open(&site.url("/sign-in")).await;
    browser.click("form button.main").await;
    browser.wait_for_path("/portfolio").await;

    browser.send("Network.clearBrowserCookies", json!({})).await;
    browser.open(&site.url("/sign-up")).await;
    browser.click_and_kill(&mut site, "form button.main", "/app/sign-up", Kill::Before).await;
    browser.wait_for(&format!("{ANNOUNCED} === 'The answer was lost.'")).await;
    assert_eq!(count_users(&site).await, users + 1);
    browser.click("form button.main").await;
    browser.wait_for_path("/welcome").await;
    assert_eq!(count_users(&site).await, users + 2);
}

#[tokio::test]
async fn an_act_at_a_kill_happens_once() {
    let Some((mut site, browser)) = chromium::start().await else { return };
    browser.run_before_pages(HOLD).await;
    browser.start_trading(&site).await;
    for (kill, cash) in [(Kill::After, "$990.00"), (Kill::Before, "$980.00")] {
        browser.open(&site.url("/withdraw")).await;
        browser.click("#to").await;
        browser.press("0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045").await;
        browser.execute::<()>("document.querySelector('input[name=amount]').value = ''").await;
        browser.click("input[name=amount]").await;
        browser.press("10").await;
        // Nothing is signed yet: the page asks to press again.
        let submit = "form[data-kind=withdraw] button.main";
        browser.click_and_kill(&mut site, submit, "/app/acts", kill).await;
        browser.wait_for(&format!("{ANNOUNCED} === 'The answer was lost.'")).await;
        browser.click(submit).await;
        browser.wait_for("document.querySelector('dialog[open] [data-calls] li')").await;
        // The page sends the signature again by itself, unless it has arrived.
        browser.click_and_kill(&mut site, "dialog[open] [data-passkey]", "/signature", kill).await;
        browser.wait_for_path("/acts/").await;
        assert_eq!(browser.text_of("main .badge").await, "Done");
        browser.open(&site.url("/portfolio")).await;
        let cash = format!("document.querySelector('main').textContent.includes('{cash}')");
        browser.wait_for(&format!("{cash} || (setTimeout(() => location.reload(), 200), false)")).await;
    }
}

#[tokio::test]
async fn an_order_at_a_kill_is_found_or_not_created() {
    let Some((mut site, browser)) = chromium::start().await else { return };
    browser.run_before_pages(HOLD).await;
    browser.start_trading(&site).await;
    browser.open(&site.url(&site.market("OPEN", true))).await;
    browser.enter_order("5").await;
    browser.click_and_kill(&mut site, "[data-part=submit]", "/app/trades", Kill::After).await;
    browser.wait_for(&format!("{STATE} === 'Done'")).await;
    browser.enter_order("7").await;
    browser.click_and_kill(&mut site, "[data-part=submit]", "/app/trades", Kill::Before).await;
    browser.wait_for(&format!("{ERROR}.startsWith('The trade was not created.')")).await;
    browser.enter_order("7").await;
    browser.click("[data-part=submit]").await;
    browser.wait_for(&format!("{STATE} === 'Done'")).await;
    browser.open(&site.url("/portfolio")).await;
    assert!(browser.text_of("main").await.contains("$988.00"));
}
