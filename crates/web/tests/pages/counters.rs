//! Signature counters of passkeys, which show that there is a copy of a passkey.

use alloy_primitives::B256;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::json;
use testkit::TestApp;

use super::people::Browser;

#[tokio::test]
async fn a_copy_of_a_passkey_with_an_older_counter_signs_no_act() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    (browser.key.counter, browser.key.counter_step) = (7, 1);
    browser.sign_up("Maya").await;
    let mut copy = browser.beside();
    copy.cookie.clone_from(&browser.cookie);
    let signed = browser.act(json!({ "kind": "enable" })).await;
    assert_eq!(signed.json()["state"], "signed", "{signed}");
    app.run_workers().await;
    let refused = copy.act(json!({ "kind": "end_approval" })).await;
    assert_eq!(refused.status.as_u16(), 400, "{refused}");
    assert!(refused.text.contains("must be newer than the last use of the passkey"), "{refused}");
    let signed = browser.act(json!({ "kind": "end_approval" })).await;
    assert_eq!(signed.json()["state"], "signed", "{signed}");
}

#[tokio::test]
async fn the_same_signature_of_a_counting_passkey_is_accepted_again() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    (browser.key.counter, browser.key.counter_step) = (7, 1);
    browser.sign_up("Maya").await;
    let act = browser.post("/app/acts", json!({ "kind": "enable" })).await.json();
    let digest: B256 = act["digest"].as_str().unwrap().parse().unwrap();
    let made = browser.key.assert(digest.as_slice());
    let (r, s) = made.scalars().unwrap();
    let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let body = json!({ "passkey": {
        "credentialId": encode(&made.credential_id), "clientDataJson": encode(&made.client_data_json),
        "authenticatorData": encode(&made.authenticator_data), "r": r, "s": s,
    }});
    let path = format!("/app/acts/{}/signature", act["id"].as_str().unwrap());
    for _ in 0..2 {
        let signed = browser.post(&path, body.clone()).await;
        assert_eq!(signed.json()["state"], "signed", "{signed}");
    }
}
