//! `GET /api/threads` and the routes below a thread.

use domain::time::{DAY_MS, MINUTE_MS};
use http_testkit::ServeHttp;
use http_testkit::public_scene::{Scene, ids, ok, thread};
use serde_json::json;
use testkit::{START, TestApp};

#[tokio::test]
async fn a_list_shows_threads_with_their_sums() {
    let scene = Scene::new().await;
    let answer = scene.get("/api/threads").await;
    ok(&answer);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_thread_includes_its_markets_on_request() {
    let scene = Scene::new().await;
    let answer = scene.get(&format!("/api/threads/{}?includeMarkets=true", scene.thread)).await;
    ok(&answer);
    insta::assert_snapshot!(answer);
    for query in ["", "?includeMarkets=false"] {
        let body = scene.ok(&format!("/api/threads/{}{query}", scene.thread)).await;
        assert!(body["thread"].get("markets").is_none(), "{body}");
    }
}

#[tokio::test]
async fn the_markets_of_a_thread_have_any_status_unless_filtered() {
    let scene = Scene::new().await;
    scene.app.freeze(scene.rain).await;
    scene.app.run_workers().await;
    let path = format!("/api/threads/{}/markets", scene.thread);
    let (rain, cup) = (scene.rain.id.to_string(), scene.cup.id.to_string());
    for (query, expected) in [
        ("", vec![&cup, &rain]),
        ("?status=active", vec![&cup]),
        ("?status=paused", vec![&rain]),
        ("?status=resolved", vec![]),
        ("?status=cancelled", vec![]),
        ("?sortOrder=asc", vec![&rain, &cup]),
        ("?sortBy=total_volume", vec![&rain, &cup]),
        ("?sortBy=title", vec![&rain, &cup]),
        ("?sortBy=current_probability", vec![&rain, &cup]),
        ("?limit=1&offset=1", vec![&rain]),
    ] {
        let body = scene.ok(&format!("{path}{query}")).await;
        assert_eq!(ids(&body, "markets").iter().collect::<Vec<_>>(), expected, "{query}");
    }
}

#[tokio::test]
async fn chapters_are_in_order_with_the_sums_of_their_markets() {
    let scene = Scene::new().await;
    let answer = scene.get(&format!("/api/threads/{}/chapters", scene.thread)).await;
    ok(&answer);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn an_unknown_or_malformed_thread_is_not_found() {
    let scene = Scene::new().await;
    for id in ["0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f80", "1", "%ff", &scene.rain.id.to_string()] {
        for below in ["", "/markets", "/chapters", "/social-links"] {
            scene.refused(&format!("/api/threads/{id}{below}"), 404, "THREAD_NOT_FOUND").await;
        }
    }
}

#[tokio::test]
async fn a_thread_is_upcoming_then_active_from_its_start_and_closed_from_its_end() {
    let app = TestApp::new().await;
    let window = |start: Option<i64>, end: Option<i64>| {
        thread(&app, move |thread| {
            thread.title = format!("From {start:?} to {end:?}");
            thread.start_time = start.map(|ms| START.plus_ms(ms));
            thread.end_time = end.map(|ms| START.plus_ms(ms));
        })
    };
    let (begins, ends) = (window(Some(MINUTE_MS), None).await, window(None, Some(MINUTE_MS)).await);
    let (open, both) = (window(None, None).await, window(Some(MINUTE_MS), Some(2 * MINUTE_MS)).await);
    let found = async |status: &str| {
        // A new client, so that no cached response is used.
        let client = app.http().anonymous();
        let mut found = ids(&ok(&client.get(&format!("/api/threads?status={status}")).await), "threads");
        found.sort_unstable();
        found
    };
    let named = |threads: &[domain::ids::ThreadId]| {
        let mut named: Vec<_> = threads.iter().map(ToString::to_string).collect();
        named.sort_unstable();
        named
    };
    app.clock.advance(MINUTE_MS - 1);
    assert_eq!(found("active").await, named(&[ends, open]));
    assert_eq!(found("upcoming").await, named(&[begins, both]));
    assert_eq!(found("closed").await, named(&[]));
    app.clock.advance(1);
    assert_eq!(found("active").await, named(&[begins, open, both]));
    assert_eq!(found("upcoming").await, named(&[]));
    assert_eq!(found("closed").await, named(&[ends]));
    app.clock.advance(MINUTE_MS);
    assert_eq!(found("closed").await, named(&[ends, both]));
    assert_eq!(found("all").await, named(&[begins, ends, open, both]));
    app.clock.advance(DAY_MS);
    let thread = ok(&app.http().anonymous().get(&format!("/api/threads/{both}")).await)["thread"].take();
    assert_eq!(thread["status"], "closed");
    assert_eq!((&thread["startTime"], &thread["endTime"]), (&json!(START.s() + 60), &json!(START.s() + 120)));
}

#[tokio::test]
async fn threads_are_filtered_by_category_tags_and_text_and_sorted() {
    let scene = Scene::new().await;
    let other = thread(&scene.app, |thread| {
        thread.title = "Derby night".to_owned();
        thread.category = Some("sports".to_owned());
        thread.tags = vec!["derby".to_owned(), "sun".to_owned()];
    })
    .await;
    scene.app.advance_ms(1_000).await;
    let (weather, derby) = (scene.thread.to_string(), other.to_string());
    let long = format!("tags={}", "_".repeat(25_000));
    for (query, expected) in [
        ("", vec![&derby, &weather]),
        ("category=weather", vec![&weather]),
        ("category=Weather", vec![]),
        ("tags=derby", vec![&derby]),
        ("tags=rain,derby", vec![&derby, &weather]),
        ("tags=sun", vec![&derby, &weather]),
        ("tags=Derby", vec![]),
        ("tags=der__,%25", vec![]),
        (long.as_str(), vec![]),
        ("q=weath", vec![&weather]),
        ("q=DERBY", vec![&derby]),
        ("q=nothing", vec![]),
        ("sortBy=total_volume", vec![&weather, &derby]),
        ("sortBy=total_volume&sortOrder=asc", vec![&derby, &weather]),
        ("sortBy=start_time", vec![&weather, &derby]),
        ("sortBy=created_at&sortOrder=asc", vec![&weather, &derby]),
    ] {
        let body = scene.ok(&format!("/api/threads?{query}")).await;
        assert_eq!(ids(&body, "threads").iter().collect::<Vec<_>>(), expected, "{query}");
        assert_eq!(body["pagination"]["total"], expected.len(), "{query}");
    }
}
