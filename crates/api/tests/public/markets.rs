//! Single markets, and the trending and featured markets.

use app::markets::NewMarket;
use domain::time::DAY_MS;
use http_testkit::public_scene::{Scene, ids, ok};

#[tokio::test]
async fn a_market_shows_its_outcomes_and_its_thread() {
    let scene = Scene::new().await;
    let answer = scene.get(&format!("/api/markets/{}", scene.rain.id)).await;
    ok(&answer);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_settled_market_shows_its_payouts() {
    let scene = Scene::new().await;
    scene.app.resolve(scene.cup, 2).await;
    scene.app.run_workers().await;
    let answer = scene.get(&format!("/api/markets/{}", scene.cup.id)).await;
    let market = ok(&answer)["market"].take();
    assert_eq!((&market["status"], &market["probability"]), (&"RESOLVED".into(), &0.0.into()));
    assert_eq!((&market["yesPrice"], &market["noPrice"]), (&0.0.into(), &1.0.into()));
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_market_that_is_unknown_or_not_yet_on_chain_is_not_found() {
    let scene = Scene::new().await;
    scene.app.faults.every_send(testkit::Fault::LostRequest);
    let new = NewMarket {
        id: Some("0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f81".parse().unwrap()),
        ..testkit::market_of(&scene.app, &["A", "B"])
    };
    app::markets::create(&scene.app.ctx, &scene.app.roles.resolver, new).await.unwrap_err();
    let thread = scene.thread.to_string();
    for id in
        ["0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f81", "0198f3a0-5d4e-7c1b-9a2f-3b4c5d6e7f80", "1", "%ff", &thread]
    {
        for below in ["", "/history", "/social-link", "/quote?outcomeIndex=0&action=buy&amount=1"] {
            scene.refused(&format!("/api/markets/{id}{below}"), 404, "MARKET_NOT_FOUND").await;
        }
    }
    assert_eq!(scene.ok("/api/markets?status=active").await["pagination"]["total"], 3);
}

#[tokio::test]
async fn a_market_reads_frozen_from_the_instant_of_its_end() {
    let scene = Scene::new().await;
    let path = format!("/api/markets/{}", scene.rain.id);
    let ends = scene.app.market_row(scene.rain).await.0.end_time;
    let now = scene.app.ctx.now();
    scene.app.clock.advance(ends.since_ms(now) - 1);
    assert_eq!(scene.ok(&path).await["market"]["status"], "OPEN");
    scene.app.clock.advance(1);
    assert_eq!(scene.ok(&path).await["market"]["status"], "FROZEN");
}

#[tokio::test]
async fn trending_markets_are_ranked_by_the_published_score() {
    let scene = Scene::new().await;
    let answer = scene.get("/api/markets/trending").await;
    let body = ok(&answer);
    assert_eq!(ids(&body, "markets"), [scene.rain.id.to_string(), scene.cup.id.to_string()]);
    for market in body["markets"].as_array().unwrap() {
        let metrics = &market["recentMetrics"];
        let number = |name: &str| metrics[name].as_f64().unwrap();
        let score = 3.0 * number("uniqueTraders").ln_1p()
            + 2.0 * number("tradeCount").ln_1p()
            + (number("volume") / 100.0).ln_1p();
        assert!((market["trendingScore"].as_f64().unwrap() - score).abs() < 0.000_06, "{market} {score}");
    }
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn trending_counts_only_the_timeframe_and_lists_only_open_markets() {
    let scene = Scene::new().await;
    let count = async |query: &str| {
        let body = scene.ok(&format!("/api/markets/trending?{query}")).await;
        (
            body["markets"].as_array().unwrap().len(),
            body["timeframe"]["trending"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(count("timeframe=1h").await, (2, "1h".to_owned()));
    assert_eq!(count("limit=1").await, (1, "24h".to_owned()));
    assert_eq!(count("limit=200&category=weather").await.0, 2);
    assert_eq!(count("category=sports").await.0, 0);
    scene.app.freeze(scene.cup).await;
    scene.app.run_workers().await;
    assert_eq!(count("").await.0, 1);
    scene.app.advance_ms(2 * 3_600_000).await;
    scene.app.run_workers().await;
    assert_eq!(count("timeframe=1h").await.0, 0);
    assert_eq!(count("timeframe=7d").await, (1, "7d".to_owned()));
}

#[tokio::test]
async fn featured_markets_are_in_the_operators_order() {
    let scene = Scene::new().await;
    let first = scene.app.market_with(&["A", "B"], |new| new.featured_position = Some(1)).await;
    let answer = scene.get("/api/markets/featured").await;
    let body = ok(&answer);
    assert_eq!(ids(&body, "markets"), [first.id.to_string(), scene.cup.id.to_string()]);
    assert_eq!(body["_meta"]["count"], 2);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn an_ended_market_is_not_featured() {
    let scene = Scene::new().await;
    let market = async |position: u32, days: i64| {
        let end = scene.app.ctx.now().plus_ms(days * DAY_MS);
        let change = |new: &mut NewMarket| (new.featured_position, new.end_time) = (Some(position), end);
        scene.app.market_with(&["A", "B"], change).await
    };
    let (ended, resolved) = (market(1, 1).await, market(3, 40).await);
    let listed = async || ids(&ok(&scene.get("/api/markets/featured").await), "markets");
    let cup = scene.cup.id.to_string();
    assert_eq!(listed().await, [ended.id.to_string(), cup.clone(), resolved.id.to_string()]);
    scene.app.resolve(resolved, 0).await;
    scene.app.run_workers().await;
    assert_eq!(listed().await, [ended.id.to_string(), cup.clone()]);
    scene.app.advance_ms(DAY_MS).await;
    assert_eq!(listed().await, [cup]);
}

#[tokio::test]
async fn routes_that_need_a_session_reject_requests_without_one() {
    let scene = Scene::new().await;
    for path in ["/api/markets/for-you", "/api/portfolio/analytics"] {
        scene.refused(path, 401, "UNAUTHORIZED").await;
        let keyed = scene.client.get(path).header("authorization", "Bearer x").await;
        assert_eq!(keyed.status.as_u16(), 401);
    }
}
