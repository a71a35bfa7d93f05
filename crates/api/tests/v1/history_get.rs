//! `GET /v1/markets/{id}/history`. Every test starts at 2027-01-15T08:00:00Z.

use domain::ErrorCode;
use domain::time::{DAY_MS, HOUR_MS, MINUTE_MS};
use serde_json::{Value, json};
use testkit::{START, TestApp, TestMarket};

use crate::scene::Scene;

async fn of(scene: &Scene, market: TestMarket, query: &str) -> Value {
    let answer = scene.client.get(&format!("/v1/markets/{}/history{query}", market.id)).await;
    answer.ok()["history"].take()
}

async fn pointers(scene: &Scene, market: TestMarket, query: &str) -> Vec<String> {
    scene.client.get(&format!("/v1/markets/{}/history{query}", market.id)).await.pointers()
}

/// Lets the stranger buy, and syncs the trade.
async fn bought(app: &TestApp, market: TestMarket, outcome: u8, usdc: &str) {
    app.stranger_buys(market, outcome, usdc).await;
    app.run_workers().await;
}

/// Returns each candle's start in minutes since the start of the test, its volume and its number of
/// trades.
fn candles(history: &Value, outcome: usize) -> Vec<(i64, String, u64)> {
    let candles = history["outcomes"][outcome]["candles"].as_array().unwrap();
    let values = |candle: &Value| {
        let start: domain::Timestamp = candle["start"].as_str().unwrap().parse().unwrap();
        let volume = candle["volumeUsdc"].as_str().unwrap().to_owned();
        (start.since_ms(START) / MINUTE_MS, volume, candle["trades"].as_u64().unwrap())
    };
    candles.iter().map(values).collect()
}

fn at(minutes: i64) -> String {
    START.plus_ms(minutes * MINUTE_MS).to_string()
}

#[tokio::test]
async fn the_history_of_a_market_shows_its_candles_and_its_pool() {
    let scene = Scene::new().await;
    let Scene { app, market, .. } = &scene;
    scene.settled(scene.client.buy(*market, 0, "25")).await;
    app.advance_ms(HOUR_MS).await;
    scene.settled(scene.client.buy(*market, 0, "100")).await;
    scene.settled(scene.client.sell(*market, 0, "60")).await;
    bought(app, *market, 1, "10").await;
    app.advance_ms(HOUR_MS).await;
    let path = format!("/v1/markets/{}/history?interval=1h&from={}&to={}", market.id, at(60), at(180));
    let answer = scene.client.get(&path).await;
    let body = answer.ok();
    assert_eq!(body["history"], body["data"]);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_candle_closes_at_the_probability_after_its_last_trade() {
    let scene = Scene::new().await;
    for (outcome, usdc) in [(0, "25"), (1, "310"), (0, "7.654321")] {
        bought(&scene.app, scene.market, outcome, usdc).await;
    }
    let history = of(&scene, scene.market, "?interval=1m").await;
    let candle = &history["outcomes"][0]["candles"][0];
    let predictions = scene.predictions().await;
    assert_eq!(candle["close"], predictions[0]["probabilityAfter"]);
    assert_eq!(candle["open"], predictions[2]["probabilityAfter"]);
    assert_eq!(candle["high"], candle["open"]);
    let market = scene.client.get(&format!("/v1/markets/{}", scene.market.id)).await.ok();
    let pool = history["pool"].as_array().unwrap().last().unwrap();
    for outcome in 0..2 {
        let shown = &market["market"]["outcomes"][outcome];
        assert_eq!(pool["probabilities"][outcome], shown["probability"]);
        assert_eq!(history["outcomes"][outcome]["candles"][0]["close"], shown["probability"]);
    }
}

#[tokio::test]
async fn a_market_without_trades_has_opening_prices_and_no_candles() {
    let scene = Scene::new().await;
    let market = scene
        .app
        .market_with(&["A", "B"], |new| {
            new.opening_odds =
                ["0.2", "0.8"].map(|odds| domain::Wad::from_amount(odds.parse().unwrap()).0).to_vec();
        })
        .await;
    let history = of(&scene, market, "").await;
    assert_eq!((&history["interval"], &history["from"]), (&json!("5m"), &json!(at(-24 * 60))));
    assert_eq!(history["to"], at(5));
    for (outcome, price) in [(0, 0.2), (1, 0.8)] {
        let shown = &history["outcomes"][outcome];
        assert_eq!((&shown["openingPrice"], &shown["candles"]), (&json!(price), &json!([])));
    }
    assert_eq!(history["pool"].as_array().unwrap().len(), 1);
    assert_eq!((&history["pool"][0]["block"], &history["pool"][0]["at"]), (&Value::Null, &history["from"]));
}

#[tokio::test]
async fn a_trade_moves_all_eight_prices_and_only_its_own_volume() {
    let scene = Scene::new().await;
    let labels = ["A", "B", "C", "D", "E", "F", "G", "H"];
    let market = scene.app.market(&labels).await;
    bought(&scene.app, market, 3, "80").await;
    bought(&scene.app, market, 5, "40").await;
    let history = of(&scene, market, "?interval=1d").await;
    for (index, label) in labels.into_iter().enumerate() {
        let outcome = &history["outcomes"][index];
        assert_eq!((&outcome["label"], &outcome["openingPrice"]), (&json!(label), &json!(0.125)));
        let candle = &outcome["candles"][0];
        let price = |name: &str| candle[name].as_f64().unwrap();
        let (volume, trades) = match index {
            3 => ("80000000", 1),
            5 => ("40000000", 1),
            _ => ("0", 0),
        };
        assert_eq!((&candle["volumeUsdc"], &candle["trades"]), (&json!(volume), &json!(trades)), "{label}");
        assert_eq!(price("open") > 0.125, index == 3, "{label}");
        assert_eq!(price("close") > price("open"), index == 5, "{label}");
        assert_eq!(price("high"), price("open").max(price("close")), "{label}");
        assert_eq!(price("low"), price("open").min(price("close")), "{label}");
    }
    let prices = history["pool"][1]["probabilities"].as_array().unwrap();
    let sum: f64 = prices.iter().map(|price| price.as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    let one = of(&scene, market, "?interval=1d&outcomeIndex=5").await;
    assert_eq!(one["outcomes"], json!([history["outcomes"][5]]));
    assert_eq!(one["pool"], history["pool"]);
}

#[tokio::test]
async fn a_history_includes_its_start_and_excludes_its_end() {
    let scene = Scene::new().await;
    let Scene { app, market, .. } = &scene;
    for usdc in ["1", "2", "3"] {
        bought(app, *market, 0, usdc).await;
        app.advance_ms(15 * MINUTE_MS).await;
    }
    let whole = |minute, usdc| (minute, format!("{usdc}000000"), 1);
    for (from, to, expected) in [
        (at(0), at(45), vec![whole(0, 1), whole(15, 2), whole(30, 3)]),
        (at(15), at(30), vec![whole(15, 2)]),
        // The span is widened to whole intervals.
        (START.plus_ms(15 * MINUTE_MS - 1).to_string(), at(15), vec![whole(0, 1)]),
        (at(15), START.plus_ms(30 * MINUTE_MS + 1).to_string(), vec![whole(15, 2), whole(30, 3)]),
        (START.plus_ms(15 * MINUTE_MS).ms().to_string(), at(30), vec![whole(15, 2)]),
        (at(45), at(60), vec![]),
    ] {
        let history = of(&scene, *market, &format!("?interval=15m&from={from}&to={to}")).await;
        assert_eq!(candles(&history, 0), expected, "{from} {to}");
    }
    let history = of(&scene, *market, &format!("?interval=15m&from={}&to={}", at(16), at(29))).await;
    assert_eq!((&history["from"], &history["to"]), (&json!(at(15)), &json!(at(30))));
    // The state before the first interval is the opening.
    let before = of(&scene, *market, &format!("?interval=15m&from={}&to={}", at(0), at(15))).await;
    assert_eq!(history["outcomes"][0]["openingPrice"], before["outcomes"][0]["candles"][0]["close"]);
    let (opening, closing) = (&history["pool"][0], &before["pool"][1]);
    assert_eq!((&opening["cost"], &opening["block"]), (&closing["cost"], &closing["block"]));
    assert_eq!(opening["at"], at(15));
}

#[tokio::test]
async fn every_interval_includes_every_trade() {
    let scene = Scene::new().await;
    for minutes in [3, 14, 50, 200, 30 * 60] {
        bought(&scene.app, scene.market, 0, "2").await;
        scene.app.advance_ms(minutes * MINUTE_MS).await;
    }
    let (from, to) = (at(0), at(15 * 60));
    for (interval, starts) in [
        ("1m", vec![0, 3, 17, 67, 267]),
        ("5m", vec![0, 15, 65, 265]),
        ("15m", vec![0, 15, 60, 255]),
        ("1h", vec![0, 60, 240]),
        ("4h", vec![0, 240]),
        ("1d", vec![-8 * 60]),
    ] {
        let history = of(&scene, scene.market, &format!("?interval={interval}&from={from}&to={to}")).await;
        let candles = candles(&history, 0);
        assert_eq!(candles.iter().map(|candle| candle.0).collect::<Vec<_>>(), starts, "{interval}");
        assert_eq!(candles.iter().map(|candle| candle.2).sum::<u64>(), 5, "{interval}");
        assert_eq!(history["pool"].as_array().unwrap().len(), starts.len() + 1, "{interval}");
    }
}

#[tokio::test]
async fn a_settled_market_keeps_its_history_and_shows_the_last_day_of_its_trading() {
    let scene = Scene::new().await;
    let Scene { app, market, .. } = &scene;
    let cancelled = app.market(&["A", "B"]).await;
    let ended = app.market_with(&["A", "B"], |new| new.end_time = app.ctx.now().plus_ms(2 * HOUR_MS)).await;
    for market in [*market, cancelled, ended] {
        bought(app, market, 0, "20").await;
    }
    app.advance_ms(HOUR_MS).await;
    // The market is traded and settled in the same second.
    bought(app, *market, 1, "5").await;
    app.resolve(*market, 0).await;
    app.cancel(cancelled).await;
    app.run_workers().await;
    app.advance_ms(10 * DAY_MS).await;
    app.run_workers().await;
    for (market, expected, to) in
        [(*market, vec![0, 60], 65), (cancelled, vec![0], 65), (ended, vec![0], 125)]
    {
        let history = of(&scene, market, "").await;
        assert_eq!(candles(&history, 0).iter().map(|candle| candle.0).collect::<Vec<_>>(), expected);
        assert_eq!(history["to"], at(to));
    }
    let later = of(&scene, *market, &format!("?from={}&to={}", at(65), at(24 * 60))).await;
    assert_eq!(candles(&later, 0), []);
    assert_eq!(later["outcomes"][0]["openingPrice"], later["pool"][0]["probabilities"][0]);
}

#[tokio::test]
async fn the_span_chooses_the_default_interval() {
    let scene = Scene::new().await;
    for (minutes, interval) in [
        (1, "1m"),
        (300, "1m"),
        (301, "5m"),
        (1_500, "5m"),
        (1_501, "15m"),
        (300 * 60, "1h"),
        (300 * 240 + 1, "1d"),
    ] {
        let history = of(&scene, scene.market, &format!("?from={}&to={}", at(0), at(minutes))).await;
        assert_eq!(history["interval"], interval, "{minutes}");
    }
    let history = of(&scene, scene.market, "?interval=1m").await;
    assert_eq!((&history["from"], &history["to"]), (&json!(at(1 - 1_000)), &json!(at(1))));
    // If only one end is given, the other one follows from it.
    let history = of(&scene, scene.market, &format!("?to={}", at(-60))).await;
    assert_eq!(history["from"], at(-25 * 60));
    let history = of(&scene, scene.market, &format!("?from={}", at(-60))).await;
    assert_eq!((&history["interval"], &history["to"]), (&json!("1m"), &json!(at(1))));
}

#[tokio::test]
async fn too_many_candles_are_rejected_with_an_interval_that_fits() {
    let scene = Scene::new().await;
    let ask = |query: String| scene.client.get(&format!("/v1/markets/{}/history{query}", scene.market.id));
    ask(format!("?interval=1m&from={}&to={}", at(0), at(1_000))).await.ok();
    for (query, pointer, detail) in [
        (format!("?interval=1m&from={}&to={}", at(0), at(1_001)), "/interval", "must be at least 5m"),
        (format!("?interval=4h&from={}&to={}", at(0), at(600 * 1_440)), "/interval", "must be at least 1d"),
        (format!("?from={}&to={}", at(0), at(1_001 * 1_440)), "/from", "1002 candles of 1d"),
        (format!("?interval=1d&from={}&to={}", at(0), at(2_000 * 1_440)), "/from", "2001 candles of 1d"),
        ("?interval=1m&from=0&to=253370764799999".to_owned(), "/from", "must be later"),
    ] {
        let answer = ask(query.clone()).await;
        assert_eq!(answer.pointers(), [pointer], "{query}");
        let shown = answer.json()["extensions"]["errors"][0]["detail"].to_string();
        assert!(shown.contains(detail), "{shown}");
    }
}

#[tokio::test]
async fn a_market_with_many_outcomes_gets_fewer_intervals() {
    let scene = Scene::new().await;
    let labels: Vec<String> = (0..100).map(|n| format!("number {n}")).collect();
    let market = scene.app.market(&labels.iter().map(String::as_str).collect::<Vec<_>>()).await;
    bought(&scene.app, market, 99, "5").await;
    let history = of(&scene, market, "").await;
    assert_eq!(history["interval"], "15m");
    assert_eq!(candles(&history, 99), [(0, "5000000".to_owned(), 1)]);
    let hours = of(&scene, market, "?interval=5m").await;
    assert_eq!((&hours["from"], &hours["to"]), (&json!(at(5 - 500)), &json!(at(5))));
    let path = format!("/v1/markets/{}/history?interval=5m&from={}", market.id, at(-500));
    let answer = scene.client.get(&path).await;
    assert_eq!(answer.pointers(), ["/interval"]);
    assert!(answer.text.contains("must be at least 15m"), "{answer}");
    assert!(answer.text.contains("at most 100 are returned"), "{answer}");
}

#[tokio::test]
async fn malformed_parameters_are_reported_by_name() {
    let scene = Scene::new().await;
    for (query, expected) in [
        ("?interval=2m", vec!["/interval"]),
        ("?interval=1M", vec!["/interval"]),
        ("?from=yesterday&to=-1&outcomeIndex=x", vec!["/from", "/to", "/outcomeIndex"]),
        ("?from=2027-01-15", vec!["/from"]),
        ("?limit=5", vec!["/limit"]),
        ("?interval=1h&interval=1h", vec!["/interval"]),
        ("?from=5&to=5", vec!["/from"]),
        ("?from=6&to=5", vec!["/from"]),
        ("?from=2027-01-15T08:00:00.001Z", vec!["/from"]),
        ("?to=", vec!["/to"]),
    ] {
        assert_eq!(pointers(&scene, scene.market, query).await, expected, "{query}");
    }
    for index in ["2", "-1", "256"] {
        let path = format!("/v1/markets/{}/history?outcomeIndex={index}", scene.market.id);
        scene.client.get(&path).await.refused(ErrorCode::OutcomeIndexInvalid);
    }
    for id in ["1", "00000000-0000-7000-8000-000000000000", "%ff"] {
        scene.client.get(&format!("/v1/markets/{id}/history")).await.refused(ErrorCode::MarketNotFound);
    }
}
