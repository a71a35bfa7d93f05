//! Owners of the account, and keys that only sign in.

use alloy_primitives::{Address, eip191_hash_message, hex};
use chain::Signer;
use domain::time::MINUTE_MS;
use http_testkit::Answer;
use serde_json::{Value, json};
use testkit::TestApp;

use crate::people::{Browser, funded, rejected, trader};

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

    // The lost device is signed out, and cannot sign in.
    let body =
        json!({ "kind": "withdraw", "to": Address::repeat_byte(1), "amount": "1000000", "how": "some" });
    let refused = first.post("/app/acts", body).await;
    assert_eq!(refused.json()["code"], "SIGNED_OUT", "{refused}");
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

#[tokio::test]
async fn a_page_tells_who_else_can_move_the_money_before_there_is_any() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    browser.sign_up("Maya").await;
    let pages = ["/deposit", "/welcome", "/portfolio"];
    for path in pages {
        assert!(!browser.get(path).await.text.contains("can move this money"), "{path}");
    }
    for (paper, words) in
        [(1, "1 other owner can move this money"), (2, "2 other owners can move this money")]
    {
        let owner = Address::repeat_byte(paper).to_string();
        assert_eq!(done(&app, &mut browser, json!({ "kind": "add_owner", "owner": owner })).await, "done");
        for path in pages {
            let page = browser.get(path).await.text.replace("</b>", "");
            assert!(page.contains(words), "{path} {page}");
        }
    }
    // They are shown, and marked as owners that cannot sign in.
    let page = browser.get(PATH).await;
    assert_eq!(page.text.matches(">Not confirmed</span>").count(), 2, "{page}");
    assert!(page.text.contains("Not every owner can sign in here"), "{page}");
    app.mint(browser.address().await, domain::Usdc::from_whole(5)).await;
    assert!(browser.get("/deposit").await.text.contains("2 other owners can move"));
    assert!(!browser.get("/portfolio").await.text.contains("can move this money"));
}

#[tokio::test]
async fn an_owner_is_not_removed_by_a_form_that_no_page_shows() {
    let app = TestApp::new().await;
    let mut first = trader(&app, 100).await;
    add_device(&app, &first).await;
    let page = first.get(PATH).await;
    let removal = page.text.split("action=\"").find(|it| it.starts_with("/settings/credentials/")).unwrap();
    let removal = removal.split('"').next().unwrap().to_owned();
    let phone = listed(&mut first, "add_owner").await.remove(0);
    assert_eq!(done(&app, &mut first, json!({ "kind": "add_owner", "owner": phone })).await, "done");
    assert!(!first.get(PATH).await.text.contains(&removal));
    let refused = first.submit(&removal, &[]).await;
    assert!(refused.status.as_u16() == 409 && refused.text.contains("CREDENTIAL_OWNS_ACCOUNT"), "{refused}");
    assert_eq!(done(&app, &mut first, json!({ "kind": "remove_owner", "owner": phone })).await, "done");
    assert_eq!(first.submit(&removal, &[]).await.header("location"), Some(PATH));
}

impl Browser {
    /// Signs the text of a challenge with a wallet, which may name an account. Returns the body that
    /// proves it.
    async fn wallet_proof(&mut self, purpose: &str, wallet: &Signer, account: Option<Address>) -> Value {
        let body = json!({ "purpose": purpose, "address": wallet.address(), "account": account });
        let issued = self.post("/app/challenges", body).await.json();
        let text = issued["text"].as_str().unwrap();
        let signature = wallet.sign_digest(eip191_hash_message(text)).unwrap();
        json!({ "challengeId": issued["id"], "wallet": {
            "address": wallet.address(), "account": account, "signature": hex::encode_prefixed(signature),
        }})
    }
}

#[tokio::test]
async fn a_wallet_with_several_accounts_chooses_one_and_confirms_one_that_it_owns() {
    let app = TestApp::new().await;
    let wallet = Signer::random([7; 32]).unwrap();
    let mut own = Browser::new(&app);
    let proof = own.wallet_proof("sign-up", &wallet, None).await;
    assert_eq!(own.post("/app/sign-up", proof).await.json()["next"], "/welcome");
    let own_account = own.address().await;

    // A stranger adds it as an owner: it signs in to its own account, as before.
    let mut eve = Browser::new(&app);
    eve.sign_up("Eve").await;
    let owner = wallet.address().to_string();
    assert_eq!(done(&app, &mut eve, json!({ "kind": "add_owner", "owner": owner })).await, "done");
    own.cookie = None;
    let proof = own.wallet_proof("sign-in", &wallet, None).await;
    assert_eq!(own.post("/app/sign-in", proof).await.status.as_u16(), 200);
    assert_eq!(own.address().await, own_account);

    // Another person adds it with its own signature, which names the account.
    app.clock.advance(1_000);
    let mut maya = funded(&app, 10).await;
    let shared = maya.address().await;
    let asked = json!({ "purpose": "add-sign-in-key", "address": wallet.address(), "account": own_account });
    let asked = maya.post("/app/challenges", asked).await.json();
    let text = asked["text"].as_str().unwrap();
    assert!(text.contains(&shared.to_string()) && !text.contains(&own_account.to_string()), "{text}");
    let proof = maya.wallet_proof("add-sign-in-key", &wallet, None).await;
    assert_eq!(maya.post("/app/credentials", proof).await.json()["next"], PATH);
    own.cookie = None;
    let mut proof = own.wallet_proof("sign-in", &wallet, None).await;
    let several = own.post("/app/sign-in", proof.clone()).await;
    rejected(&several, 409, "SEVERAL_ACCOUNTS");
    let listed: Vec<_> = several.json()["extensions"]["accounts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].clone())
        .collect();
    assert_eq!(listed, ["New user", "Maya"]);
    proof["account"] = json!(shared);
    assert_eq!(own.post("/app/sign-in", proof).await.status.as_u16(), 200);
    assert_eq!(own.address().await, shared);

    // The stranger's account only if the wallet signs its address itself.
    own.cookie = None;
    let stranger = eve.address().await;
    assert!(eve.get("/deposit").await.text.contains("1 other owner can move this money"));
    let mut proof = own.wallet_proof("sign-in", &wallet, None).await;
    proof["account"] = json!(stranger);
    rejected(&own.post("/app/sign-in", proof.clone()).await, 403, "UNKNOWN_CREDENTIAL");
    proof["wallet"]["account"] = json!(stranger);
    rejected(&own.post("/app/sign-in", proof).await, 403, "WALLET_SIGNATURE_INVALID");
    let proof = own.wallet_proof("sign-in", &wallet, Some(stranger)).await;
    assert_eq!(own.post("/app/sign-in", proof).await.status.as_u16(), 200);
    assert_eq!(own.address().await, stranger);
}
