//! `ETag`, `If-None-Match` and `Cache-Control`.

use domain::ErrorCode;
use domain::key::Tier;
use http_testkit::Answer;

use crate::scene::Scene;

fn tag(answer: &Answer) -> String {
    answer.header("etag").unwrap_or_else(|| panic!("no ETag in\n{answer}")).to_owned()
}

#[tokio::test]
async fn an_unchanged_read_is_a_304_without_a_body() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let trade = client.buy(market, 0, "25").await.created();
    app.run_workers().await;
    let id = market.id;
    for path in [
        "/v1/markets".to_owned(),
        "/v1/markets?limit=1".to_owned(),
        format!("/v1/markets/{id}"),
        format!("/v1/markets/{id}/predictions"),
        "/v1/trades".to_owned(),
        format!("/v1/trades/{}", trade["id"].as_str().unwrap()),
        "/v1/portfolio/positions".to_owned(),
    ] {
        let first = client.get(&path).await;
        first.ok();
        let tag = tag(&first);
        assert!(tag.starts_with("W/\"") && tag.len() == 36, "{tag}");
        assert_eq!(first.header("cache-control"), Some("private, no-cache"));
        // A tag does not depend on the time.
        app.clock.advance(1);
        let second = client.get(&path).header("if-none-match", &tag).await;
        assert_eq!((second.status.as_u16(), second.text.as_str()), (304, ""), "{path}");
        assert_eq!(second.header("etag"), Some(tag.as_str()));
        assert_eq!(second.header("cache-control"), Some("private, no-cache"));
        assert_eq!(second.header("x-service-api-version"), Some("2026-04-29"));
        assert_ne!(second.header("x-request-id"), first.header("x-request-id"));
        assert_eq!((second.header("content-type"), second.header("content-length")), (None, None));
        let other = client.get(&path).header("if-none-match", "W/\"other\"").await;
        assert_eq!(other.ok()["data"], first.json()["data"]);
    }
}

#[tokio::test]
async fn an_etag_changes_with_the_data() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let before = tag(&client.get("/v1/markets").await);
    client.buy(market, 0, "25").await.created();
    app.run_workers().await;
    let after = client.get("/v1/markets").header("if-none-match", &before).await;
    after.ok();
    assert_ne!(tag(&after), before);
}

#[tokio::test]
async fn tag_lists_asterisks_and_strong_tags_match_and_malformed_tags_are_ignored() {
    let Scene { client, .. } = Scene::new().await;
    let tag = tag(&client.get("/v1/markets").await);
    let strong = tag.trim_start_matches("W/");
    let list = format!("\"x\", {tag}");
    for (condition, status) in [
        ("*", 304),
        (strong, 304),
        (list.as_str(), 304),
        ("W/\"x\"", 200),
        ("", 200),
        (strong.trim_matches('"'), 200),
        (&format!("{tag} x"), 200),
        (&format!("{tag}, *"), 200),
    ] {
        let answer = client.get("/v1/markets").header("if-none-match", condition).await;
        assert_eq!(answer.status.as_u16(), status, "{condition}");
    }
    let lines = client.get("/v1/markets").header("if-none-match", "\"x\"").header("if-none-match", &tag);
    assert_eq!(lines.await.status.as_u16(), 304);
    let bytes = client.get("/v1/markets").header("if-none-match", b"\"\xff\"");
    bytes.await.ok();
}

#[tokio::test]
async fn etags_differ_by_query_and_key() {
    let Scene { app, http, ada, client, .. } = Scene::new().await;
    let second = http.with(&app.disabled_key(&ada, Tier::Mm).await);
    let tags = [
        tag(&client.get("/v1/markets").await),
        tag(&client.get("/v1/markets?limit=20").await),
        tag(&second.get("/v1/markets").await),
    ];
    assert!(tags[0] != tags[1] && tags[0] != tags[2] && tags[1] != tags[2], "{tags:?}");
}

#[tokio::test]
async fn a_head_request_has_the_etag_and_304_of_the_get() {
    let Scene { client, .. } = Scene::new().await;
    let tag = tag(&client.get("/v1/markets").await);
    let head = client.call("HEAD", "/v1/markets").await;
    assert_eq!(
        (head.status.as_u16(), head.text.as_str(), head.header("etag")),
        (200, "", Some(tag.as_str()))
    );
    assert!(head.header("content-length").is_some_and(|length| length != "0"), "{head}");
    let head = client.call("HEAD", "/v1/markets").header("if-none-match", &tag).await;
    assert_eq!(head.status.as_u16(), 304);
}

#[tokio::test]
async fn errors_writes_and_changing_reads_have_no_etag() {
    let Scene { http, client, market, .. } = Scene::new().await;
    let unknown = client.get("/v1/markets/7").header("if-none-match", "*").await;
    unknown.refused(ErrorCode::MarketNotFound);
    assert_eq!((unknown.header("etag"), unknown.header("cache-control")), (None, Some("no-store")));
    let write = client.buy(market, 0, "1").header("if-none-match", "*").await;
    write.created();
    assert_eq!((write.header("etag"), write.header("cache-control")), (None, Some("private, no-cache")));
    for path in ["/v1/health", "/v1/ready"] {
        let answer = http.anonymous().get(path).header("if-none-match", "*").await;
        answer.ok();
        assert_eq!(
            (answer.header("etag"), answer.header("cache-control")),
            (None, Some("no-store")),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_304_counts_against_the_rate_limit() {
    let Scene { client, .. } = Scene::new().await;
    let remaining = |answer: &Answer| answer.header("x-ratelimit-remaining").unwrap().parse::<u64>().unwrap();
    let first = client.get("/v1/markets").await;
    let again = client.get("/v1/markets").header("if-none-match", tag(&first)).await;
    assert_eq!(again.status.as_u16(), 304);
    assert_eq!(remaining(&again), remaining(&first) - 1);
    assert_eq!(remaining(&client.get("/v1/markets").await), remaining(&first) - 2);
}
