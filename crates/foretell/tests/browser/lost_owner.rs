//! A person loses the device with the first owner of the account.

use serde_json::{Value, json};

use crate::chromium::{self, Chromium};

/// The third owner: an address with a checksum.
const WALLET: &str = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045";

impl Chromium {
    /// Takes an authenticator away and returns its passkeys.
    async fn unplug(&self, id: &str) -> Vec<Value> {
        let kept = self.send("WebAuthn.getCredentials", json!({ "authenticatorId": id })).await;
        self.send("WebAuthn.removeVirtualAuthenticator", json!({ "authenticatorId": id })).await;
        kept["credentials"].as_array().unwrap().clone()
    }

    /// Adds an authenticator with these passkeys.
    async fn plug(&self, passkeys: &[Value]) -> String {
        let id = self.add_authenticator().await;
        for passkey in passkeys {
            let added = json!({ "authenticatorId": id, "credential": passkey });
            self.send("WebAuthn.addCredential", added).await;
        }
        id
    }

    async fn sign_out(&self) {
        self.click("details.menu summary").await;
        self.click("details.menu form button").await;
        self.wait_for("document.querySelector('a[href=\"/sign-in\"]')").await;
    }
}

#[tokio::test]
async fn a_second_owner_replaces_a_lost_one_which_then_signs_nothing() {
    let Some((site, browser)) = chromium::start().await else { return };
    let security = site.url("/settings/security");
    let phone = browser.add_authenticator().await;
    browser.open(&site.url("/sign-up")).await;
    browser.click("form button.main").await;
    browser.wait_for_path("/welcome").await;
    browser.click("form[action=\"/faucet\"] button").await;
    browser
        .wait_for("!document.querySelector('form[action=\"/faucet\"]') && document.readyState === 'complete'")
        .await;
    browser.click("form[data-kind=enable] button").await;
    browser.sign_act("Allow the Gate to move USDC into your own trades").await;

    // The laptop gets a passkey, and the phone makes it an owner.
    let on_phone = browser.unplug(&phone).await;
    let laptop = browser.plug(&[]).await;
    browser.open(&security).await;
    browser.click("#key-name").await;
    browser.press("Laptop").await;
    browser.click("form[action=\"/app/credentials\"] button").await;
    browser.wait_for("document.querySelector('table form[data-kind=add_owner]')").await;
    let on_laptop = browser.unplug(&laptop).await;
    let phone = browser.plug(&on_phone).await;
    browser.click("table form[data-kind=add_owner] button").await;
    browser.sign_act("Add the passkey 0x").await;

    // The phone is lost. The laptop signs in, adds a wallet and removes the phone.
    browser.sign_out().await;
    let on_phone = browser.unplug(&phone).await;
    let laptop = browser.plug(&on_laptop).await;
    browser.open(&site.url("/sign-in")).await;
    browser.click("form button.main").await;
    browser.wait_for_path("/portfolio").await;
    browser.open(&security).await;
    browser.click("#owner").await;
    browser.press(WALLET).await;
    browser.click("section > form[data-kind=add_owner] button").await;
    browser.sign_act(&format!("Add the wallet {WALLET} as an owner")).await;
    browser.open(&security).await;
    browser.click("table form[data-kind=remove_owner] button").await;
    browser.sign_act("Remove").await;
    browser.open(&security).await;
    assert_eq!(
        browser
            .value::<usize>("document.querySelectorAll('table form[data-kind=remove_owner]').length")
            .await,
        2
    );

    // Whoever has the phone can neither sign an act in the open session nor sign in.
    browser.unplug(&laptop).await;
    browser.plug(&on_phone).await;
    browser.open(&site.url("/withdraw")).await;
    browser.click("#to").await;
    browser.press(WALLET).await;
    browser.click("input[value=all]").await;
    browser.click("form[data-kind=withdraw] button.main").await;
    browser.wait_for("document.querySelector('dialog[open] [data-calls] li')").await;
    browser.click("dialog[open] [data-passkey]").await;
    browser
        .wait_for("document.querySelector('dialog[open] [data-announce]').textContent.includes('cancelled')")
        .await;
    browser.click("dialog[open] form button").await;
    browser.sign_out().await;
    browser.open(&site.url("/sign-in")).await;
    browser.click("form button.main").await;
    browser.wait_for("document.querySelector('form [data-announce]').textContent !== ''").await;
    assert_eq!(browser.value::<String>("location.pathname").await, "/sign-in");
}
