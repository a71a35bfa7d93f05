//! `GET /api/markets/{id}/history`.

use app::worker::Worker;
use domain::Timestamp;
use domain::candle::Interval;
use domain::time::{DAY_MS, MINUTE_MS};
use http_testkit::ServeHttp;
use http_testkit::public_scene::{Scene, ok};
use serde_json::Value;
use testkit::{START, TestApp, TestMarket};

/// The end time of the market of [`traded`].
const END: Timestamp = START.plus_ms(40 * DAY_MS);
/// The ranges, with their length and the number of trades in them.
const RANGES: [(&str, i64, u64); 5] = [
    ("1h", 60 * MINUTE_MS, 1),
    ("24h", DAY_MS, 2),
    ("7d", 7 * DAY_MS, 3),
    ("30d", 30 * DAY_MS, 4),
    ("all", 40 * DAY_MS, 5),
];

/// Creates a market with trades 40, 20 and 5 days, 12 hours and half an hour before its end, which
/// is a second away.
async fn traded(app: &TestApp) -> TestMarket {
    let market = app.market_with(&["Yes", "No"], |new| new.end_time = END).await;
    for before in [40 * DAY_MS, 20 * DAY_MS, 5 * DAY_MS, DAY_MS / 2, 30 * MINUTE_MS] {
        app.advance_ms(END.plus_ms(-before).since_ms(app.ctx.now())).await;
        app.stranger_buys(market, 0, "10").await;
    }
    app.advance_ms(END.plus_ms(-1_000).since_ms(app.ctx.now())).await;
    app.run_workers().await;
    market
}

/// Requests the history without a cached response.
async fn history(app: &TestApp, market: TestMarket, query: &str) -> Value {
    let path = format!("/api/markets/{}/history?{query}", market.id);
    ok(&app.http().anonymous().get(&path).await)["history"].take()
}

fn trades(history: &Value) -> u64 {
    let outcomes = history["outcomes"].as_array().unwrap().iter();
    let candles = outcomes.flat_map(|outcome| outcome["candles"].as_array().unwrap());
    candles.map(|candle| candle["tradeCount"].as_u64().unwrap()).sum()
}

/// Asserts that every range ends at `end` and contains the trades in its time.
async fn assert_ranges(app: &TestApp, market: TestMarket, end: Timestamp) {
    for (range, ms, traded) in RANGES {
        let history = history(app, market, &format!("range={range}")).await;
        let [from, to] = ["from", "to"].map(|bound| history[bound].as_i64().unwrap() * 1_000);
        let interval: Interval = history["interval"].as_str().unwrap().parse().unwrap();
        assert!((1..=interval.ms()).contains(&(to - end.ms())), "{range} ends at {to}");
        let begin = START.ms().max(end.ms() - ms);
        assert!((0..=interval.ms()).contains(&(begin - from)), "{range} begins at {from}");
        assert_eq!(trades(&history), traded, "{range}");
    }
    let all = history(app, market, "range=all").await;
    assert_eq!(all["outcomes"][0]["openingPrice"], 0.5, "it begins before the first trade");
}

#[tokio::test]
async fn every_range_of_an_open_market_ends_now() {
    let app = TestApp::new().await;
    let market = traded(&app).await;
    assert_ranges(&app, market, app.ctx.now()).await;
}

#[tokio::test]
async fn every_range_of_a_resolved_market_ends_with_its_trading() {
    let app = TestApp::new().await;
    let market = traded(&app).await;
    app.advance_ms(200 * DAY_MS).await;
    app.workers.sync.tick(&app.ctx).await.unwrap();
    assert_ranges(&app, market, END).await;
    app.resolve(market, 0).await;
    app.run_workers().await;
    app.advance_ms(2_000 * DAY_MS).await;
    assert_ranges(&app, market, END).await;
}

#[tokio::test]
async fn an_old_market_with_many_outcomes_shows_as_many_days_as_fit() {
    let app = TestApp::new().await;
    let labels: Vec<String> = (1..=250).map(|n| format!("Number {n}")).collect();
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let market = app.market_with(&labels, |new| new.end_time = START.plus_ms(2_000 * DAY_MS)).await;
    app.stranger_buys(market, 0, "10").await;
    for days in [60, 1_500] {
        app.advance_ms(START.plus_ms(days * DAY_MS).since_ms(app.ctx.now())).await;
        app.stranger_buys(market, 7, "10").await;
        app.run_workers().await;
        let history = history(&app, market, "range=all").await;
        assert_eq!(history["interval"], "1d");
        assert_eq!(history["to"].as_u64().unwrap() - history["from"].as_u64().unwrap(), 40 * 86_400);
        assert_eq!(trades(&history), 1, "the last of them");
    }
}

#[tokio::test]
async fn a_history_has_candles_in_seconds_and_cents() {
    let scene = Scene::new().await;
    let answer = scene.get(&format!("/api/markets/{}/history?interval=1h", scene.rain.id)).await;
    ok(&answer);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_history_can_be_limited_to_one_outcome_and_a_span() {
    let scene = Scene::new().await;
    let path = format!("/api/markets/{}/history", scene.rain.id);
    let start = START.s();
    let body = scene.ok(&format!("{path}?outcomeIndex=1&interval=1m&from={start}&to={}", start + 600)).await;
    let history = &body["history"];
    assert_eq!(history["outcomes"].as_array().unwrap().len(), 1);
    assert_eq!(history["outcomes"][0]["outcomeIndex"], 1);
    assert_eq!((&history["from"], &history["to"]), (&start.into(), &(start + 600).into()));
    let day = scene.ok(&format!("{path}?range=24h")).await["history"].take();
    assert!(day["to"].as_u64().unwrap() - day["from"].as_u64().unwrap() >= 86_400, "{day}");
    for wrong in ["outcomeIndex=2", "interval=1w", "from=x", "from=9&to=8", "interval=1m&from=0&to=86400000"]
    {
        scene.refused(&format!("{path}?{wrong}"), 400, "INVALID_REQUEST").await;
    }
}
