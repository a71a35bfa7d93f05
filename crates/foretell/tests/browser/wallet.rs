//! A person whose owner is a wallet, from signing up to the withdrawal.

use alloy_primitives::{B256, eip191_hash_message, hex};
use chain::Signer;
use serde_json::Value;

use crate::chromium::{self, Chromium};

/// Announces a wallet (EIP-6963) whose signatures the test makes: the page's requests wait in
/// `walletRequests`.
const WALLET: &str = r#"
    window.walletRequests = [];
    const chainId = () => document.querySelector("[data-chain-id]").dataset.chainId;
    const provider = { request: async ({ method, params }) => {
        if (method === "eth_requestAccounts") return ["ADDRESS"];
        if (method === "eth_chainId") return `0x${Number(chainId()).toString(16)}`;
        return new Promise((resolve) => window.walletRequests.push({ method, params, resolve }));
    } };
    const info = { uuid: "5f6e8b1c-0000-4000-8000-000000000001", name: "Test wallet", rdns: "test.wallet" };
    addEventListener("eip6963:requestProvider", () => dispatchEvent(
        new CustomEvent("eip6963:announceProvider", { detail: Object.freeze({ info, provider }) })));
"#;

/// A browser with a wallet.
struct WithWallet {
    browser: Chromium,
    signer: Signer,
}

impl WithWallet {
    /// Returns the method and the parameters of the page's request, once there is one.
    async fn request(&self) -> (String, Vec<String>) {
        self.browser.wait_for("walletRequests.length > 0").await;
        let request: Value =
            self.browser.value("(({ method, params }) => ({ method, params }))(walletRequests[0])").await;
        let params = request["params"].as_array().unwrap().iter();
        let params = params.map(|parameter| parameter.as_str().unwrap().to_owned()).collect();
        (request["method"].as_str().unwrap().to_owned(), params)
    }

    async fn answer(&self, digest: B256) {
        let signature = hex::encode_prefixed(self.signer.sign_digest(digest).unwrap());
        self.browser.execute::<()>(&format!("walletRequests.shift().resolve('{signature}')")).await;
    }

    /// Signs the text of a challenge, which must begin with the name of the site.
    async fn sign_text(&self) {
        let (method, params) = self.request().await;
        assert_eq!((method.as_str(), params[1].as_str()), ("personal_sign", self.address().as_str()));
        let text = hex::decode(&params[0]).unwrap();
        assert!(text.starts_with(b"localhost"), "{}", String::from_utf8_lossy(&text));
        self.answer(eip191_hash_message(text)).await;
    }

    /// Signs the open dialog's digest as typed data, and waits for the act's receipt.
    async fn sign_act(&self, sentence: &str) {
        let browser = &self.browser;
        browser.wait_for("document.querySelector('dialog[open] [data-wallets] button')").await;
        assert!(browser.value::<bool>("document.querySelector('dialog[open] [data-passkey]').hidden").await);
        let shown = browser.text_of("dialog[open] [data-calls]").await;
        assert!(shown.contains(sentence), "{shown}");
        let digest: B256 = browser.text_of("dialog[open] [data-digest]").await.parse().unwrap();
        browser.click("dialog[open] [data-wallets] button").await;
        let (method, params) = self.request().await;
        assert_eq!((method.as_str(), params[0].as_str()), ("eth_signTypedData_v4", self.address().as_str()));
        let data: Value = serde_json::from_str(&params[1]).unwrap();
        assert_eq!(
            (&data["primaryType"], &data["domain"]["name"]),
            (&"Batch".into(), &"Foretell Account".into())
        );
        self.answer(digest).await;
        browser.wait_for_path("/acts/").await;
        assert_eq!(browser.text_of("main .badge").await, "Done");
    }

    fn address(&self) -> String {
        self.signer.address().to_string()
    }
}

#[tokio::test]
async fn a_person_with_a_wallet_signs_up_trades_and_withdraws() {
    let Some((site, browser)) = chromium::start().await else { return };
    let signer = Signer::random([7; 32]).unwrap();
    let address = signer.address().to_string();
    browser.run_before_pages(&WALLET.replace("ADDRESS", &address)).await;
    let person = WithWallet { browser, signer };
    let browser = &person.browser;
    browser.open(&site.url("/sign-up")).await;
    browser.click("form details summary").await;
    browser.wait_for("document.querySelector('form .wallets button')").await;
    browser.click("form .wallets button").await;
    person.sign_text().await;
    browser.wait_for_path("/welcome").await;

    browser.click("form[action=\"/faucet\"] button").await;
    browser
        .wait_for("!document.querySelector('form[action=\"/faucet\"]') && document.readyState === 'complete'")
        .await;
    browser.click("form[data-kind=enable] button").await;
    person.sign_act("Allow the Gate to move USDC into your own trades").await;

    browser.open(&site.url(&site.market("OPEN", true))).await;
    browser.click("#amount").await;
    browser.press("20").await;
    browser.wait_for("document.querySelector('[data-quote=loss]').textContent === '20.00 USDC'").await;
    browser.click("[data-part=submit]").await;
    browser.wait_for("document.querySelector('[data-part=state]').textContent === 'Done'").await;

    browser.open(&site.url("/withdraw")).await;
    browser.click("#to").await;
    browser.press(&address).await;
    browser.click("input[value=all]").await;
    browser.click("form[data-kind=withdraw] button.main").await;
    person.sign_act(&format!("Send 980.00 USDC to {address}")).await;
    assert_eq!(browser.warnings().await, Vec::<String>::new());

    browser.click("details.menu summary").await;
    browser.click("details.menu form button").await;
    browser.wait_for("document.querySelector('a[href=\"/sign-in\"]')").await;
    browser.open(&site.url("/sign-in")).await;
    browser.click("form details summary").await;
    browser.wait_for("document.querySelector('form .wallets button')").await;
    browser.click("form .wallets button").await;
    person.sign_text().await;
    browser.wait_for_path("/portfolio").await;
    assert!(browser.text_of("main table").await.contains("Yes"));
}
