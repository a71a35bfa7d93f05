//! A person who signs up with a passkey, trades and withdraws.

use serde_json::json;

use crate::chromium::{self, Chromium};
use crate::pages::{Rules, find_faults};

/// The receiver of the withdrawal: an address with a checksum.
const WALLET: &str = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045";

impl Chromium {
    /// Adds an authenticator that answers every request of the page at once. Returns its id.
    pub async fn add_authenticator(&self) -> String {
        self.send("WebAuthn.enable", json!({})).await;
        let options = json!({
            "protocol": "ctap2", "transport": "internal", "hasResidentKey": true, "hasUserVerification": true,
            "isUserVerified": true, "automaticPresenceSimulation": true,
        });
        let added = self.send("WebAuthn.addVirtualAuthenticator", json!({ "options": options })).await;
        added["authenticatorId"].as_str().unwrap().to_owned()
    }

    /// Returns the text of the first element that matches a CSS selector.
    pub async fn text_of(&self, selector: &str) -> String {
        self.value(&format!("document.querySelector('{selector}').textContent")).await
    }

    pub async fn wait_for_path(&self, beginning: &str) {
        self.wait_for(&format!(
            "location.pathname.startsWith('{beginning}') && document.readyState === 'complete'"
        ))
        .await;
    }

    /// Signs the open dialog with the passkey, and waits for the act's receipt.
    pub async fn sign_act(&self, sentence: &str) {
        self.wait_for("document.querySelector('dialog[open] [data-calls] li')").await;
        let shown = self.text_of("dialog[open] [data-calls]").await;
        assert!(shown.contains(sentence), "{shown}");
        self.click("dialog[open] [data-passkey]").await;
        self.wait_for_path("/acts/").await;
        assert_eq!(self.text_of("main .badge").await, "Done");
    }

    pub async fn assert_accessible(&self, axe: &str) {
        let faults = find_faults(self, axe, Rules::All).await;
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}

#[tokio::test]
async fn a_person_signs_up_trades_and_withdraws_with_a_passkey() {
    let Some((site, browser)) = chromium::start().await else { return };
    let axe = chromium::axe();
    browser.set_system_theme("dark").await;
    browser.add_authenticator().await;
    browser.open(&site.url("/sign-up")).await;
    browser.assert_accessible(&axe).await;
    browser.click("form button.main").await;
    browser.wait_for_path("/welcome").await;
    browser.assert_accessible(&axe).await;

    browser.click("form[action=\"/faucet\"] button").await;
    browser
        .wait_for("!document.querySelector('form[action=\"/faucet\"]') && document.readyState === 'complete'")
        .await;
    assert!(browser.text_of("main").await.contains("Cash: $1,000.00"));
    browser.execute::<()>("document.getElementById('per-trade').value = '100'").await;
    browser.execute::<()>("document.getElementById('daily').value = '200'").await;
    browser.click("form[data-kind=enable] button").await;
    browser.sign_act("Allow the Gate to move USDC into your own trades").await;

    browser.open(&site.url(&site.market("OPEN", true))).await;
    browser.assert_accessible(&axe).await;
    assert_eq!(browser.text_of("#amount-help").await, "An owner signs each order above $100.00.");
    browser.click("#amount").await;
    browser.press("50").await;
    browser.wait_for("document.querySelector('[data-quote=loss]').textContent === '50.00 USDC'").await;
    browser.click("[data-part=submit]").await;
    browser.wait_for("document.querySelector('[data-part=state]').textContent === 'Done'").await;
    browser.click("[data-part=receipt]").await;
    browser.wait_for_path("/trades/").await;
    assert!(browser.text_of("h1").await.ends_with("for $50.00"));
    browser.assert_accessible(&axe).await;

    assert!(browser.text_of("main").await.contains("Done"));

    // Above the caps, the owner signs the order itself.
    browser.open(&site.url(&site.market("OPEN", true))).await;
    browser.click("#amount").await;
    browser.press("150").await;
    browser.wait_for("document.querySelector('[data-quote=loss]').textContent === '150.00 USDC'").await;
    browser.click("[data-part=submit]").await;
    browser.sign_act("Allow the market hub to take 150.00 USDC for a purchase of yours.").await;
    browser.assert_accessible(&axe).await;

    for path in [
        "/welcome",
        "/settings/security",
        "/deposit",
        "/portfolio",
        "/notifications",
        "/settings/preferences",
    ] {
        browser.open(&site.url(path)).await;
        browser.assert_accessible(&axe).await;
    }
    browser.open(&site.url("/settings/security")).await;
    browser.click("#owner").await;
    browser.press(WALLET).await;
    browser.click("form[data-kind=add_owner] button").await;
    browser.sign_act(&format!("Add the wallet {WALLET} as an owner")).await;
    browser.open(&site.url("/settings/security")).await;
    assert!(browser.text_of("main table").await.contains(WALLET));

    browser.open(&site.url("/withdraw")).await;
    browser.assert_accessible(&axe).await;
    browser.click("#to").await;
    browser.press(WALLET).await;
    browser.click("input[value=all]").await;
    browser.click("form[data-kind=withdraw] button.main").await;
    browser.sign_act(&format!("Send 800.00 USDC to {WALLET}")).await;
    // Chromium asks for RSA too, which can never own an account.
    let warnings =
        browser.warnings().await.into_iter().filter(|warning| !warning.contains("pubKeyCredParams"));
    assert_eq!(warnings.collect::<Vec<_>>(), Vec::<String>::new());

    browser.click("details.menu summary").await;
    browser.click("details.menu form button").await;
    browser.wait_for("document.querySelector('a[href=\"/sign-in\"]')").await;
    browser.open(&site.url("/sign-in")).await;
    browser.click("form button.main").await;
    browser.wait_for_path("/portfolio").await;
    assert!(browser.text_of("main table").await.contains("Yes"));
}
