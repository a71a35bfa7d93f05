//! The envelope of every response: all reads of the route table, with their tags and cache headers.

use std::collections::BTreeSet;

use api::v1::router::routes;
use domain::time::DAY_MS;
use http_testkit::Answer;
use serde_json::Value;

use crate::scene::{Scene, confirm, ids, text};

/// The envelope of a read.
enum Wrapped {
    /// One resource, under this name and under `data`.
    One(&'static str),
    /// A page of rows.
    Page,
    /// All rows.
    Rows,
}

use Wrapped::*;

/// Creates a scene with data for every route, and returns a path for each read of the table.
async fn reads() -> (Scene, Vec<(&'static str, String, Wrapped)>) {
    let scene = Scene::new().await;
    let Scene { app, client, market, .. } = &scene;
    let other = app.market(&["Yes", "No"]).await;
    let trade = scene.settled(client.buy(*market, 0, "2500")).await;
    scene.settled(client.buy(other, 0, "100")).await;
    app.resolve(other, 0).await;
    app.run_workers().await;
    let claim = client.redeem(other, 0).await.expect(201)["redemption"].take();
    app.run_workers().await;
    let (market, trade_id, claim_id) = (market.id, text(&trade["id"]), text(&claim["id"]));
    let quote = format!("/v1/markets/{market}/quote?outcomeIndex=0&action=buy&amount=25000000");
    let events = client.get("/v1/webhooks/events").await.ok();
    let event = format!("/v1/webhooks/events/{}", text(&events["data"][0]["id"]));
    let reads = vec![
        ("/v1/markets", "/v1/markets".to_owned(), Page),
        ("/v1/markets/{id}", format!("/v1/markets/{market}"), One("market")),
        ("/v1/markets/{id}/quote", quote, One("quote")),
        ("/v1/markets/{id}/predictions", format!("/v1/markets/{market}/predictions"), Page),
        ("/v1/markets/{id}/history", format!("/v1/markets/{market}/history"), One("history")),
        ("/v1/trades", "/v1/trades".to_owned(), Page),
        ("/v1/trades/{id}", format!("/v1/trades/{trade_id}"), One("trade")),
        ("/v1/traces/{correlationId}", format!("/v1/traces/{}", text(&trade["correlationId"])), One("trace")),
        ("/v1/events", "/v1/events".to_owned(), Page),
        ("/v1/redemptions", "/v1/redemptions".to_owned(), Page),
        ("/v1/redemptions/{id}", format!("/v1/redemptions/{claim_id}"), One("redemption")),
        ("/v1/portfolio", "/v1/portfolio".to_owned(), One("portfolio")),
        ("/v1/portfolio/positions", "/v1/portfolio/positions".to_owned(), Rows),
        ("/v1/webhooks/events", "/v1/webhooks/events".to_owned(), Page),
        ("/v1/webhooks/events/{id}", event, One("event")),
        ("/v1/webhooks/endpoint", "/v1/webhooks/endpoint".to_owned(), One("endpoint")),
        ("/v1/account/usage", "/v1/account/usage".to_owned(), One("usage")),
        ("/v1/account/readiness", "/v1/account/readiness".to_owned(), One("readiness")),
        ("/v1/key", "/v1/key".to_owned(), One("key")),
        ("/v1/sandbox/clock", "/v1/sandbox/clock".to_owned(), One("clock")),
    ];
    let known: Vec<_> = reads.iter().map(|(route, ..)| *route).collect();
    let table = routes().filter(|route| route.method == "GET" && route.asks_for_key());
    assert_eq!(table.map(|route| route.path).collect::<Vec<_>>(), known);
    (scene, reads)
}

/// Asserts that the value is an object with exactly these members.
fn assert_members(value: &Value, members: &[&str], place: &str) {
    let found: BTreeSet<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(found, members.iter().copied().collect(), "{place}");
}

/// Asserts that `_meta` has the request id, the time, and only these further members.
fn assert_meta(scene: &Scene, answer: &Answer, more: &[&str]) {
    let meta = &answer.json()["_meta"];
    assert_members(meta, &[&["requestId", "timestamp"], more].concat(), &answer.to_string());
    assert_eq!(meta["requestId"].as_str(), answer.header("x-request-id"));
    assert_eq!(meta["timestamp"], scene.app.ctx.now().to_string(), "\n{answer}");
}

#[tokio::test]
async fn every_read_has_one_of_three_envelopes() {
    let (scene, reads) = reads().await;
    for (route, path, wrapped) in reads {
        let answer = scene.client.get(&path).await;
        let body = answer.ok();
        match wrapped {
            One(name) => {
                assert_members(&body, &[name, "data", "_meta"], route);
                assert_eq!(body[name], body["data"], "{route}");
            }
            Page => {
                assert_members(&body, &["data", "pagination", "_meta"], route);
                assert_members(&body["pagination"], &["cursor", "hasMore", "limit"], route);
                let default = routes().find(|info| info.method == "GET" && info.path == route);
                let default = default.and_then(|info| info.page).unwrap().default;
                assert_eq!(body["pagination"]["limit"], default, "{route}");
                assert!(!body["data"].as_array().unwrap().is_empty(), "{route} has nothing to tell");
            }
            Rows => {
                assert_members(&body, &["data", "_meta"], route);
                assert!(!body["data"].as_array().unwrap().is_empty(), "{route} has nothing to tell");
            }
        }
        assert_meta(&scene, &answer, &[]);
    }
}

#[tokio::test]
async fn every_write_has_meta_and_creation_reports_repetitions() {
    let scene = Scene::gated().await;
    let Scene { client, market, .. } = &scene;
    let create = |usdc: &str| client.buy(*market, 0, usdc).idempotent(usdc).with("clientRequestId", usdc);
    let (first, again) = (create("1").await, create("1").await);
    let (held, held_again) = (create("100").await, create("100").await);
    let named = client.buy(*market, 0, "1").with("clientRequestId", "1").await;
    for (answer, status, repeated) in [
        (first, 201, false),
        (again, 201, true),
        (held.clone(), 202, false),
        (held_again, 202, true),
        (named, 200, true),
    ] {
        assert_eq!(answer.expect(status)["_meta"]["idempotent"], repeated, "\n{answer}");
        assert_meta(&scene, &answer, &["idempotent"]);
    }
    let held = held.json()["trade"].take();
    let token = serde_json::json!({ "token": held["confirmation"]["token"] });
    let confirmed = confirm(client, text(&held["id"]), token).await;
    assert_members(&confirmed.ok(), &["trade", "data", "_meta"], "confirm");
    let rotated = client.call("POST", "/v1/auth/api-keys/me/webhook-secret/rotate").await;
    assert_members(&rotated.ok(), &["webhookSecret", "data", "_meta"], "rotation");
    let paused = client.call("POST", "/v1/account/pause").await;
    assert_members(&paused.ok(), &["pause", "data", "_meta"], "pause");
    for answer in [confirmed, rotated, paused] {
        assert_meta(&scene, &answer, &[]);
    }
}

/// Collects every number of a body with the name of its member.
fn numbers<'a>(value: &'a Value, name: &'a str, found: &mut Vec<(&'a str, &'a serde_json::Number)>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| numbers(value, name, found)),
        Value::Array(items) => items.iter().for_each(|item| numbers(item, name, found)),
        Value::Number(number) => found.push((name, number)),
        _ => {}
    }
}

#[tokio::test]
async fn amounts_are_strings_and_numbers_are_safe_integers() {
    let amounts = [
        "amount",
        "tokens",
        "tokensOut",
        "usdcAmount",
        "usdcIn",
        "usdcOut",
        "fee",
        "feesPaid",
        "value",
        "supply",
        "costBasis",
        "quantities",
        "liquidity",
        "cost",
        "usdcBalance",
        "volumeUsdc",
        "payouts",
    ];
    let (scene, reads) = reads().await;
    for (route, path, _) in reads {
        let body = scene.client.get(&path).await.ok();
        let mut found = Vec::new();
        numbers(&body, "", &mut found);
        for (name, number) in found {
            assert!(!amounts.contains(&name), "{route}: {name} is the number {number}");
            assert!(number.as_f64().unwrap().abs() < 9_007_199_254_740_992.0, "{route}: {name} is {number}");
        }
    }
}

#[tokio::test]
async fn authenticated_reads_have_a_weak_etag_and_private_cache_control() {
    let (scene, reads) = reads().await;
    for (route, path, _) in reads {
        let answer = scene.client.get(&path).await;
        let tag = answer.header("etag").unwrap_or_else(|| panic!("{route} has no tag")).to_owned();
        assert!(tag.starts_with("W/\"") && tag.ends_with('"'), "{route}: {tag}");
        let kept = if route == "/v1/markets/{id}/quote" { "public, max-age=10" } else { "private, no-cache" };
        assert_eq!(answer.header("cache-control"), Some(kept), "{route}");
        // Usage statistics change with every request.
        if route == "/v1/account/usage" {
            continue;
        }
        let again = scene.client.get(&path).header("if-none-match", &tag).await;
        assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""), "{route}");
        assert_eq!(again.header("etag"), Some(tag.as_str()), "{route}");
    }
}

#[tokio::test]
async fn a_list_has_no_total_and_no_offset() {
    let (scene, reads) = reads().await;
    for (route, path, wrapped) in reads {
        if matches!(wrapped, Page) {
            let answer = scene.client.get(&format!("{path}?offset=1")).await;
            assert_eq!(answer.pointers(), ["/offset"], "{route}");
        }
    }
}

#[tokio::test]
async fn a_cursor_is_valid_for_at_least_seven_days() {
    let scene = Scene::new().await;
    for _ in 0..2 {
        scene.client.buy(scene.market, 0, "1").await.created();
        scene.app.clock.advance(1);
    }
    let first = scene.client.get("/v1/trades?limit=1").await.ok();
    let path = format!("/v1/trades?limit=1&cursor={}", text(&first["pagination"]["cursor"]));
    let second = ids(&scene.client.get(&path).await.ok());
    for days in [7, 30, 365] {
        scene.app.clock.advance(days * DAY_MS);
        assert_eq!(ids(&scene.client.get(&path).await.ok()), second, "{days}");
    }
}
