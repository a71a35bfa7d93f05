//! Cache lifetimes, and conditional requests with the tag of an earlier response.

use http_testkit::public_scene::{Scene, ok};

#[tokio::test]
async fn unchanged_data_keeps_its_etag_and_gets_a_304() {
    let scene = Scene::new().await;
    for path in [
        "/api/threads".to_owned(),
        "/api/markets".to_owned(),
        "/api/markets/trending".to_owned(),
        "/api/markets/featured".to_owned(),
        "/api/leaderboard".to_owned(),
        format!("/api/threads/{}?includeMarkets=true", scene.thread),
        format!("/api/threads/{}/chapters", scene.thread),
        format!("/api/markets/{}", scene.rain.id),
        format!("/api/organizations/{}", scene.organization),
        format!("/api/partners/{}/threads", scene.partner),
        "/api/openapi.json".to_owned(),
        "/api/docs".to_owned(),
    ] {
        let first = scene.get(&path).await;
        let tag = first.header("etag").unwrap_or_else(|| panic!("{path} has no tag\n{first}"));
        assert!(tag.starts_with("W/\""), "{tag}");
        // `requestedAt` changes, but the tag does not depend on it.
        scene.app.clock.advance(3);
        let again = scene.client.get(&path).header("if-none-match", tag).await;
        assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""), "{path}");
        assert_eq!((again.header("etag"), again.header("content-type")), (Some(tag), None), "{path}");
        assert_eq!(again.header("cache-control"), first.header("cache-control"), "{path}");
        let other = scene.client.get(&path).header("if-none-match", "W/\"other\"").await;
        assert_eq!(other.status.as_u16(), 200, "{path}");
        let head = scene.client.call("HEAD", &path).await;
        assert_eq!(
            (head.status.as_u16(), head.text.as_str(), head.header("etag")),
            (200, "", Some(tag)),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_trade_is_visible_within_a_quarter_of_a_second() {
    let scene = Scene::new().await;
    for path in
        ["/api/markets".to_owned(), format!("/api/markets/{}", scene.rain.id), "/api/threads".to_owned()]
    {
        let before = scene.get(&path).await;
        ok(&before);
        scene.app.stranger_buys(scene.rain, 0, "5").await;
        scene.app.run_workers().await;
        let tag = before.header("etag").unwrap();
        // Within 250 ms, all readers get the cached response.
        scene.app.clock.advance(249);
        let kept = scene.client.get(&path).header("if-none-match", tag).await;
        assert_eq!(kept.status.as_u16(), 304, "\n{kept}");
        scene.app.clock.advance(1);
        let after = scene.client.get(&path).header("if-none-match", tag).await;
        ok(&after);
        assert_ne!(after.header("etag"), Some(tag), "{path}");
    }
}

#[tokio::test]
async fn a_catalog_change_is_visible_within_a_quarter_of_a_second() {
    let scene = Scene::new().await;
    let path = format!("/api/partners/{}", scene.partner);
    assert_eq!(scene.ok(&path).await["partner"]["name"], "Club");
    app::catalog::change_partner(&scene.app.ctx, scene.partner, |partner| {
        partner.name = "Society".to_owned()
    })
    .await
    .unwrap();
    scene.app.clock.advance(250);
    assert_eq!(scene.ok(&path).await["partner"]["name"], "Society");
}

#[tokio::test]
async fn equal_queries_share_a_cached_answer_and_other_queries_do_not() {
    let scene = Scene::new().await;
    let a = scene.ok("/api/markets?limit=1&sortBy=title").await;
    let b = scene.ok("/api/markets?x=1&sortBy=title&limit=1").await;
    assert_eq!(a["markets"], b["markets"]);
    let c = scene.ok("/api/markets?limit=1&sortBy=title&sortOrder=asc").await;
    assert_ne!(a["markets"], c["markets"]);
    let d = scene.ok("/api/markets?limit=2&sortBy=title").await;
    assert_ne!(a["markets"], d["markets"]);
}
