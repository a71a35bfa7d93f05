//! Owners of the account, and keys that only sign in.

use alloy_primitives::Address;
use domain::time::MINUTE_MS;
use http_testkit::Answer;
use serde_json::{Value, json};
use testkit::TestApp;

use crate::people::{Browser, funded, trader};

const PATH: &str = "/settings/security";

/// Adds the passkey of a second device in the session of the first. Returns the second device.
async fn add_device(app: &TestApp, first: &Browser) -> (Browser, Answer) {
    let mut second = Browser::new(app);
    second.cookie = first.cookie.clone();
    let challenge = second.challenge("add-sign-in-key").await;
    let passkey = second.registration(&challenge);
    let body = json!({ "challengeId": challenge.to_string(), "name": "Phone", "passkey": passkey });
    let added = second.post("/app/credentials", body).await;
    second.cookie = None;
    (second, added)
}

/// Returns the owners that the page can remove, or the keys that it can make owners.
async fn listed(browser: &mut Browser, kind: &str) -> Vec<String> {
    let page = browser.get(PATH).await;
    let mark = format!("data-kind=\"{kind}\"");
    let forms = page.text.split(&mark).skip(1);
    let owners = forms.filter_map(|form| form.split_once("name=\"owner\" value=\"")?.1.split('"').next());
    owners.map(str::to_owned).collect()
}

async fn done(app: &TestApp, browser: &mut Browser, body: Value) -> String {
    let signed = browser.act(body).await;
    app.run_workers().await;
    let id = signed.json()["id"].as_str().unwrap_or_else(|| panic!("{signed}")).to_owned();
    browser.get(&format!("/app/acts/{id}")).await.json()["state"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_second_passkey_becomes_an_owner_and_removes_a_lost_one() {
    let app = TestApp::new().await;
    let mut first = trader(&app, 100).await;
    let only = first.get(PATH).await;
    assert!(only.text.contains("Only one owner") && only.text.contains("The only one"), "{only}");
    let (mut second, added) = add_device(&app, &first).await;
    assert_eq!(added.json()["next"], PATH, "{added}");
    let candidates = listed(&mut first, "add_owner").await;
    let phone = candidates.first().unwrap();
    assert_eq!(done(&app, &mut first, json!({ "kind": "add_owner", "owner": phone })).await, "done");

    // The first device is lost. The second one signs in, and removes it.
    assert_eq!(second.prove("sign-in").await.status.as_u16(), 200);
    let owners = listed(&mut second, "remove_owner").await;
    let lost = owners.iter().find(|owner| *owner != phone).unwrap();
    assert_eq!(done(&app, &mut second, json!({ "kind": "remove_owner", "owner": lost })).await, "done");
    assert!(second.get(PATH).await.text.contains("The only one"));
    let last = second.post("/app/acts", json!({ "kind": "remove_owner", "owner": phone })).await;
    assert!(last.status.as_u16() == 400 && last.text.contains("must not be the only owner"), "{last}");

    // The lost device can sign nothing any more, and cannot sign in.
    let body =
        json!({ "kind": "withdraw", "to": Address::repeat_byte(1), "amount": "1000000", "how": "some" });
    let refused = first.act(body).await;
    assert_eq!(refused.json()["code"], "VALIDATION_FAILED", "{refused}");
    assert_eq!(first.beside().prove("sign-in").await.json()["code"], "UNKNOWN_CREDENTIAL");
}

#[tokio::test]
async fn an_owner_chosen_before_the_first_act_is_added_by_it() {
    let app = TestApp::new().await;
    let mut browser = funded(&app, 100).await;
    let paper = Address::repeat_byte(0x42).to_string();
    let wrong = browser.submit(&format!("{PATH}/second-owner"), &[("owner", "0x42")]).await;
    assert_eq!(wrong.status.as_u16(), 400, "{wrong}");
    let chosen = browser.submit(&format!("{PATH}/second-owner"), &[("owner", &paper)]).await;
    assert_eq!(chosen.header("location"), Some(PATH), "{chosen}");
    assert!(
        browser.get(PATH).await.text.to_lowercase().contains(&format!("value=\"{}\"", paper.to_lowercase()))
    );
    assert_eq!(done(&app, &mut browser, json!({ "kind": "enable" })).await, "done");
    let page = browser.get(PATH).await;
    assert!(page.text.contains(&paper) && !page.text.contains("Only one owner"), "{page}");
}

#[tokio::test]
async fn a_stolen_session_adds_no_key_and_chooses_no_owner() {
    let app = TestApp::new().await;
    let (mut ada, mut ben) = (Browser::new(&app), Browser::new(&app));
    ada.sign_up("Ada").await;
    ben.sign_up("Ben").await;
    let (_, added) = add_device(&app, &ada).await;
    assert_eq!(added.status.as_u16(), 200, "{added}");
    let page = ada.get(PATH).await;
    let removal = page.text.split("action=\"").find(|it| it.starts_with("/settings/credentials/")).unwrap();
    let removal = removal.split('"').next().unwrap();
    // Another person's key is not there.
    assert_eq!(ben.submit(removal, &[]).await.status.as_u16(), 404);

    app.advance_ms(6 * MINUTE_MS).await;
    let (_, refused) = add_device(&app, &ada).await;
    assert_eq!(refused.json()["code"], "STEP_UP_REQUIRED", "{refused}");
    for (path, fields) in [
        (removal, &[][..]),
        ("/settings/security/second-owner", &[("owner", "0x4242424242424242424242424242424242424242")]),
    ] {
        let refused = ada.submit(path, fields).await;
        assert!(
            refused.status.as_u16() == 403 && refused.text.contains("STEP_UP_REQUIRED"),
            "{path}\n{refused}"
        );
    }
    ada.prove("step-up").await;
    assert_eq!(ada.submit(removal, &[]).await.header("location"), Some(PATH));
    assert!(!ada.get(PATH).await.text.contains("Phone</b>"));
}
