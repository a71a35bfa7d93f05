//! `GET /api/markets`: filters, sort orders and pages.

use alloy_primitives::U256;
use app::markets::{self, Move};
use http_testkit::public_scene::{Scene, ids, ok};

#[tokio::test]
async fn a_list_shows_open_markets_newest_first() {
    let scene = Scene::new().await;
    let answer = scene.get("/api/markets").await;
    ok(&answer);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn status_values_select_the_documented_markets_and_active_overrides_them() {
    let scene = Scene::new().await;
    let (open, frozen, resolved) = (scene.rain, scene.cup, scene.alone);
    let (cancelled, refunded) = (scene.app.market(&["A", "B"]).await, scene.app.market(&["A", "B"]).await);
    scene.app.stranger_buys(cancelled, 0, "5").await;
    scene.app.run_workers().await;
    scene.app.freeze(frozen).await;
    scene.app.resolve(resolved, 1).await;
    scene.app.cancel(cancelled).await;
    scene.app.cancel(refunded).await;
    scene.app.run_workers().await;
    for (query, expected) in [
        ("", vec![open]),
        ("status=active", vec![open]),
        ("status=paused", vec![frozen]),
        ("status=resolved", vec![resolved]),
        ("status=cancelled", vec![refunded, cancelled]),
        ("status=refunded", vec![refunded]),
        ("status=all", vec![resolved, open]),
        ("active=true&status=paused", vec![open]),
        ("active=false", vec![resolved]),
        ("active=false&status=active", vec![resolved]),
    ] {
        let mut found = ids(&scene.ok(&format!("/api/markets?{query}")).await, "markets");
        let mut expected: Vec<_> = expected.iter().map(|market| market.id.to_string()).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{query}");
    }
}

#[tokio::test]
async fn resolution_bounds_are_inclusive_and_select_only_resolved_markets() {
    let scene = Scene::new().await;
    scene.app.resolve(scene.alone, 0).await;
    scene.app.run_workers().await;
    let (market, _) = scene.app.market_row(scene.alone).await;
    let at = market.resolved_at.unwrap().s();
    let count = async |query: String| ids(&scene.ok(&format!("/api/markets?{query}")).await, "markets").len();
    assert_eq!(count(format!("status=resolved&resolvedAfter={at}")).await, 1);
    assert_eq!(count(format!("status=resolved&resolvedAfter={}", at + 1)).await, 0);
    assert_eq!(count(format!("status=resolved&resolvedBefore={}", at + 1)).await, 1);
    assert_eq!(count(format!("status=resolved&resolvedBefore={}", at - 1)).await, 0);
    assert_eq!(count(format!("status=all&resolvedAfter={}", at + 1)).await, 2);
    assert_eq!(count(format!("resolvedAfter={}", at + 1)).await, 2);
}

#[tokio::test]
async fn markets_are_filtered_by_thread_organization_partner_and_text() {
    let scene = Scene::new().await;
    let (rain, cup, alone) =
        (scene.rain.id.to_string(), scene.cup.id.to_string(), scene.alone.id.to_string());
    let nobody = "0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f80";
    for (query, expected) in [
        (format!("threadId={}", scene.thread), vec![&cup, &rain]),
        (format!("thread_id={}", scene.thread), vec![&cup, &rain]),
        (format!("organizationId={}", scene.organization), vec![&cup, &rain]),
        (format!("partnerId={}", scene.partner), vec![&cup, &rain]),
        ("chapterId=monday".to_owned(), vec![&rain]),
        ("chapterId=nothing".to_owned(), vec![]),
        ("category=weather".to_owned(), vec![&cup, &rain]),
        ("category=sports".to_owned(), vec![]),
        ("q=rain".to_owned(), vec![&rain]),
        ("q=after+that".to_owned(), vec![&alone]),
        ("q=after+rain".to_owned(), vec![]),
        (format!("threadId={nobody}"), vec![]),
        (format!("organizationId={nobody}"), vec![]),
        (format!("partnerId={nobody}"), vec![]),
    ] {
        let body = scene.ok(&format!("/api/markets?{query}")).await;
        assert_eq!(ids(&body, "markets").iter().collect::<Vec<_>>(), expected, "{query}");
        assert_eq!(body["pagination"]["total"], expected.len(), "{query}");
    }
}

#[tokio::test]
async fn every_sort_has_both_directions_and_one_reverses_the_other() {
    let scene = Scene::new().await;
    let (rain, cup, alone) =
        (scene.rain.id.to_string(), scene.cup.id.to_string(), scene.alone.id.to_string());
    for (sort, expected) in [
        ("created_at", [&rain, &cup, &alone]),
        ("total_volume", [&alone, &cup, &rain]),
        ("title", [&alone, &cup, &rain]),
        ("end_time", [&rain, &cup, &alone]),
        ("current_probability", [&cup, &alone, &rain]),
    ] {
        let list = async |order: &str| {
            ids(&scene.ok(&format!("/api/markets?sortBy={sort}&sortOrder={order}")).await, "markets")
        };
        let mut found = list("asc").await;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{sort}");
        found.reverse();
        assert_eq!(list("desc").await, found, "{sort}");
    }
}

#[tokio::test]
async fn settled_markets_are_sorted_by_their_displayed_values() {
    let scene = Scene::new().await;
    let (app, half) = (&scene.app, U256::from(5 * 10u64.pow(17)));
    let resolver = &app.roles.resolver;
    let result = Move::Resolve { payouts: vec![half, half], source: None };
    markets::make_move(&app.ctx, resolver, scene.alone.id, result).await.unwrap();
    // The most bought outcome pays nothing, and the least bought one everything.
    app.resolve(scene.rain, 1).await;
    app.resolve(scene.cup, 0).await;
    app.run_workers().await;
    for (order, expected) in [("asc", [0.0, 0.5, 1.0]), ("desc", [1.0, 0.5, 0.0])] {
        let path = format!("/api/markets?status=resolved&sortBy=current_probability&sortOrder={order}");
        let body = scene.ok(&path).await;
        let shown: Vec<_> =
            body["markets"].as_array().unwrap().iter().map(|row| &row["probability"]).collect();
        assert_eq!(shown, expected, "{order}");
    }
}

#[tokio::test]
async fn pages_continue_until_the_last_row() {
    let scene = Scene::new().await;
    let all = ids(&scene.ok("/api/markets").await, "markets");
    let mut walked = Vec::new();
    for (offset, has_more) in [(0, true), (1, true), (2, false)] {
        let body = scene.ok(&format!("/api/markets?limit=1&offset={offset}")).await;
        let expected = serde_json::json!({ "offset": offset, "limit": 1, "total": 3, "hasMore": has_more });
        assert_eq!(body["pagination"], expected);
        walked.extend(ids(&body, "markets"));
    }
    assert_eq!(walked, all);
    let beyond = scene.ok("/api/markets?offset=4294967295").await;
    assert_eq!(
        (&beyond["pagination"]["hasMore"], &beyond["pagination"]["total"]),
        (&false.into(), &3.into())
    );
    assert!(ids(&beyond, "markets").is_empty());
}
