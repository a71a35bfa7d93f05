//! The webhook routes: events, redelivery, tests, the endpoint and its secret.

use app::keys::IssueKey;
use domain::ErrorCode;
use domain::key::{Scope, Scopes, Tier};
use domain::time::{DAY_MS, MINUTE_MS};
use http_testkit::{Client, Keyed};
use serde_json::{Value, json};
use testkit::{TestKey, key_of};

use crate::scene::{Scene, assert_invalid, assert_refused, ids, rows, text};

const EVENTS: &str = "/v1/webhooks/events";
const ROTATE: &str = "/v1/auth/api-keys/me/webhook-secret/rotate";

/// Creates a scene with a key of Ada whose events go to a port without a listener.
async fn receiving() -> (Scene, Client<Keyed>, TestKey) {
    let scene = Scene::new().await;
    let webhook_url = Some("http://127.0.0.1:65534/hook".to_owned());
    let key = scene.app.issue(IssueKey { webhook_url, ..key_of(&scene.ada, Tier::Mm) }).await.unwrap();
    scene.app.enable(&scene.ada, &key).await;
    let client = scene.http.with(&key);
    (Scene { client: client.clone(), ..scene }, client, key)
}

async fn list(client: &Client<Keyed>, query: &str) -> Value {
    client.get(&format!("{EVENTS}{query}")).await.ok()
}

#[tokio::test]
async fn an_event_is_listed_with_its_delivery_status() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 0, "25")).await;
    insta::assert_snapshot!(scene.client.get(EVENTS).await);
}

#[tokio::test]
async fn events_of_a_key_without_a_url_are_never_sent() {
    let scene = Scene::new().await;
    let trade = scene.settled(scene.client.buy(scene.market, 0, "25")).await;
    let [event] = rows(&list(&scene.client, "").await).try_into().unwrap();
    assert_eq!((&event["status"], &event["tradeRequestId"]), (&json!("none"), &trade["id"]));
    let url = Some("http://127.0.0.1:65534/hook".to_owned());
    app::webhooks::set_webhook_url(&scene.app.ctx, scene.key.caller.key.id, url).await.unwrap();
    assert_eq!(rows(&list(&scene.client, "?status=none").await), [event]);
    let endpoint = scene.client.get("/v1/webhooks/endpoint").await.ok()["endpoint"].take();
    assert_eq!(endpoint["queue"], json!({ "waiting": 0, "behindHead": 0, "head": null }));
}

#[tokio::test]
async fn events_are_listed_newest_first_by_page_status_and_time() {
    let (scene, client, _) = receiving().await;
    let mut sent = Vec::new();
    for _ in 0..4 {
        let test = client.call("POST", "/v1/webhooks/test").await.ok();
        sent.insert(0, text(&test["event"]["id"]).to_owned());
        scene.app.clock.advance(1_000);
    }
    let start = scene.app.ctx.now().plus_ms(-4_000);
    assert_eq!(ids(&list(&client, "").await), sent);
    assert_eq!(ids(&list(&client, "?status=pending").await), sent);
    assert!(rows(&list(&client, "?status=delivered").await).is_empty());
    let (from, to) = (start.plus_ms(1_000), start.plus_ms(3_000).ms());
    assert_eq!(ids(&list(&client, &format!("?from={from}&to={to}")).await), sent[1..3]);
    let first = list(&client, "?limit=3").await;
    assert_eq!((ids(&first), &first["pagination"]["hasMore"]), (sent[..3].to_vec(), &json!(true)));
    let rest = list(&client, &format!("?limit=3&cursor={}", text(&first["pagination"]["cursor"]))).await;
    assert_eq!((ids(&rest), &rest["pagination"]["cursor"]), (sent[3..].to_vec(), &Value::Null));
}

#[tokio::test]
async fn invalid_filters_of_events_are_rejected() {
    let scene = Scene::new().await;
    for (query, pointer) in [
        ("status=lost", "/status"),
        ("status=pending,none", "/status"),
        ("from=yesterday", "/from"),
        ("to=-1", "/to"),
        ("limit=0", "/limit"),
        ("cursor=x", "/cursor"),
        ("kind=trade.completed", "/kind"),
    ] {
        assert_eq!(scene.client.get(&format!("{EVENTS}?{query}")).await.pointers(), [pointer], "{query}");
    }
}

#[tokio::test]
async fn an_event_shows_its_attempts_and_its_body() {
    let scene = Scene::gated().await;
    let held = scene.held().await;
    let [event] = rows(&list(&scene.client, "").await).try_into().unwrap();
    let answer = scene.client.get(&format!("{EVENTS}/{}", text(&event["id"]))).await;
    let shown = answer.ok()["event"].take();
    assert_eq!(shown["payload"]["data"]["tradeId"], held["id"]);
    assert!(
        !answer.text.contains(text(&held["confirmation"]["token"])),
        "the token is nobody's to see\n{answer}"
    );
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn an_event_can_be_redelivered_five_times() {
    let (scene, client, _) = receiving().await;
    let test = client.call("POST", "/v1/webhooks/test").await;
    let id = text(&test.ok()["event"]["id"]).to_owned();
    insta::assert_snapshot!("a_test_is_queued", test);
    let path = format!("{EVENTS}/{id}/redeliver");
    let answer = client.call("POST", &path).await;
    assert_eq!(answer.ok()["event"]["id"], id.as_str());
    insta::assert_snapshot!(answer);
    for replays in 2..=5 {
        client.call("POST", &path).await.ok();
        assert_eq!(list(&client, "").await["data"][0]["replayCount"], replays);
    }
    let refused =
        assert_refused(&scene.app, client.call("POST", &path), ErrorCode::WebhookReplayLimitReached).await;
    assert_eq!(refused["permanent"], true);
    let endpoint = client.get("/v1/webhooks/endpoint").await.ok()["endpoint"].take();
    assert_eq!((&endpoint["queue"]["waiting"], &endpoint["queue"]["behindHead"]), (&json!(6), &json!(5)));
}

#[tokio::test]
async fn five_of_twenty_simultaneous_redeliveries_are_queued() {
    let (_, client, _) = receiving().await;
    let test = client.call("POST", "/v1/webhooks/test").await.ok();
    let path = format!("{EVENTS}/{}/redeliver", text(&test["event"]["id"]));
    let calls = (0..20).map(|_| client.call("POST", &path).send());
    let answers = futures::future::join_all(calls).await;
    let queued = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!(queued, 5);
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        refused.refused(ErrorCode::WebhookReplayLimitReached);
    }
}

#[tokio::test]
async fn tests_and_redeliveries_need_a_url() {
    let scene = Scene::new().await;
    let test = scene.client.call("POST", "/v1/webhooks/test");
    assert_refused(&scene.app, test, ErrorCode::WebhookNotConfigured).await;
    scene.settled(scene.client.buy(scene.market, 0, "25")).await;
    let event = list(&scene.client, "").await["data"][0].take();
    let again = scene.client.call("POST", &format!("{EVENTS}/{}/redeliver", text(&event["id"])));
    assert_refused(&scene.app, again, ErrorCode::WebhookNotConfigured).await;
}

#[tokio::test]
async fn a_write_without_a_body_rejects_members_and_parameters() {
    let (scene, client, _) = receiving().await;
    let test = client.call("POST", "/v1/webhooks/test").await.ok();
    let redeliver = format!("{EVENTS}/{}/redeliver", text(&test["event"]["id"]));
    for path in [redeliver.as_str(), "/v1/webhooks/test", ROTATE] {
        assert_invalid(&scene.app, client.call("POST", path).raw_json(r#"{"x":1}"#), &["/x"]).await;
        assert_invalid(&scene.app, client.call("POST", &format!("{path}?x=1")), &["/x"]).await;
    }
}

#[tokio::test]
async fn the_endpoint_shows_the_event_that_blocks_its_queue() {
    let (scene, client, _) = receiving().await;
    client.call("POST", "/v1/webhooks/test").await.ok();
    scene.client.buy(scene.market, 0, "25").await.created();
    insta::assert_snapshot!(client.get("/v1/webhooks/endpoint").await);
}

#[tokio::test]
async fn a_rotation_shows_the_new_secret_once_and_the_old_one_works_for_seven_days() {
    let (scene, client, _) = receiving().await;
    let now = scene.app.ctx.now();
    let rotated = client.call("POST", ROTATE).await.ok()["webhookSecret"].take();
    assert!(text(&rotated["secret"]).parse::<domain::webhook::WebhookSecret>().is_ok());
    assert_eq!(rotated["rotatedAt"], now.to_string());
    let until = now.plus_ms(7 * DAY_MS).to_string();
    assert_eq!(rotated["previousSecretExpiresAt"], until);
    let endpoint = client.get("/v1/webhooks/endpoint").await;
    assert!(!endpoint.text.contains("whsec_"));
    assert_eq!(
        endpoint.ok()["endpoint"]["secret"],
        json!({ "rotatedAt": now.to_string(), "previousSecretExpiresAt": until })
    );
    scene.app.clock.advance(7 * DAY_MS);
    let secret = client.get("/v1/webhooks/endpoint").await.ok()["endpoint"]["secret"].take();
    assert_eq!(secret["previousSecretExpiresAt"], Value::Null);
}

#[tokio::test]
async fn a_second_rotation_is_possible_after_a_minute() {
    let (scene, client, _) = receiving().await;
    let first = client.call("POST", ROTATE).await.ok()["webhookSecret"].take();
    scene.app.clock.advance(MINUTE_MS - 1_500);
    let answer = client.call("POST", ROTATE).await;
    answer.refused(ErrorCode::WebhookSecretRotationCooldown);
    assert_eq!(answer.header("retry-after"), Some("2"));
    scene.app.clock.advance(1_500);
    let second = client.call("POST", ROTATE).await.ok()["webhookSecret"].take();
    assert_ne!(first["secret"], second["secret"]);
}

#[tokio::test]
async fn one_of_twenty_simultaneous_rotations_succeeds() {
    let (_, client, _) = receiving().await;
    let calls = (0..20).map(|_| client.call("POST", ROTATE).send());
    let answers = futures::future::join_all(calls).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
}

#[tokio::test]
async fn a_url_that_cannot_be_called_is_rejected_when_it_is_set() {
    let scene = Scene::new().await;
    let id = scene.key.caller.key.id;
    for url in ["ftp://example.org", "http://169.254.169.254/latest", "https://user:pw@example.org/", "/hook"]
    {
        let refused =
            app::webhooks::set_webhook_url(&scene.app.ctx, id, Some(url.to_owned())).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::ValidationFailed, "{url}");
        let wanted = IssueKey { webhook_url: Some(url.to_owned()), ..key_of(&scene.ada, Tier::Mm) };
        assert_eq!(scene.app.issue(wanted).await.err().unwrap().code, ErrorCode::ValidationFailed, "{url}");
    }
}

#[tokio::test]
async fn every_webhook_route_needs_the_webhook_scope() {
    let scene = Scene::new().await;
    let others: Vec<_> = Scope::ALL.iter().copied().filter(|scope| *scope != Scope::WebhooksManage).collect();
    let wanted = IssueKey { scopes: Some(Scopes::of(&others)), ..key_of(&scene.ada, Tier::Mm) };
    let client = scene.http.with(&scene.app.issue(wanted).await.unwrap());
    for path in [EVENTS, "/v1/webhooks/events/x", "/v1/webhooks/endpoint"] {
        client.get(path).await.refused(ErrorCode::InsufficientScope);
    }
    for path in ["/v1/webhooks/events/x/redeliver", "/v1/webhooks/test", ROTATE] {
        client.call("POST", path).await.refused(ErrorCode::InsufficientScope);
    }
}

#[tokio::test]
async fn a_test_event_uses_the_stored_url_instead_of_a_cached_one() {
    let scene = Scene::new().await;
    let test = || scene.client.call("POST", "/v1/webhooks/test");
    test().await.refused(ErrorCode::WebhookNotConfigured);
    let set = async |url: &'static str| {
        const SQL: &str = "UPDATE keys SET webhook_url = NULLIF($1, '')";
        let set: Result<u64, store::StoreError> = scene
            .app
            .ctx
            .store
            .write(url, |tx, url| Box::pin(async move { tx.exec(SQL, &store::params![*url]).await }))
            .await;
        assert!(set.unwrap() > 0);
    };
    // Another process changes the URL, while this one still has the key's row cached.
    set("http://127.0.0.1:65534/hook").await;
    test().await.ok();
    set("").await;
    test().await.refused(ErrorCode::WebhookNotConfigured);
}
