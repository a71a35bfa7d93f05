//! Pages while the world outside fails: the chain, the operator's switches, the session, and others
//! who want to act for the person.

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use serde_json::{Value, json};
use testkit::RpcFault;
use tokio::net::TcpListener;

use crate::chromium::{self, Chromium};
use crate::pages::{Rules, find_faults};
use crate::site::Site;

/// A window's width and the system's theme.
pub type Screen = (u32, &'static str);

const SCREENS: [Screen; 4] = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")];
const TICKET: &str = "document.querySelector('#ticket')";
const BANNER: &str = "document.querySelector('[data-stop]')?.textContent";

impl Chromium {
    /// Signs up, gets test money and enables trading.
    pub async fn start_trading(&self, site: &Site) {
        self.add_authenticator().await;
        self.open(&site.url("/sign-up")).await;
        self.click("form button.main").await;
        self.wait_for_path("/welcome").await;
        self.click("form[action=\"/faucet\"] button").await;
        self.wait_for(
            "!document.querySelector('form[action=\"/faucet\"]') && document.readyState === 'complete'",
        )
        .await;
        self.click("form[data-kind=enable] button").await;
        self.sign_act("Allow the Gate to move USDC into your own trades").await;
    }

    /// Loads the page again until a condition is true.
    pub async fn reload_until(&self, condition: &str) {
        self.wait_for(&format!("{condition} || (setTimeout(() => location.reload(), 200), false)")).await;
    }

    /// Opens pages on each screen, and checks that they are accessible. `state` names the state that
    /// they show.
    pub async fn check_pages(&self, site: &Site, screens: &[Screen], paths: &[&str], axe: &str, state: &str) {
        let mut faults = Vec::new();
        for path in paths {
            for &(width, theme) in screens {
                self.set_width(width).await;
                self.set_system_theme(theme).await;
                self.open(&site.url(path)).await;
                let is_dark_of_pair = theme == "dark" && screens.contains(&(width, "light"));
                let rules = if is_dark_of_pair { Rules::Colors } else { Rules::All };
                let found = find_faults(self, axe, rules).await;
                faults.extend(found.into_iter().map(|fault| format!("{path}, {width}, {theme}: {fault}")));
                let page = path.replace('/', "-");
                self.save_screenshot(&format!("{state}{page}-{width}-{theme}")).await;
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    /// Returns the session's cookie, as a thief copies it from the browser's files.
    async fn session_cookie(&self) -> Value {
        let cookies = self.send("Network.getCookies", json!({})).await;
        let all = cookies["cookies"].as_array().unwrap();
        all.iter().find(|cookie| cookie["name"] == "__Host-session").unwrap().clone()
    }

    async fn enter_session(&self, site: &Site, cookie: &Value) {
        let set = json!({
            "name": cookie["name"], "value": cookie["value"], "url": site.url("/"), "path": "/",
            "secure": true, "httpOnly": true, "sameSite": "Lax",
        });
        assert_eq!(self.send("Network.setCookie", set).await["success"], true);
    }
}

#[tokio::test]
async fn a_page_says_why_nobody_can_trade_and_opens_its_ticket_again() {
    let Some((mut site, browser)) = chromium::start().await else { return };
    let axe = chromium::axe();
    browser.start_trading(&site).await;
    let market = site.market("OPEN", true);
    browser.open(&site.url(&market)).await;
    browser.wait_for(TICKET).await;

    site.admin(&["switch", "halt", "--reason", "The oracle is checked."]).await;
    browser.reload_until(&format!("{BANNER}?.includes('The oracle is checked.')")).await;
    assert!(!browser.value::<bool>(&format!("Boolean({TICKET})")).await);
    let paths = [market.as_str(), "/markets", "/portfolio", "/status"];
    browser.check_pages(&site, &SCREENS, &paths, &axe, "halted").await;
    site.admin(&["switch", "resume"]).await;
    browser.open(&site.url(&market)).await;
    browser.reload_until(&format!("{TICKET} && !{BANNER}")).await;

    let node = site.detach_chain().await;
    browser.open(&site.url(&market)).await;
    browser.reload_until(&format!("{TICKET} && !{BANNER}")).await;
    node.set(RpcFault::Refused).await;
    browser.reload_until(&format!("{BANNER}?.includes('Prices are those of')")).await;
    assert!(!browser.value::<bool>(&format!("Boolean({TICKET})")).await);
    browser.check_pages(&site, &SCREENS, &paths, &axe, "chain-away").await;
    node.heal();
    browser.open(&site.url(&market)).await;
    browser.reload_until(&format!("{TICKET} && !{BANNER}")).await;
    browser.click("#amount").await;
    browser.press("5").await;
    browser.wait_for("document.querySelector('[data-quote=loss]').textContent === '5.00 USDC'").await;
    browser.click("[data-part=submit]").await;
    browser.wait_for("document.querySelector('[data-part=state]').textContent === 'Done'").await;
}

#[tokio::test]
async fn a_session_that_ended_meanwhile_keeps_the_form_and_leads_back_to_it() {
    let Some((site, browser)) = chromium::start().await else { return };
    let axe = chromium::axe();
    browser.start_trading(&site).await;
    browser.open(&site.url("/settings/keys")).await;
    browser.click("#name").await;
    browser.press("Night bot").await;
    let [form, other] = browser.open_tab().await;
    browser.open(&site.url(&site.market("OPEN", true))).await;
    browser.click("details.menu summary").await;
    browser.click("details.menu form button").await;
    browser.wait_for("document.querySelector('a[href=\"/sign-in\"]')").await;
    drop(other);

    browser.switch_to(&form).await;
    browser.click("#issue button.main").await;
    browser.wait_for_path("/sign-in").await;
    browser.assert_accessible(&axe).await;
    browser.click("form button.main").await;
    browser.wait_for_path("/settings/keys").await;
    assert_eq!(browser.value::<String>("document.getElementById('name').value").await, "Night bot");
    browser.click("#issue button.main").await;
    browser.wait_for("document.querySelector('.secret code')").await;

    // A ticket asks to sign in, and sends nothing.
    browser.open(&site.url(&site.market("OPEN", true))).await;
    browser.send("Network.clearBrowserCookies", json!({})).await;
    browser.click("#amount").await;
    browser.press("5").await;
    browser.wait_for("document.querySelector('[data-part=error]').textContent.includes('signed out')").await;
    assert!(browser.value::<bool>("document.querySelector('[data-part=submit]').disabled").await);
}

#[tokio::test]
async fn a_copied_session_moves_no_money() {
    let Some((site, browser)) = chromium::start().await else { return };
    browser.start_trading(&site).await;
    let cookie = browser.session_cookie().await;
    // The thief's browser has no passkey of the account.
    let thief = Chromium::launch().await;
    thief.add_authenticator().await;
    thief.open(&site.url("/")).await;
    thief.enter_session(&site, &cookie).await;
    thief.open(&site.url("/withdraw")).await;
    thief.click("#to").await;
    thief.press("0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045").await;
    thief.click("input[value=all]").await;
    thief.click("form[data-kind=withdraw] button.main").await;
    thief.wait_for("document.querySelector('dialog[open] [data-calls] li')").await;
    thief.click("dialog[open] [data-passkey]").await;
    thief.wait_for("document.querySelector('dialog[open] [data-announce]').textContent").await;
    thief.open(&site.url("/portfolio")).await;
    assert!(thief.text_of("main").await.contains("$1,000.00"));
    // The person ends all other sessions, or only this one.
    browser.click("details.menu summary").await;
    browser.click("details.menu form button").await;
    browser.wait_for("document.querySelector('a[href=\"/sign-in\"]')").await;
    thief.open(&site.url("/portfolio")).await;
    thief.wait_for_path("/sign-in").await;
}

#[tokio::test]
async fn another_site_neither_frames_a_page_nor_acts_for_the_person() {
    let Some((site, browser)) = chromium::start().await else { return };
    browser.start_trading(&site).await;
    let page = format!(
        "<!doctype html><title>Other</title><iframe src=\"{}\"></iframe>
        <form method=\"post\" action=\"{}\"><button>Win</button></form>",
        site.url("/withdraw"),
        site.url("/settings/security/pause")
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let other = format!("http://{}/", listener.local_addr().unwrap());
    let routes = Router::new().route("/", get(async move || Html(page)));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    browser.warnings().await;
    browser.open(&other).await;
    let warnings = browser.warnings().await;
    assert!(warnings.iter().any(|warning| warning.contains("frame-ancestors")), "{warnings:?}");

    browser.click("button").await;
    browser.wait_for("document.body.textContent.includes('must come from this site')").await;
    browser.open(&site.url("/settings/security")).await;
    assert!(!browser.text_of("main").await.contains("Trading on this site is paused."));
}
