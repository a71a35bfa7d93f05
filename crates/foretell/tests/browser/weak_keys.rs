//! Authenticators that cannot own an account, and prompts that end without a passkey.

use serde_json::json;

use crate::chromium::{self, Chromium};

/// Makes the authenticator answer like one that has only RSA.
const ONLY_RSA: &str = "navigator.credentials.create = async ({ publicKey }) => {
    if (publicKey.pubKeyCredParams.some(({ alg }) => alg !== -7)) throw new Error('asked for more than ES256');
    throw new DOMException('no supported algorithm', 'NotSupportedError');
}";

async fn sign_up(browser: &Chromium, message: &str) {
    browser.click("form button.main").await;
    browser
        .wait_for(&format!(
            "document.querySelector('form [data-announce]').textContent.includes('{message}')"
        ))
        .await;
    assert_eq!(browser.value::<String>("location.pathname").await, "/sign-up");
}

#[tokio::test]
async fn a_sign_up_without_a_suitable_passkey_says_why_and_can_be_repeated() {
    let Some((site, browser)) = chromium::start().await else { return };
    browser.open(&site.url("/sign-up")).await;
    browser.execute::<()>(ONLY_RSA).await;
    sign_up(&browser, "This device cannot make such a passkey").await;

    // A user who is not verified, as after a wrong PIN, ends the prompt.
    let id = browser.add_authenticator().await;
    browser.send("WebAuthn.setUserVerified", json!({ "authenticatorId": id, "isUserVerified": false })).await;
    browser.open(&site.url("/sign-up")).await;
    sign_up(&browser, "The request was cancelled or timed out. Try again.").await;

    browser.send("WebAuthn.setUserVerified", json!({ "authenticatorId": id, "isUserVerified": true })).await;
    browser.click("form button.main").await;
    browser.wait_for_path("/welcome").await;
}
