//! Signing up, signing in, and the pages of an account.

use alloy_primitives::{Address, B256};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use domain::Usdc;
use domain::passkey::Challenge;
use http_testkit::{Anonymous, Answer, Client, ServeHttp};
use serde_json::{Value, json};
use testkit::{SoftKey, TestApp};

/// A person's browser: its cookie, and the passkey of its owner.
pub struct Browser {
    pub client: Client<Anonymous>,
    pub cookie: Option<String>,
    /// Further headers, such as those of a proxy.
    pub headers: Vec<(&'static str, &'static str)>,
    pub key: SoftKey,
}

fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

impl Browser {
    pub fn new(app: &TestApp) -> Self {
        let mut key = app.soft_key();
        // A synced passkey, which does not count its uses.
        (key.counter, key.counter_step) = (0, 0);
        Self { client: app.http().anonymous(), cookie: None, headers: Vec::new(), key }
    }

    /// A second browser that has the same passkey.
    pub fn beside(&self) -> Self {
        Self {
            cookie: None,
            client: self.client.clone(),
            headers: self.headers.clone(),
            key: self.key.clone(),
        }
    }

    pub async fn send(&mut self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let mut request = self.client.call(method, path).header("sec-fetch-site", "same-origin");
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        for (name, value) in &self.headers {
            request = request.header(name, *value);
        }
        let answer = match body {
            Some(body) => {
                request.header("content-type", "application/json").body(body.to_string()).send().await
            }
            None => request.send().await,
        };
        if let Some(set) = answer.header("set-cookie") {
            self.cookie = Some(set.split(';').next().unwrap().to_owned());
        }
        answer
    }

    pub async fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path, None).await
    }

    pub async fn post(&mut self, path: &str, body: Value) -> Answer {
        self.send("POST", path, Some(body)).await
    }

    /// Sends a form.
    pub async fn submit(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let encoded = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = self.client.call("POST", path).header("sec-fetch-site", "same-origin");
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        request.header("cookie", self.cookie.clone().unwrap_or_default()).body(encoded).send().await
    }

    pub async fn challenge(&mut self, purpose: &str) -> Challenge {
        let answer = self.post("/app/challenges", json!({ "purpose": purpose })).await;
        assert_eq!(answer.status.as_u16(), 201, "{answer}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        answer.json()["challenge"].as_str().unwrap().parse().unwrap()
    }

    pub fn registration(&mut self, challenge: &Challenge) -> Value {
        let made = self.key.register(challenge);
        json!({
            "id": encode(&made.credential_id),
            "clientDataJson": encode(&made.client_data_json),
            "authenticatorData": encode(&made.authenticator_data),
            "publicKey": format!("0x{}", alloy_primitives::hex::encode(&made.public_key)),
            "transports": made.transports,
        })
    }

    pub fn assertion(&mut self, challenge: &Challenge) -> Value {
        let made = self.key.assert(&challenge.to_bytes());
        json!({
            "id": encode(&made.credential_id),
            "clientDataJson": encode(&made.client_data_json),
            "authenticatorData": encode(&made.authenticator_data),
            "signature": encode(&made.signature),
            "userHandle": made.user_handle.as_deref().map(encode),
        })
    }

    pub async fn sign_up(&mut self, name: &str) -> Answer {
        let challenge = self.challenge("sign-up").await;
        let passkey = self.registration(&challenge);
        let id = challenge.to_string();
        self.post("/app/sign-up", json!({ "challengeId": id, "name": name, "passkey": passkey })).await
    }

    pub async fn prove(&mut self, purpose: &str) -> Answer {
        let challenge = self.challenge(purpose).await;
        let passkey = self.assertion(&challenge);
        let body = json!({ "challengeId": challenge.to_string(), "passkey": passkey });
        self.post(&format!("/app/{purpose}"), body).await
    }
}

pub fn rejected(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status.as_u16(), status, "{answer}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer}");
    assert_eq!(answer.json()["code"], code, "{answer}");
    assert_eq!(answer.header("set-cookie"), None, "{answer}");
}

#[tokio::test]
async fn a_passkey_signs_up_and_signs_in_without_a_name() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    let answer = browser.sign_up("Maya").await;
    assert_eq!(answer.json()["next"], "/welcome", "{answer}");
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-session="), "{cookie}");
    for part in ["Path=/", "Secure", "HttpOnly", "SameSite=Lax"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let page = browser.get("/portfolio").await;
    assert!(page.text.contains("<h1>Portfolio</h1>") && page.text.contains("No positions yet"), "{page}");
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let mut other = browser.beside();
    assert!(other.prove("sign-in").await.header("set-cookie").is_some());
    let home = other.get("/").await;
    assert!(home.text.contains("aria-label=\"Account menu\">M<"), "{home}");
}

#[tokio::test]
async fn the_portfolio_shows_the_accounts_own_address_and_money() {
    let app = TestApp::new().await;
    let (mut ada, mut ben) = (Browser::new(&app), Browser::new(&app));
    ada.sign_up("Ada").await;
    ben.sign_up("Ben").await;
    let address =
        |page: &Answer| page.text.split("<code>").nth(1).unwrap().split('<').next().unwrap().to_owned();
    let of_ada = address(&ada.get("/portfolio").await);
    let of_ben = address(&ben.get("/portfolio").await);
    assert_ne!(of_ada, of_ben);
    app.mint(of_ada.parse().unwrap(), Usdc::from_atomic(12_500_000)).await;
    assert!(ada.get("/portfolio").await.text.contains("<dt>Cash</dt><dd>$12.50</dd>"));
    assert!(ben.get("/portfolio").await.text.contains("<dt>Cash</dt><dd>$0.00</dd>"));
}

#[tokio::test]
async fn an_answer_counts_once_and_only_for_its_purpose() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    browser.sign_up("Maya").await;
    let mut other = browser.beside();
    let challenge = other.challenge("sign-in").await;
    let passkey = other.assertion(&challenge);
    let body = json!({ "challengeId": challenge.to_string(), "passkey": passkey });
    assert_eq!(other.post("/app/sign-in", body.clone()).await.status.as_u16(), 200);
    rejected(&other.beside().post("/app/sign-in", body).await, 409, "CHALLENGE_UNUSABLE");
    let challenge = other.challenge("sign-up").await;
    let passkey = other.assertion(&challenge);
    let body = json!({ "challengeId": challenge.to_string(), "passkey": passkey });
    rejected(&other.post("/app/sign-in", body).await, 409, "CHALLENGE_UNUSABLE");
}

#[tokio::test]
async fn a_passkey_of_another_origin_or_an_unverified_user_is_rejected() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    browser.sign_up("Maya").await;
    let mut phished = browser.beside();
    phished.key.origin = "https://foretell.attacker.test".to_owned();
    rejected(&phished.prove("sign-in").await, 403, "PASSKEY_REJECTED");
    let mut unverified = browser.beside();
    unverified.key.is_user_verified = false;
    rejected(&unverified.prove("sign-in").await, 403, "PASSKEY_REJECTED");
    let mut stranger = Browser::new(&app);
    rejected(&stranger.prove("sign-in").await, 403, "UNKNOWN_CREDENTIAL");
}

#[tokio::test]
async fn bodies_without_one_valid_answer_are_rejected() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    for body in [
        json!({}),
        json!({ "challengeId": "AAAA" }),
        json!({ "challengeId": "AAAA", "passkey": { "id": "%%" } }),
    ] {
        rejected(&browser.post("/app/sign-in", body).await, 400, "VALIDATION_FAILED");
    }
    rejected(
        &browser.post("/app/challenges", json!({ "purpose": "anything" })).await,
        400,
        "VALIDATION_FAILED",
    );
    rejected(&browser.post("/app/challenges", json!({ "purpose": "step-up" })).await, 401, "SIGNED_OUT");
    let body = json!({ "challengeId": "AAAA", "wallet": { "address": format!("0x{}", "1".repeat(40)), "signature": "0x00" } });
    rejected(&browser.post("/app/sign-in", body).await, 409, "CHALLENGE_UNUSABLE");
}

#[tokio::test]
async fn signing_out_ends_the_session_also_for_a_copied_cookie() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    browser.sign_up("Maya").await;
    let mut thief = browser.beside();
    thief.cookie.clone_from(&browser.cookie);
    assert_eq!(thief.get("/portfolio").await.status.as_u16(), 200);
    let out = browser.send("POST", "/sign-out", None).await;
    assert_eq!((out.status.as_u16(), out.header("location")), (303, Some("/")));
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(out.header("clear-site-data"), Some("\"cache\""));
    for browser in [&mut browser, &mut thief] {
        let answer = browser.get("/portfolio").await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("location")),
            (303, Some(sign_in_for("/portfolio").as_str())),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn ending_other_sessions_needs_a_fresh_confirmation() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    browser.sign_up("Maya").await;
    let mut other = browser.beside();
    other.prove("sign-in").await;
    app.advance_ms(6 * 60_000).await;
    let page = browser.get("/settings/security").await;
    assert!(page.text.contains("Confirm that it is you") && !page.text.contains("End all others"), "{page}");
    let refused = browser.send("POST", "/settings/sessions/end", None).await;
    assert_eq!(refused.status.as_u16(), 403, "{refused}");
    assert!(refused.text.contains("STEP_UP_REQUIRED"), "{refused}");
    assert_eq!(other.get("/portfolio").await.status.as_u16(), 200);
    let before = browser.cookie.clone();
    assert!(browser.prove("step-up").await.header("set-cookie").is_some());
    assert_ne!(browser.cookie, before, "a step-up renews the token");
    assert!(browser.get("/settings/security").await.text.contains("End all others"));
    assert_eq!(browser.send("POST", "/settings/sessions/end", None).await.status.as_u16(), 303);
    assert_eq!(other.get("/portfolio").await.header("location"), Some(sign_in_for("/portfolio").as_str()));
    assert_eq!(browser.get("/portfolio").await.status.as_u16(), 200);
}

#[tokio::test]
async fn a_page_for_a_person_is_never_shown_to_another_reader() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    browser.sign_up("Maya").await;
    assert!(browser.get("/").await.text.contains("Account menu"));
    assert!(!browser.beside().get("/").await.text.contains("Account menu"));
    browser.cookie = Some("__Host-session=nonsense".to_owned());
    assert!(!browser.get("/").await.text.contains("Account menu"));
}

impl Browser {
    /// Prepares an act, signs its digest with the passkey and returns the answer to the signature.
    pub async fn act(&mut self, body: Value) -> Answer {
        let prepared = self.post("/app/acts", body).await;
        assert_eq!(prepared.status.as_u16(), 201, "{prepared}");
        let act = prepared.json();
        let passkey = self.signature_of(&act);
        let id = act["id"].as_str().unwrap();
        self.post(&format!("/app/acts/{id}/signature"), json!({ "passkey": passkey })).await
    }

    fn signature_of(&mut self, act: &Value) -> Value {
        let digest: B256 = act["digest"].as_str().unwrap().parse().unwrap();
        let made = self.key.assert(digest.as_slice());
        let (r, s) = made.scalars().unwrap();
        json!({
            "credentialId": encode(&made.credential_id),
            "clientDataJson": encode(&made.client_data_json),
            "authenticatorData": encode(&made.authenticator_data),
            "r": r,
            "s": s,
        })
    }

    /// The address of the person's account.
    pub async fn address(&mut self) -> Address {
        let page = self.get("/portfolio").await;
        page.text.split("<code>").nth(1).unwrap().split('<').next().unwrap().parse().unwrap()
    }
}

/// Returns the path of the sign-in page that leads back to `path`.
pub fn sign_in_for(path: &str) -> String {
    format!("/sign-in?next={}", presentation::links::percent_encode(path))
}

#[tokio::test]
async fn signing_in_leads_back_to_the_page_of_this_site_that_was_asked_for() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    let asked = "/portfolio/history?kind=cash";
    assert_eq!(browser.get(asked).await.header("location"), Some(sign_in_for(asked).as_str()));
    let next = async |next: &str| {
        let page = Browser::new(&app).get(&sign_in_for(next)).await;
        page.text.split("data-next=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    assert_eq!(next(asked).await, asked);
    for foreign in
        ["//attacker.test", "https://attacker.test", "/\\attacker.test", "/\t/attacker.test", "markets"]
    {
        assert_eq!(next(foreign).await, "/portfolio", "{foreign}");
    }
}

/// Signs up and puts USDC on the account.
pub async fn funded(app: &TestApp, whole: u32) -> Browser {
    let mut browser = Browser::new(app);
    browser.sign_up("Maya").await;
    let address = browser.address().await;
    app.mint(address, Usdc::from_whole(whole)).await;
    browser
}

#[tokio::test]
async fn an_owner_enables_trading_and_withdraws_with_a_passkey() {
    let app = TestApp::new().await;
    let mut browser = funded(&app, 100).await;
    assert!(browser.get("/portfolio").await.text.contains("Allow trading, with limits"));
    let signed = browser.act(json!({ "kind": "enable" })).await;
    assert_eq!(signed.json()["state"], "signed", "{signed}");
    app.run_workers().await;
    let id = signed.json()["id"].as_str().unwrap().to_owned();
    let done = browser.get(&format!("/app/acts/{id}")).await;
    assert_eq!(done.json()["state"], "done", "{done}");
    assert!(!browser.get("/portfolio").await.text.contains("Allow trading, with limits"));
    let receipt = browser.get(&format!("/acts/{id}")).await;
    assert!(receipt.text.contains("Trading enabled") && receipt.text.contains(">Done<"), "{receipt}");

    let wallet = Address::repeat_byte(0x42);
    let signed = browser
        .act(json!({ "kind": "withdraw", "to": wallet.to_string(), "amount": "40000000", "how": "some" }))
        .await;
    app.run_workers().await;
    let id = signed.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(browser.get(&format!("/app/acts/{id}")).await.json()["state"], "done");
    let receipt = browser.get(&format!("/acts/{id}")).await;
    for fact in ["<dt>Amount</dt><dd>$40.00</dd>", &wallet.to_string()] {
        assert!(receipt.text.contains(fact), "{fact} is missing: {receipt}");
    }
    let page = browser.get("/portfolio?range=24h").await;
    assert!(page.text.contains("<dt>Cash</dt><dd>$60.00</dd>"), "{page}");
    assert!(
        page.text.contains("<h2 id=\"h-profit\">Profit</h2>") && page.text.contains("in the last 24 hours"),
        "{page}"
    );
    let history = browser.get("/portfolio/history?kind=cash").await;
    assert!(
        history.text.contains("Withdrew $40.00") && history.text.contains(&wallet.to_string()),
        "{history}"
    );
    assert!(history.text.contains("Deposited $100.00") && history.text.contains("Test money"), "{history}");
    let balance = app.ctx.chain.usdc_balance(wallet).await.unwrap();
    assert_eq!(balance, alloy_primitives::U256::from(40_000_000));
}

#[tokio::test]
async fn only_an_owner_signs_and_only_the_shown_digest() {
    let app = TestApp::new().await;
    let mut browser = funded(&app, 100).await;
    let withdraw = json!({ "kind": "withdraw", "to": Address::repeat_byte(0x42).to_string(), "how": "all" });
    let act = browser.post("/app/acts", withdraw).await.json();
    let path = format!("/app/acts/{}/signature", act["id"].as_str().unwrap());
    // A sign-in's answer has another challenge.
    let challenge = browser.challenge("sign-in").await;
    let made = browser.key.assert(&challenge.to_bytes());
    let (r, s) = made.scalars().unwrap();
    let body = json!({ "passkey": {
        "credentialId": encode(&made.credential_id), "clientDataJson": encode(&made.client_data_json),
        "authenticatorData": encode(&made.authenticator_data), "r": r, "s": s,
    }});
    rejected(&browser.post(&path, body).await, 400, "VALIDATION_FAILED");
    // Another person's passkey, from that person's session and from the owner's.
    let mut thief = funded(&app, 1).await;
    let passkey = thief.signature_of(&act);
    assert_eq!(thief.post(&path, json!({ "passkey": passkey })).await.status.as_u16(), 404);
    rejected(&browser.post(&path, json!({ "passkey": passkey })).await, 400, "VALIDATION_FAILED");
    assert_eq!(thief.get(path.trim_end_matches("/signature")).await.status.as_u16(), 404);
    let passkey = browser.signature_of(&act);
    assert_eq!(browser.post(&path, json!({ "passkey": passkey })).await.json()["state"], "signed");
}

#[tokio::test]
async fn wrong_acts_are_rejected_before_they_are_shown() {
    let app = TestApp::new().await;
    let mut browser = funded(&app, 10).await;
    let to = Address::repeat_byte(0x42).to_string();
    for (body, code) in [
        (json!({ "kind": "withdraw", "to": "0x12", "how": "all" }), "VALIDATION_FAILED"),
        (json!({ "kind": "withdraw", "to": to, "amount": "0" }), "VALIDATION_FAILED"),
        (json!({ "kind": "withdraw", "to": to, "amount": "11000000" }), "INSUFFICIENT_BALANCE"),
        (json!({ "kind": "anything" }), "VALIDATION_FAILED"),
    ] {
        let answer = browser.post("/app/acts", body).await;
        assert_eq!(answer.json()["code"], code, "{answer}");
    }
    browser.cookie = None;
    rejected(&browser.post("/app/acts", json!({ "kind": "enable" })).await, 401, "SIGNED_OUT");
    assert_eq!(browser.get("/withdraw").await.header("location"), Some(sign_in_for("/withdraw").as_str()));
}

/// A person who may trade.
pub async fn trader(app: &TestApp, whole: u32) -> Browser {
    let mut browser = funded(app, whole).await;
    browser.act(json!({ "kind": "enable" })).await;
    app.run_workers().await;
    browser
}

#[tokio::test]
async fn a_ticket_buys_what_it_quoted_and_sells_everything() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |new| new.question = "Will it rain?".to_owned()).await;
    let mut browser = trader(&app, 100).await;
    let id = market.id.to_string();
    let page = browser.get(&format!("/markets/{id}")).await;
    assert!(
        page.text.contains("data-module=\"ticket\"") && page.text.contains("data-cash=\"100\""),
        "{page}"
    );
    let order = json!({ "marketId": id, "outcomeIndex": 0, "side": "buy", "amount": "50000000" });
    let quote = browser.post("/app/quotes", order).await.json();
    assert_eq!(quote["usdcIn"], "50000000", "{quote}");
    assert_eq!(quote["lossUsdcAtomic"], "50000000", "{quote}");
    let body = json!({
        "marketId": id, "outcomeIndex": 0, "side": "buy", "amountType": "usdc", "amount": "50",
        "minTokensOut": quote["tokensOut"], "idempotencyKey": "7d3f1c1e-0000-4000-8000-000000000001",
    });
    let trade = browser.post("/app/trades", body.clone()).await;
    assert_eq!(trade.status.as_u16(), 201, "{trade}");
    app.run_workers().await;
    // A browser that lost the answer sends the same request again, or looks the trade up.
    let again = browser.post("/app/trades", body).await.json();
    assert_eq!(again["id"], trade.json()["id"]);
    assert_eq!(again["status"], "completed", "{again}");
    let found = browser.get("/app/trades/by-idempotency-key/7d3f1c1e-0000-4000-8000-000000000001").await;
    assert_eq!(found.json()["id"], again["id"]);
    let receipt = browser.get(&format!("/trades/{}", again["id"].as_str().unwrap())).await;
    assert!(receipt.text.contains("Bought") && receipt.text.contains("for $50.00"), "{receipt}");

    let body = json!({
        "marketId": id, "outcomeIndex": 0, "side": "sell", "amountType": "all", "maxSlippageBps": 100,
        "idempotencyKey": "7d3f1c1e-0000-4000-8000-000000000002",
    });
    browser.post("/app/trades", body).await;
    app.run_workers().await;
    assert!(browser.get("/portfolio").await.text.contains("No positions yet"));
}

#[tokio::test]
async fn a_ticket_rejects_what_the_chain_and_the_caps_would() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |_| ()).await;
    let id = market.id.to_string();
    let order = |key: &str, amount: &str| {
        json!({ "marketId": id, "outcomeIndex": 0, "side": "buy", "amountType": "usdc", "amount": amount,
            "maxSlippageBps": 100, "idempotencyKey": key })
    };
    let mut new = funded(&app, 100).await;
    let answer = new.post("/app/trades", order("a", "10")).await;
    assert_eq!(answer.json()["code"], "SMART_ACCOUNT_NOT_PROVISIONED", "{answer}");
    assert!(!new.get(&format!("/markets/{id}")).await.text.contains("data-module=\"ticket\""));
    let mut browser = trader(&app, 2_000).await;
    let refused = browser.post("/app/trades", order("b", "501")).await;
    assert_eq!(refused.json()["code"], "SPENDING_LIMIT_EXCEEDED", "{refused}");
    assert_eq!(browser.post("/app/trades", order("c", "10")).await.status.as_u16(), 201);
    let other = browser.post("/app/trades", order("c", "11")).await;
    assert_eq!(other.json()["code"], "IDEMPOTENCY_KEY_CONFLICT", "{other}");
    let trade = browser.post("/app/trades", order("c", "10")).await.json();
    // Another person's trade is not there.
    for path in ["/app/trades/", "/trades/"] {
        assert_eq!(new.get(&format!("{path}{}", trade["id"].as_str().unwrap())).await.status.as_u16(), 404);
    }
    assert_eq!(new.get("/app/trades/by-idempotency-key/c").await.status.as_u16(), 404);
}

#[tokio::test]
async fn an_owner_signs_an_order_above_the_caps() {
    let app = TestApp::new().await;
    let market = app.market(&["Yes", "No"]).await;
    let mut browser = trader(&app, 2_000).await;
    let order = |amount: &str, worst: &str| {
        json!({
            "kind": "trade", "market": market.id, "outcome": "0", "side": "buy", "amount": amount, "worst": worst,
        })
    };
    for (wrong, code) in [
        (order("1500000000", "0"), "VALIDATION_FAILED"),
        (order("1500000000", "9000000000000000000000"), "SLIPPAGE_EXCEEDED"),
        (order("2500000000", "1"), "INSUFFICIENT_BALANCE"),
    ] {
        let refused = browser.post("/app/acts", wrong).await;
        assert_eq!(refused.json()["code"], code, "{refused}");
    }
    browser.act(order("1500000000", "1000000000000000000")).await;
    app.run_workers().await;
    let portfolio = browser.get("/portfolio").await;
    assert!(portfolio.text.contains("$500.00") && portfolio.text.contains("Yes"), "{portfolio}");
}

#[tokio::test]
async fn a_faucet_gives_test_money_to_an_account_that_needs_it() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    browser.sign_up("Maya").await;
    assert!(browser.get("/portfolio").await.text.contains("Get $1,000.00 of test USDC"));
    assert_eq!(browser.send("POST", "/faucet", None).await.header("location"), Some("/portfolio"));
    let page = browser.get("/portfolio").await;
    assert!(
        page.text.contains("<dt>Cash</dt><dd>$1,000.00</dd>") && !page.text.contains("test USDC"),
        "{page}"
    );
    assert_eq!(browser.send("POST", "/faucet", None).await.status.as_u16(), 400);
    browser.cookie = None;
    assert_eq!(browser.send("POST", "/faucet", None).await.status.as_u16(), 401);
}

#[tokio::test]
async fn a_sign_up_whose_answer_was_lost_is_found_again_by_signing_in() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    let challenge = browser.challenge("sign-up").await;
    let passkey = browser.registration(&challenge);
    let body = json!({ "challengeId": challenge.to_string(), "name": "Maya", "passkey": passkey });
    browser.post("/app/sign-up", body.clone()).await;
    // The process was killed after the commit: the browser got neither the answer nor the cookie.
    browser.cookie = None;
    rejected(&browser.post("/app/sign-up", body).await, 409, "CHALLENGE_UNUSABLE");
    let found = browser.prove("sign-in").await;
    assert!(found.header("set-cookie").is_some(), "{found}");
    assert!(browser.get("/").await.text.contains("aria-label=\"Account menu\">M<"));
    let users = app.ctx.store.read((), |tx, ()| Box::pin(store::users::list(tx, None, 10))).await.unwrap();
    assert_eq!(users.len(), 1);
}

#[tokio::test]
async fn a_browser_stores_no_page_that_is_shown_to_a_person() {
    let app = TestApp::new().await;
    let market = app.market(&["Yes", "No"]).await;
    let mut browser = Browser::new(&app);
    browser.sign_up("Maya").await;
    let market = format!("/markets/{}", market.id);
    let pages = web::site_routes().filter(|route| route.method == "GET" && !route.path.contains('{'));
    let mut paths: Vec<String> = pages.map(|route| route.path.to_owned()).collect();
    paths.retain(|path| path != "/app/live");
    paths.push(market);
    for path in &paths {
        let answer = browser.get(path).await;
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
    }
}

#[tokio::test]
async fn a_persons_stream_ends_with_the_session_and_with_its_token() {
    let app = TestApp::new().await;
    let mut browser = trader(&app, 100).await;
    let open = async |browser: &Browser| {
        let request = browser.client.get("/app/live?topics=u");
        let mut stream = request.header("cookie", browser.cookie.as_ref().unwrap()).open().await;
        app.workers.watch(&app.ctx).await;
        // The session lives, so the watcher's first look does not end it.
        assert!(stream.is_open().await);
        stream
    };
    let mut old_token = open(&browser).await;
    app.clock.advance(1);
    browser.prove("step-up").await;
    app.workers.watch(&app.ctx).await;
    assert!(old_token.next().await.is_none(), "a thief's stream ends when the person steps up");
    let (mut here, mut other) = (open(&browser).await, browser.beside());
    other.prove("sign-in").await;
    let mut there = open(&other).await;
    browser.send("POST", "/settings/sessions/end", None).await;
    app.workers.watch(&app.ctx).await;
    assert!(there.next().await.is_none());
    assert!(here.is_open().await);
    browser.send("POST", "/sign-out", None).await;
    app.workers.watch(&app.ctx).await;
    assert!(here.next().await.is_none());
}

#[tokio::test]
async fn a_stream_says_when_something_of_the_person_has_changed() {
    let app = TestApp::new().await;
    let market = app.market(&["Yes", "No"]).await;
    let mut browser = trader(&app, 100).await;
    let order = |key: &str| {
        json!({
            "marketId": market.id, "outcomeIndex": 0, "side": "buy", "amountType": "usdc", "amount": "5",
            "idempotencyKey": key,
        })
    };
    browser.post("/app/trades", order("one")).await;
    app.run_workers().await;
    let request = browser.client.get("/app/live?topics=u").header("cookie", browser.cookie.as_ref().unwrap());
    let mut stream = request.open().await;
    // What the page already shows is no news.
    app.workers.watch(&app.ctx).await;
    app.clock.advance(60_000);
    let after = app.ctx.now().to_string();
    let trade = browser.post("/app/trades", order("two")).await.json();
    let receipt = browser.get(&format!("/trades/{}", trade["id"].as_str().unwrap())).await;
    assert!(receipt.text.contains("data-status=\"pending\""), "{receipt}");
    app.run_workers().await;
    app.workers.watch(&app.ctx).await;
    let event = stream.news().await;
    assert_eq!(event.data["topic"], "u", "{event:?}");
    assert_eq!(event.data["at"], after, "{event:?}");
    assert_eq!(event.data.as_object().unwrap().len(), 2, "nothing of the trade is in the stream: {event:?}");
    let receipt = browser.get(&format!("/trades/{}", trade["id"].as_str().unwrap())).await;
    assert!(!receipt.text.contains("data-status"), "{receipt}");
}

#[tokio::test]
async fn a_ticket_warns_of_a_buy_that_cannot_gain() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |_| ()).await;
    app.stranger_buys(market, 0, "9500").await;
    app.run_workers().await;
    let mut browser = trader(&app, 100).await;
    let order = json!({ "marketId": market.id, "outcomeIndex": 0, "side": "buy", "amount": "10000000" });
    let quote = browser.post("/app/quotes", order).await.json();
    assert_eq!(quote["warnings"][0]["code"], "cannot_gain", "{quote}");
}
