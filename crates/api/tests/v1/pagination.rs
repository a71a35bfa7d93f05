//! Pagination of lists.

use std::collections::HashSet;

use http_testkit::{Client, Keyed};

use crate::scene::{Scene, ids};

/// Returns `path` with a further parameter.
fn and(path: &str, parameter: &str) -> String {
    let mark = if path.contains('?') { '&' } else { '?' };
    format!("{path}{mark}{parameter}")
}

/// Returns the ids of the page of `path` after `cursor`, and the next cursor.
async fn page(client: &Client<Keyed>, path: &str, cursor: Option<&str>) -> (Vec<String>, Option<String>) {
    let path = cursor.map_or(path.to_owned(), |cursor| and(path, &format!("cursor={cursor}")));
    let body = client.get(&path).await.ok();
    let cursor = body["pagination"]["cursor"].as_str().map(str::to_owned);
    assert_eq!(body["pagination"]["hasMore"], cursor.is_some(), "{path}");
    (ids(&body), cursor)
}

/// Returns the ids of all pages, and calls `meanwhile` between two pages.
async fn walk(client: &Client<Keyed>, path: &str, limit: usize, meanwhile: impl AsyncFn()) -> Vec<String> {
    let path = and(path, &format!("limit={limit}"));
    let (mut seen, mut cursor) = page(client, &path, None).await;
    while let Some(at) = cursor {
        meanwhile().await;
        let (ids, next) = page(client, &path, Some(&at)).await;
        assert!(!ids.is_empty() && ids.len() <= limit, "{path}");
        seen.extend(ids);
        cursor = next;
    }
    seen
}

/// Asserts that with every limit, each row is returned once and in order, even if rows are inserted
/// between the pages.
async fn assert_walks(client: &Client<Keyed>, path: &str, rows: usize, insert: impl AsyncFn()) {
    let whole = ids(&client.get(&and(path, "limit=100")).await.ok());
    assert_eq!(whole.len(), rows);
    for limit in 1..=rows {
        assert_eq!(walk(client, path, limit, async || ()).await, whole, "{path} by {limit}");
    }
    for limit in 1..=3 {
        let before = ids(&client.get(&and(path, "limit=100")).await.ok());
        let seen = walk(client, path, limit, &insert).await;
        let once: HashSet<_> = seen.iter().collect();
        assert_eq!(once.len(), seen.len(), "{path} by {limit} repeats a row");
        let old: Vec<_> = seen.iter().filter(|id| before.contains(id)).cloned().collect();
        assert_eq!(old, before, "{path} by {limit} while rows come in");
        assert!(ids(&client.get(&and(path, "limit=100")).await.ok()).len() > before.len());
    }
}

#[tokio::test]
async fn each_market_is_listed_once_during_inserts() {
    let Scene { app, client, .. } = Scene::new().await;
    // Two rows per creation time, so that pages split ties.
    for _ in 0..2 {
        app.advance_ms(1_000).await;
        app.market(&["A", "B"]).await;
        app.market(&["A", "B"]).await;
    }
    let insert = async || {
        app.market(&["A", "B"]).await;
        app.advance_ms(1_000).await;
    };
    assert_walks(&client, "/v1/markets", 5, insert).await;
    assert_walks(
        &client,
        "/v1/markets?status=OPEN&q=will",
        ids(&client.get("/v1/markets?limit=100").await.ok()).len(),
        async || {
            app.market(&["A", "B"]).await;
        },
    )
    .await;
}

#[tokio::test]
async fn each_trade_is_listed_once_during_inserts() {
    let Scene { app, client, market, .. } = Scene::new().await;
    for amount in ["1", "2", "3", "4", "5"] {
        client.buy(market, 0, amount).await.created();
        if amount != "2" {
            app.clock.advance(1);
        }
    }
    let insert = async || {
        client.buy(market, 1, "1").await.created();
        app.clock.advance(1);
    };
    assert_walks(&client, "/v1/trades", 5, insert).await;
}

#[tokio::test]
async fn each_prediction_is_listed_once_during_inserts() {
    let Scene { app, client, market, .. } = Scene::new().await;
    // The trades of one batch share block and time.
    for amount in ["1", "2", "3"] {
        client.buy(market, 0, amount).await.created();
    }
    app.run_workers().await;
    client.buy(market, 1, "4").await.created();
    app.run_workers().await;
    let insert = async || {
        app.stranger_buys(market, 0, "1").await;
        app.run_workers().await;
    };
    assert_walks(&client, &format!("/v1/markets/{}/predictions", market.id), 4, insert).await;
}

#[tokio::test]
async fn pages_have_the_default_of_their_route_and_at_most_100_rows() {
    let Scene { client, market, .. } = Scene::new().await;
    let predictions = format!("/v1/markets/{}/predictions", market.id);
    for (path, default) in [("/v1/markets", 20), ("/v1/trades", 20), (predictions.as_str(), 50)] {
        assert_eq!(client.get(path).await.ok()["pagination"]["limit"], default, "{path}");
        for (limit, applied) in
            [("1", 1), ("100", 100), ("101", 100), ("1000", 100), ("99999999999999999999", 100)]
        {
            let body = client.get(&format!("{path}?limit={limit}")).await.ok();
            assert_eq!(body["pagination"]["limit"], applied, "{path} {limit}");
        }
        for limit in ["0", "00", "-1", "%2B5", "abc", "1.5", "1e1", "", "%20"] {
            assert_eq!(
                client.get(&format!("{path}?limit={limit}")).await.pointers(),
                ["/limit"],
                "{path} {limit}"
            );
        }
    }
}

/// Creates three pending trades of Ada, and returns the cursor after the newest one in the list
/// with these filters.
async fn begun(filters: &str) -> (Scene, String) {
    let scene = Scene::new().await;
    for _ in 0..3 {
        scene.client.buy(scene.market, 0, "1").await.created();
        scene.app.clock.advance(1);
    }
    let path = format!("/v1/trades?limit=1{filters}").replace("{market}", &scene.market.id.to_string());
    let (_, cursor) = page(&scene.client, &path, None).await;
    (scene, cursor.unwrap())
}

#[tokio::test]
async fn a_cursor_works_with_another_limit_and_reordered_filters() {
    let (scene, cursor) = begun("&status=pending&marketId={market}").await;
    let path = format!("/v1/trades?marketId={}&cursor={cursor}&limit=7&status=pending", scene.market.id);
    assert_eq!(ids(&scene.client.get(&path).await.ok()).len(), 2);
}

#[tokio::test]
async fn a_cursor_with_changed_filters_is_rejected() {
    let (scene, cursor) = begun("&status=pending").await;
    for filters in ["", "status=failed", "status=pending,failed", "status=pending&clientRequestId=a"] {
        let answer = scene.client.get(&format!("/v1/trades?{filters}&cursor={cursor}")).await;
        assert_eq!(answer.pointers(), ["/cursor"], "{filters}");
    }
    let (scene, cursor) = begun("").await;
    let answer = scene.client.get(&format!("/v1/trades?status=pending&cursor={cursor}")).await;
    assert_eq!(answer.pointers(), ["/cursor"]);
}

#[tokio::test]
async fn a_cursor_of_another_list_is_rejected() {
    let (scene, cursor) = begun("").await;
    let predictions = format!("/v1/markets/{}/predictions", scene.market.id);
    for path in ["/v1/markets", predictions.as_str()] {
        let answer = scene.client.get(&format!("{path}?cursor={cursor}")).await;
        assert_eq!(answer.pointers(), ["/cursor"], "{path}");
    }
    let other = scene.app.market(&["A", "B"]).await;
    scene.app.run_workers().await;
    let (_, of_market) = page(&scene.client, &format!("{predictions}?limit=1"), None).await;
    let path = format!("/v1/markets/{}/predictions?cursor={}", other.id, of_market.unwrap());
    assert_eq!(scene.client.get(&path).await.pointers(), ["/cursor"]);
}

#[tokio::test]
async fn a_cursor_with_any_one_character_changed_is_rejected() {
    let (scene, cursor) = begun("").await;
    for at in 0..cursor.len() {
        let mut changed = cursor.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        let answer = scene.client.get(&format!("/v1/trades?cursor={changed}")).await;
        assert_eq!(answer.pointers(), ["/cursor"], "{changed}");
    }
    for text in ["x", "null", &cursor[1..], &format!("{cursor}A"), &format!("{cursor}="), &"A".repeat(600)] {
        let answer = scene.client.get(&format!("/v1/trades?cursor={text}")).await;
        assert_eq!(answer.pointers(), ["/cursor"], "{text}");
    }
}

#[tokio::test]
async fn a_cursor_of_another_user_returns_only_the_callers_rows() {
    let (scene, cursor) = begun("").await;
    let bob = scene.bob().await;
    let body = bob.get(&format!("/v1/trades?cursor={cursor}")).await.ok();
    assert_eq!(ids(&body), [] as [String; 0]);
}
