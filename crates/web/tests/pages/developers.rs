//! The pages of keys and webhooks.

use domain::ids::TradeId;
use domain::time::{DAY_MS, MINUTE_MS};
use domain::trade::State;
use http_testkit::{Answer, ServeHttp};
use serde_json::json;
use store::StoreError;
use store::trades::Trade;
use testkit::{TestApp, TestMarket};

use crate::people::{Browser, sign_in_for, trader};

/// Returns the text between two marks of a page.
fn between<'a>(answer: &'a Answer, before: &str, after: &str) -> &'a str {
    let rest = answer.text.split_once(before).unwrap_or_else(|| panic!("no {before} in\n{answer}")).1;
    rest.split_once(after).unwrap().0
}

/// An issued key: its path, and its plaintext.
struct Issued {
    path: String,
    plaintext: String,
}

async fn issue(browser: &mut Browser, webhook: &str) -> Issued {
    let page = browser.get("/settings/keys").await;
    let form = between(&page, "name=\"form\" value=\"", "\"").to_owned();
    let fields = [
        ("form", form.as_str()),
        ("name", "Trading bot"),
        ("scope", "markets:read"),
        ("scope", "trades:write"),
        ("scope", "trades:read"),
        ("expires", "90"),
        ("allowlist", ""),
        ("webhook", webhook),
    ];
    let issued = browser.submit("/settings/keys", &fields).await;
    assert_eq!(issued.status.as_u16(), 200, "{issued}");
    assert_eq!(issued.header("cache-control"), Some("no-store"));
    let plaintext = between(&issued, "<div class=\"secret\"><code>", "<").to_owned();
    // The same form again, as after a reload.
    let again = browser.submit("/settings/keys", &fields).await;
    assert_eq!(again.status.as_u16(), 400, "{again}");
    assert!(again.text.contains("issued its key already") && !again.text.contains(&plaintext), "{again}");
    let id = between(&issued, "<a class=\"btn main\" href=\"/settings/keys/", "\"");
    assert_ne!(id, form, "the form's id would tell whether another person's key has it");
    Issued { path: format!("/settings/keys/{id}"), plaintext }
}

#[tokio::test]
async fn a_key_is_shown_once_and_trades_after_an_owner_has_enabled_it() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |_| ()).await;
    let mut browser = trader(&app, 100).await;
    let Issued { path, plaintext } = issue(&mut browser, "").await;
    let list = browser.get("/settings/keys").await;
    assert!(list.text.contains("Trading bot") && list.text.contains("1 of 5 keys"), "{list}");
    assert!(list.text.contains(&plaintext[plaintext.len() - 4..]) && !list.text.contains(&plaintext));

    let order = json!({ "marketId": market.id, "outcomeIndex": 0, "side": "buy", "amount": "10.00" });
    let trade = async |key: &str| {
        let request = app.http().anonymous().call("POST", "/v1/trades").header("x-api-key", &plaintext);
        let request = request.header("idempotency-key", key).header("content-type", "application/json");
        request.body(order.to_string()).send().await
    };
    let refused = trade("a").await;
    assert_eq!(refused.json()["code"], "WALLET_DELEGATION_NOT_ENABLED", "{refused}");
    let id = path.rsplit_once('/').unwrap().1;
    browser.act(json!({ "kind": "enable_key", "key": id })).await;
    app.run_workers().await;
    assert!(browser.get(&path).await.text.contains("lets this key trade until"));
    assert_eq!(trade("b").await.status.as_u16(), 201);

    // Lower caps hold at once, and are never raised without a signature.
    let caps = |per_trade: &'static str| [("perTrade", per_trade), ("daily", "20")];
    let caps_path = format!("{path}/caps");
    assert_eq!(browser.submit(&caps_path, &caps("5")).await.header("location"), Some(path.as_str()));
    assert_eq!(trade("c").await.json()["code"], "SPENDING_LIMIT_EXCEEDED");
    let raised = browser.submit(&caps_path, &caps("6")).await;
    assert!(
        raised.status.as_u16() == 400 && raised.text.contains("must be at most the present cap"),
        "{raised}"
    );

    browser.submit(&format!("{path}/pause"), &[]).await;
    assert_eq!(trade("d").await.json()["code"], "API_KEY_PAUSED");
    browser.submit(&format!("{path}/revoke"), &[]).await;
    assert_eq!(trade("e").await.json()["code"], "API_KEY_REVOKED");
    assert!(browser.get("/settings/keys").await.text.contains("No keys yet"));
}

#[tokio::test]
async fn caps_rise_only_with_the_signature_of_an_owner() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |_| ()).await;
    let mut browser = trader(&app, 100).await;
    let Issued { path, plaintext } = issue(&mut browser, "").await;
    let id = path.rsplit_once('/').unwrap().1;
    browser.act(json!({ "kind": "enable_key", "key": id })).await;
    app.run_workers().await;
    let trade = async |key: &str| {
        let order = json!({ "marketId": market.id, "outcomeIndex": 0, "side": "buy", "amount": "10.00" });
        let request = app.http().anonymous().call("POST", "/v1/trades").header("x-api-key", &plaintext);
        let request = request.header("idempotency-key", key).header("content-type", "application/json");
        request.body(order.to_string()).send().await
    };
    let lower = async |browser: &mut Browser, cap: &str| {
        let fields = [("perTrade", cap), ("daily", "50")];
        browser.submit(&format!("{path}/caps"), &fields).await.status.as_u16()
    };
    assert_eq!(lower(&mut browser, "5").await, 303);
    let raise = |per_trade: &str| json!({ "kind": "raise_caps", "key": id, "perTrade": per_trade, "daily": "50000000" });

    // A prepared act changes nothing: that is all that a stolen session can do.
    assert_eq!(browser.post("/app/acts", raise("20000000")).await.status.as_u16(), 201);
    app.run_workers().await;
    assert_eq!(trade("a").await.json()["code"], "SPENDING_LIMIT_EXCEEDED");
    let above = browser.post("/app/acts", raise("999999000000")).await;
    assert_eq!(above.status.as_u16(), 400, "{above}");

    browser.act(raise("20000000")).await;
    app.run_workers().await;
    let page = browser.get(&path).await;
    assert!(page.text.contains("enforces $20.00 for each trade and $50.00 within 24 hours"), "{page}");
    assert_eq!(trade("b").await.status.as_u16(), 201);
    let order = json!({ "marketId": market.id, "outcomeIndex": 0, "side": "buy", "amount": "20.01" });
    let request = app.http().anonymous().call("POST", "/v1/trades").header("x-api-key", &plaintext);
    let request = request.header("idempotency-key", "c").header("content-type", "application/json");
    assert_eq!(request.body(order.to_string()).send().await.json()["code"], "SPENDING_LIMIT_EXCEEDED");

    // A cap that is lowered after the signature stays low.
    browser.act(raise("30000000")).await;
    assert_eq!(lower(&mut browser, "5").await, 303);
    app.run_workers().await;
    assert_eq!(trade("d").await.json()["code"], "SPENDING_LIMIT_EXCEEDED");

    let mut other = trader(&app, 100).await;
    let foreign = other.post("/app/acts", raise("20000000")).await;
    assert_eq!(foreign.status.as_u16(), 404, "{foreign}");
}

#[tokio::test]
async fn a_session_without_a_fresh_confirmation_issues_nothing_and_changes_no_webhook() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    browser.sign_up("Maya").await;
    let Issued { path, .. } = issue(&mut browser, "").await;
    let form = between(&browser.get("/settings/keys").await, "name=\"form\" value=\"", "\"").to_owned();
    app.advance_ms(6 * MINUTE_MS).await;
    let fields = [("form", form.as_str()), ("name", "Stolen"), ("scope", "trades:write"), ("expires", "0")];
    for (path, fields) in [
        ("/settings/keys", &fields[..]),
        (&format!("{path}/webhook"), &[("url", "https://receiver.attacker.test/")]),
        (&format!("{path}/webhook/rotate"), &[]),
        (&format!("{path}/resume"), &[]),
        (&format!("{path}/access"), &[("allowlist", ""), ("expires", "0")]),
    ] {
        let refused = browser.submit(path, fields).await;
        assert_eq!(refused.status.as_u16(), 403, "{path}\n{refused}");
        assert!(refused.text.contains("STEP_UP_REQUIRED"), "{path}\n{refused}");
    }
    let list = browser.get("/settings/keys").await;
    assert!(list.text.contains("1 of 5 keys") && list.text.contains("Confirm that it is you"), "{list}");
    browser.prove("step-up").await;
    assert!(browser.get("/settings/keys").await.text.contains("Issue the key"));
}

#[tokio::test]
async fn another_persons_key_and_events_do_not_exist() {
    let app = TestApp::new().await;
    let receiver = app.receiver().await;
    let (mut ada, mut ben) = (Browser::new(&app), Browser::new(&app));
    ada.sign_up("Ada").await;
    ben.sign_up("Ben").await;
    let Issued { path, .. } = issue(&mut ada, &receiver.url).await;
    let event = ada.submit(&format!("{path}/webhook/test"), &[]).await.header("location").unwrap().to_owned();
    assert_eq!(ada.get(&event).await.status.as_u16(), 200);
    for foreign in [&path, &event] {
        assert_eq!(ben.get(foreign).await.status.as_u16(), 404, "{foreign}");
    }
    for deed in
        ["access", "agent", "caps", "pause", "resume", "revoke", "webhook", "webhook/test", "webhook/rotate"]
    {
        let fields = [("perTrade", "1"), ("daily", "1"), ("expires", "keep")];
        let refused = ben.submit(&format!("{path}/{deed}"), &fields).await;
        assert_eq!(refused.status.as_u16(), 404, "{deed}\n{refused}");
    }
    assert_eq!(ben.submit(&format!("{event}/redeliver"), &[]).await.status.as_u16(), 404);
    ada.cookie = None;
    assert_eq!(ada.get(&path).await.header("location"), Some(sign_in_for(&path).as_str()));
    assert_eq!(ada.submit(&format!("{path}/pause"), &[]).await.status.as_u16(), 401);
}

/// Returns an answer in which this id, and what differs between any two requests, have names.
fn without(answer: &Answer, id: &str) -> (u16, String) {
    let request = answer.header("x-request-id").unwrap_or("no request id");
    (answer.status.as_u16(), answer.text.replace(id, "ID").replace(request, "REQUEST"))
}

#[tokio::test]
async fn no_route_tells_whether_an_id_of_another_person_exists() {
    let app = TestApp::new().await;
    let receiver = app.receiver().await;
    let market = app.market(&["Yes", "No"]).await;
    let (mut ada, mut ben) = (trader(&app, 100).await, Browser::new(&app));
    ben.sign_up("Ben").await;
    let Issued { path: key, .. } = issue(&mut ada, &receiver.url).await;
    let event = ada.submit(&format!("{key}/webhook/test"), &[]).await.header("location").unwrap().to_owned();
    let order = json!({
        "marketId": market.id, "outcomeIndex": 0, "side": "buy", "amountType": "usdc", "amount": "5",
        "idempotencyKey": "one",
    });
    let trade = ada.post("/app/trades", order).await.json()["id"].as_str().unwrap().to_owned();
    let act = ada.post("/app/acts", json!({ "kind": "end_approval" })).await.json()["id"].clone();
    let credential: Result<Option<String>, StoreError> = app
        .ctx
        .store
        .read((), |tx, ()| {
            const SQL: &str = "SELECT id FROM credentials ORDER BY created_at_ms LIMIT 1";
            Box::pin(async move { tx.find(SQL, &[], |row| row.only()).await })
        })
        .await;
    let last = |path: &str| path.rsplit_once('/').unwrap().1.to_owned();
    let ids =
        [last(&key), last(&event), trade, act.as_str().unwrap().to_owned(), credential.unwrap().unwrap()];
    let missing = app.ctx.uuid().to_string();
    let signature = json!({ "wallet": { "signature": format!("0x{}", "00".repeat(65)) } });
    let fields = [("perTrade", "1"), ("daily", "1"), ("expires", "0"), ("allowlist", ""), ("url", "")];
    for is_stepped_up in [true, false] {
        for route in web::site_routes().filter(|route| route.path.contains("{id}")) {
            for id in &ids {
                let mut answers = Vec::new();
                for id in [id, &missing] {
                    let path = route.path.replace("{id}", id);
                    let answer = match route.method.as_str() {
                        "GET" => ben.get(&path).await,
                        _ if path.starts_with("/app/") => ben.post(&path, signature.clone()).await,
                        _ => ben.submit(&path, &fields).await,
                    };
                    answers.push(without(&answer, id));
                }
                assert_eq!(answers[0], answers[1], "{} {} {is_stepped_up}", route.method, route.path);
                assert!(answers[0].0 >= 300, "{} {}: {}", route.method, route.path, answers[0].1);
            }
        }
        for kind in ["enable_key", "raise_caps"] {
            let mut answers = Vec::new();
            for id in [&ids[0], &missing] {
                let body = json!({ "kind": kind, "key": id, "perTrade": "1000000", "daily": "1000000" });
                answers.push(without(&ben.post("/app/acts", body).await, id));
            }
            assert_eq!(answers[0], answers[1], "{kind}");
        }
        app.advance_ms(6 * MINUTE_MS).await;
    }
    ben.prove("step-up").await;
    // A form with the id of another person's key issues a key like any other form.
    for form in [&ids[0], &missing] {
        let fields = [("form", form.as_str()), ("name", "Bot"), ("scope", "trades:read"), ("expires", "0")];
        assert_eq!(ben.submit("/settings/keys", &fields).await.status.as_u16(), 200);
    }
}

#[tokio::test]
async fn a_key_is_marked_as_an_agents_when_it_is_issued_or_later_and_stays_so() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    browser.sign_up("Maya").await;
    let Issued { path, plaintext } = issue(&mut browser, "").await;
    let is_agent = async || {
        let key = app.http().anonymous().get("/v1/key").header("x-api-key", &plaintext).send().await;
        key.json()["key"]["agent"].clone()
    };
    assert_eq!(is_agent().await, false);
    app.advance_ms(6 * MINUTE_MS).await;
    // It only restricts, so a session is enough.
    assert_eq!(browser.submit(&format!("{path}/agent"), &[]).await.status.as_u16(), 303);
    assert_eq!(is_agent().await, true);
    let page = browser.get(&path).await;
    assert!(page.text.contains("an agent: you confirm") && !page.text.contains("/agent\""), "{page}");
    browser.prove("step-up").await;
    let form = between(&browser.get("/settings/keys").await, "name=\"form\" value=\"", "\"").to_owned();
    let fields = [
        ("form", form.as_str()),
        ("name", "Bot"),
        ("scope", "trades:read"),
        ("expires", "0"),
        ("agent", "on"),
    ];
    let issued = browser.submit("/settings/keys", &fields).await;
    let id = between(&issued, "<a class=\"btn main\" href=\"/settings/keys/", "\"").to_owned();
    assert!(browser.get(&format!("/settings/keys/{id}")).await.text.contains("an agent: you confirm"));
}

#[tokio::test]
async fn every_attempt_to_deliver_an_event_is_shown_and_can_be_repeated() {
    let app = TestApp::new().await;
    let receiver = app.receiver().await;
    let mut browser = Browser::new(&app);
    browser.sign_up("Maya").await;
    let Issued { path, .. } = issue(&mut browser, &receiver.url).await;
    receiver.next([testkit::Reply::Status(500)]);
    let event =
        browser.submit(&format!("{path}/webhook/test"), &[]).await.header("location").unwrap().to_owned();
    app.run_workers().await;
    let failed = browser.get(&event).await;
    assert!(failed.text.contains("HTTP 500") && failed.text.contains(">Retrying<"), "{failed}");
    assert!(browser.get(&path).await.text.contains("Held by webhook.test"));
    let list = browser.get("/developers/webhooks?status=retrying").await;
    assert!(list.text.contains(&event), "{list}");
    app.advance_ms(60 * MINUTE_MS).await;
    app.run_workers().await;
    let delivered = browser.get(&event).await;
    assert!(delivered.text.contains("HTTP 200") && delivered.text.contains(">Delivered<"), "{delivered}");
    assert_eq!(receiver.take().len(), 2);
    browser.submit(&format!("{event}/redeliver"), &[]).await;
    app.run_workers().await;
    assert!(browser.get(&event).await.text.contains("Redeliver (1 of 5)"));
    assert_eq!(receiver.one().header("x-service-event-id"), event.rsplit_once('/').unwrap().1);

    // A new secret is shown once.
    browser.prove("step-up").await;
    let rotated = browser.submit(&format!("{path}/webhook/rotate"), &[]).await;
    let secret = between(&rotated, "<div class=\"secret\"><code>", "<").to_owned();
    assert!(secret.starts_with("whsec_"), "{rotated}");
    let page = browser.get(&path).await;
    assert!(
        page.text.contains("the previous one also signs until") && !page.text.contains(&secret),
        "{page}"
    );
}

#[tokio::test]
async fn requests_usage_and_traces_are_shown_only_to_the_keys_owner() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |_| ()).await;
    let mut browser = trader(&app, 100).await;
    let empty = browser.get("/developers").await;
    assert!(empty.text.contains("You have no key yet") && empty.text.contains("No key was used"), "{empty}");
    assert!(browser.get("/developers/requests").await.text.contains("No requests"));
    let Issued { path, plaintext } = issue(&mut browser, "").await;
    let id = path.rsplit_once('/').unwrap().1;
    browser.act(json!({ "kind": "enable_key", "key": id })).await;
    app.run_workers().await;
    let trade = async |key: &str, amount: &str| {
        let order = json!({ "marketId": market.id, "outcomeIndex": 0, "side": "buy", "amount": amount });
        let request = app.http().anonymous().call("POST", "/v1/trades").header("x-api-key", &plaintext);
        let request = request.header("idempotency-key", key).header("content-type", "application/json");
        request.body(order.to_string()).send().await
    };
    let rejected = trade("a", "99999.00").await;
    let rejected_id = rejected.header("x-request-id").unwrap();
    let bought = trade("b", "10.00").await;
    let trade_id = bought.json()["trade"]["id"].as_str().unwrap().to_owned();
    // A successful read is not logged.
    let read = app.http().anonymous().call("GET", "/v1/trades").header("x-api-key", &plaintext).send().await;
    assert_eq!(read.status.as_u16(), 200, "{read}");
    app.run_workers().await;
    app::request_log::flush(&app.ctx).await.unwrap();

    let list = browser.get("/developers/requests").await;
    for part in [rejected_id, "SPENDING_LIMIT_EXCEEDED", bought.header("x-request-id").unwrap(), &trade_id] {
        assert!(list.text.contains(part), "{part}\n{list}");
    }
    assert!(!list.text.contains(read.header("x-request-id").unwrap()), "{list}");
    let of_key = browser.get(&format!("/developers/requests?key={id}&q=")).await;
    assert!(of_key.text.contains(rejected_id), "{of_key}");
    let by_id = browser.get(&format!("/developers/requests?q={rejected_id}")).await;
    assert!(by_id.text.contains(rejected_id) && !by_id.text.contains(&trade_id), "{by_id}");
    for text in [trade_id.clone(), trade_id.replace('-', "")] {
        let by_trade = browser.get(&format!("/developers/requests?q={text}")).await;
        assert!(by_trade.text.contains("belongs to a trade"), "{by_trade}");
        assert!(by_trade.text.contains("201") && !by_trade.text.contains(rejected_id), "{by_trade}");
    }
    let wrong = browser.get("/developers/requests?key=1").await;
    assert_eq!(wrong.status.as_u16(), 400, "{wrong}");

    let overview = browser.get("/developers?range=week").await;
    assert!(overview.text.contains("Requests: 3 in all"), "{overview}");
    assert!(overview.text.contains("Volume: $10.00 in all, at most $10.00 within 6 hours"), "{overview}");
    let hint = &plaintext[plaintext.len() - 4..];
    assert!(overview.text.contains(&format!("…{hint}")) && !overview.text.contains(&plaintext), "{overview}");

    let receipt = browser.get(&format!("/trades/{trade_id}")).await;
    assert!(receipt.text.contains("<ol class=\"trace\">"), "{receipt}");
    for kind in ["trade.accepted", "funds.reserved", "batch.signed", "trade.completed"] {
        assert!(receipt.text.contains(&format!("<span class=\"mono\">{kind}</span>")), "{kind}\n{receipt}");
    }

    let mut other = Browser::new(&app);
    other.sign_up("Ben").await;
    assert_eq!(other.get(&format!("/trades/{trade_id}")).await.status.as_u16(), 404);
    for query in ["".to_owned(), format!("?key={id}"), format!("?q={rejected_id}"), format!("?q={trade_id}")]
    {
        let foreign = other.get(&format!("/developers/requests{query}")).await;
        assert!(foreign.text.contains("No requests") && !foreign.text.contains("belongs to"), "{foreign}");
    }
    assert!(other.get("/developers").await.text.contains("Requests: 0 in all"));
    other.cookie = None;
    for path in ["/developers", "/developers/requests"] {
        assert_eq!(other.get(path).await.header("location"), Some(sign_in_for(path).as_str()), "{path}");
    }
}

#[tokio::test]
async fn the_addresses_and_the_end_of_a_key_change_after_a_confirmation() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    browser.sign_up("Maya").await;
    let Issued { path, plaintext } = issue(&mut browser, "").await;
    let markets = async || {
        let request = app.http().anonymous().get("/v1/markets").header("x-api-key", &plaintext);
        request.send().await.status.as_u16()
    };
    assert_eq!(markets().await, 200);
    let change = [("allowlist", "192.0.2.1, 2001:db8::/32"), ("expires", "30")];
    let changed = browser.submit(&format!("{path}/access"), &change).await;
    assert_eq!(changed.header("location"), Some(path.as_str()), "{changed}");
    let page = browser.get(&path).await;
    assert!(page.text.contains("<dd>192.0.2.1, 2001:db8::/32</dd>"), "{page}");
    // The tests' client has another address.
    assert_eq!(markets().await, 403);

    browser.submit(&format!("{path}/access"), &[("allowlist", ""), ("expires", "keep")]).await;
    assert_eq!(markets().await, 200);
    for (allowlist, expires) in [("everywhere", "keep"), ("", "7")] {
        let fields = [("allowlist", allowlist), ("expires", expires)];
        let refused = browser.submit(&format!("{path}/access"), &fields).await;
        assert_eq!(refused.status.as_u16(), 400, "{fields:?}\n{refused}");
    }
    // An ended delegation does not come back.
    app.advance_ms(31 * DAY_MS).await;
    browser.prove("sign-in").await;
    let refused = browser.submit(&format!("{path}/access"), &[("allowlist", ""), ("expires", "0")]).await;
    assert_eq!(refused.status.as_u16(), 400, "{refused}");
}

#[tokio::test]
async fn events_are_listed_by_status_kind_and_day() {
    let app = TestApp::new().await;
    let receiver = app.receiver().await;
    let mut browser = Browser::new(&app);
    browser.sign_up("Maya").await;
    let Issued { path, .. } = issue(&mut browser, &receiver.url).await;
    browser.submit(&format!("{path}/webhook/test"), &[]).await;
    let today = app.ctx.now().to_string()[..10].to_owned();
    let yesterday = app.ctx.now().plus_ms(-DAY_MS).to_string()[..10].to_owned();
    for (query, is_listed) in [
        ("status=&kind=&from=&to=".to_owned(), true),
        ("status=pending&kind=webhook.test".to_owned(), true),
        ("status=failed".to_owned(), false),
        ("kind=trade.completed".to_owned(), false),
        (format!("from={today}&to={today}"), true),
        (format!("to={yesterday}"), false),
    ] {
        let page = browser.get(&format!("/developers/webhooks?{query}")).await;
        assert_eq!(page.text.contains("href=\"/developers/webhooks/"), is_listed, "{query}\n{page}");
    }
    for wrong in ["status=late", "kind=trade", "from=today", "to=2026-13-01"] {
        let refused = browser.get(&format!("/developers/webhooks?{wrong}")).await;
        assert_eq!(refused.status.as_u16(), 400, "{wrong}\n{refused}");
    }
}

#[tokio::test]
async fn the_same_trade_by_page_and_by_api_leaves_the_same_rows() {
    let app = TestApp::new().await;
    let markets = [app.market(&["Yes", "No"]).await, app.market(&["Yes", "No"]).await];
    let mut browser = trader(&app, 100).await;
    let Issued { path, plaintext } = issue(&mut browser, "").await;
    browser.act(json!({ "kind": "enable_key", "key": path.rsplit_once('/').unwrap().1 })).await;
    app.run_workers().await;
    let order = |market: &TestMarket| {
        json!({
            "marketId": market.id, "outcomeIndex": 0, "side": "buy", "amountType": "usdc", "amount": "7.50",
            "maxSlippageBps": 100,
        })
    };
    let mut by_page = order(&markets[0]);
    by_page["idempotencyKey"] = "one".into();
    let by_page = browser.post("/app/trades", by_page).await.json();
    let request = app.http().anonymous().call("POST", "/v1/trades").header("x-api-key", &plaintext);
    let request = request.header("idempotency-key", "two").header("content-type", "application/json");
    let by_api = request.body(order(&markets[1]).to_string()).send().await.json();
    app.run_workers().await;
    let mut rows = Vec::new();
    for id in [&by_page["id"], &by_api["trade"]["id"]] {
        let id: TradeId = id.as_str().unwrap().parse().unwrap();
        let found = app.ctx.store.read(id, |tx, id| {
            Box::pin(async move {
                Ok((store::trades::find_any(tx, *id).await?, store::trades::history(tx, *id).await?))
            })
        });
        let (trade, history) = found.await.unwrap();
        let trade: Trade = trade.unwrap();
        let State::Completed(fill) = &trade.state else { panic!("{trade:?}") };
        rows.push((
            (trade.account, trade.outcome_index, trade.side, trade.amount_text, trade.amount_type),
            (trade.intent_side, trade.intent_usdc, trade.intent_tokens, trade.max_slippage_bps),
            (trade.lane, trade.volume, trade.reserved, trade.metadata, trade.held_until),
            (fill.tokens, fill.usdc, fill.fee),
            history.into_iter().map(|(status, _)| status).collect::<Vec<_>>(),
        ));
    }
    assert_eq!(rows[0], rows[1]);
}
