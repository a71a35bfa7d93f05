//! `GET /api/markets/{id}/stream`.

use std::time::Duration;

use domain::key::Tier;
use http_testkit::public_scene::refused;
use http_testkit::{Client, EventStream, Http, Keyed, RequestBuilder, ServeHttp, StreamEvent};
use serde_json::Value;
use testkit::{TestApp, TestMarket};

/// A market and a user who trades in it.
struct Scene {
    app: TestApp,
    http: Http,
    client: Client<Keyed>,
    market: TestMarket,
}

impl Scene {
    async fn new() -> Self {
        let app = TestApp::new().await;
        let ada = app.user("ada").funded("1000").await;
        let key = app.key(&ada, Tier::Mm).await;
        let market = app.market(&["Yes", "No"]).await;
        let http = app.http();
        Self { client: http.with(&key), http, market, app }
    }

    /// Creates a trade and runs the workers until it is settled.
    async fn settled(&self, call: RequestBuilder) -> Value {
        let id = call.await.created()["id"].clone();
        self.app.run_workers().await;
        let path = format!("/v1/trades/{}", id.as_str().unwrap());
        self.client.get(&path).await.ok()["trade"].take()
    }
}

fn of(scene: &Scene) -> RequestBuilder {
    scene.http.anonymous().get(&format!("/api/markets/{}/stream", scene.market.id))
}

async fn next(stream: &mut EventStream) -> StreamEvent {
    stream.next().await.unwrap()
}

#[tokio::test]
async fn a_market_stream_sends_the_market_then_trades_and_statuses() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 0, "25")).await;
    let mut stream = of(&scene).open().await;
    assert_eq!(
        (stream.status.as_u16(), &stream.headers["access-control-allow-origin"]),
        (200, &"*".parse().unwrap())
    );
    let market = next(&mut stream).await;
    assert_eq!((market.name.as_str(), &market.data["status"]), ("market", &"OPEN".into()));

    let tagged = scene.client.buy(scene.market, 1, "40").with("clientRequestId", "secret");
    let made = scene.settled(tagged).await;
    scene.app.freeze(scene.market).await;
    scene.app.run_workers().await;
    scene.app.workers.watch(&scene.app.ctx).await;
    let trade = next(&mut stream).await;
    assert_eq!((trade.name.as_str(), &trade.data["txHash"]), ("trade", &made["txHash"]));
    assert_eq!(trade.data["id"], trade.id.clone().unwrap());
    let status = next(&mut stream).await;
    assert_eq!((status.name.as_str(), &status.data["status"]), ("status", &"FROZEN".into()));

    // Resume from the start: the current market, followed by the same events.
    let mut again = of(&scene).header("last-event-id", market.id.clone().unwrap()).open().await;
    let now = next(&mut again).await;
    assert_eq!((now.id, &now.data["status"]), (market.id, &"FROZEN".into()));
    assert_eq!((next(&mut again).await, next(&mut again).await), (trade.clone(), status.clone()));
    let mut behind = of(&scene).header("last-event-id", trade.id.clone().unwrap()).open().await;
    next(&mut behind).await;
    assert_eq!(next(&mut behind).await, status);
    // The price after the trade is the market's current price.
    assert_eq!(trade.data["priceAfter"], now.data["outcomes"][1]["price"]);
    let shown =
        format!("{market:?}{trade:?}{status:?}", market = now.data, trade = trade.data, status = status.data);
    assert!(!shown.contains("secret") && !shown.contains(made["id"].as_str().unwrap()), "{shown}");
    let text = serde_json::to_string_pretty(&[market.data, trade.data, status.data]).unwrap();
    let ids =
        [(scene.market.id.to_string(), "<market>"), (made["txHash"].as_str().unwrap().to_owned(), "<tx>")];
    let text = ids.iter().fold(text, |text, (id, name)| text.replace(id, name));
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn a_market_stream_ends_with_a_closing_event_if_the_service_stops() {
    let scene = Scene::new().await;
    let mut stream = of(&scene).open().await;
    next(&mut stream).await;
    tokio::time::pause();
    assert_eq!(next(&mut stream).await.name, "heartbeat");
    tokio::time::resume();
    scene.app.ctx.process.feed.close();
    assert_eq!(next(&mut stream).await.data["reason"], "STOPPING");
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn an_address_has_at_most_ten_streams() {
    let scene = Scene::new().await;
    let mut open = Vec::new();
    for _ in 0..10 {
        open.push(of(&scene).open().await);
    }
    refused(&of(&scene).await, 429, "RATE_LIMIT_EXCEEDED");
    assert_eq!(of(&scene).from_peer("198.51.100.4").open().await.status, 200);
    drop(open);
    assert_eq!(scene.app.ctx.budgets().open_streams(), 0);
    assert_eq!(of(&scene).open().await.status, 200);
}

#[tokio::test]
async fn an_unknown_market_has_no_stream_and_a_malformed_position_is_rejected() {
    let scene = Scene::new().await;
    for id in ["x", "018f0000-0000-7000-8000-000000000000"] {
        let call = scene.http.anonymous().get(&format!("/api/markets/{id}/stream"));
        refused(&call.await, 404, "MARKET_NOT_FOUND");
    }
    for place in ["1", "000000000001", "000000000001-00000x", "\u{e9}"] {
        refused(&of(&scene).header("last-event-id", place).await, 400, "INVALID_REQUEST");
    }
}

/// Reads a market's events.
const EVENTS: &str = "app::feed::market";

/// Returns how often the database was read for a market's events so far.
fn reads(scene: &Scene) -> u64 {
    let line = format!("foretell_store_seconds_count{{unit=\"{EVENTS}\"}} ");
    let text = app::scrape::metrics_text(&scene.app.ctx);
    let count = text.lines().find_map(|text| text.strip_prefix(&line).map(|count| count.parse().unwrap()));
    count.unwrap_or_default()
}

/// Returns the event that was sent, or `None` if the stream waits.
async fn sent(stream: &mut EventStream) -> Option<StreamEvent> {
    // With a fresh budget of the runtime, so that only the stream itself can make it wait.
    tokio::task::yield_now().await;
    tokio::time::timeout(Duration::ZERO, stream.news()).await.ok()
}

#[tokio::test]
async fn the_events_of_a_block_are_read_once_for_all_streams() {
    let scene = Scene::new().await;
    let mut streams = Vec::new();
    for n in 0..50 {
        streams.push(of(&scene).from_peer(&format!("10.0.{n}.1")).open().await);
    }
    scene.app.workers.watch(&scene.app.ctx).await;
    for stream in &mut streams {
        assert_eq!(next(stream).await.name, "market");
        assert_eq!(sent(stream).await, None);
    }
    // The first events of a stream of its own are behind it now.
    for round in 0..3 {
        scene.app.clock.advance(250);
        let trade = scene.settled(scene.client.buy(scene.market, 0, "5")).await;
        let before = reads(&scene);
        scene.app.workers.watch(&scene.app.ctx).await;
        for stream in &mut streams {
            assert_eq!(sent(stream).await.unwrap().data["txHash"], trade["txHash"], "{round}");
            assert_eq!(sent(stream).await, None);
        }
        assert_eq!(reads(&scene) - before, 1, "{round}");
    }
}

#[tokio::test]
async fn a_slow_stream_reads_what_it_has_missed_and_nothing_twice() {
    let scene = Scene::new().await;
    let (mut fast, mut slow) = (of(&scene).open().await, of(&scene).open().await);
    next(&mut fast).await;
    next(&mut slow).await;
    assert_eq!((sent(&mut fast).await, sent(&mut slow).await), (None, None));
    let mut told = Vec::new();
    for _ in 0..4 {
        scene.app.clock.advance(250);
        scene.settled(scene.client.buy(scene.market, 0, "5")).await;
        scene.settled(scene.client.buy(scene.market, 1, "5")).await;
        scene.app.workers.watch(&scene.app.ctx).await;
        told.extend([next(&mut fast).await, next(&mut fast).await]);
        assert_eq!(sent(&mut fast).await, None);
    }
    let mut late = Vec::new();
    while late.len() < told.len() {
        late.push(next(&mut slow).await);
    }
    assert_eq!(late, told);
    scene.app.clock.advance(250);
    scene.settled(scene.client.buy(scene.market, 0, "5")).await;
    scene.app.workers.watch(&scene.app.ctx).await;
    let (one, other) = (next(&mut fast).await, next(&mut slow).await);
    assert_eq!(one, other);
    assert_eq!((sent(&mut fast).await, sent(&mut slow).await), (None, None));
}

#[tokio::test]
async fn the_streams_of_a_network_are_bounded() {
    let scene = Scene::new().await;
    let mut open = Vec::new();
    for address in 1..=4 {
        for _ in 0..10 {
            open.push(of(&scene).from_peer(&format!("198.51.100.{address}")).open().await);
        }
    }
    refused(&of(&scene).from_peer("198.51.100.5").await, 429, "RATE_LIMIT_EXCEEDED");
    assert_eq!(of(&scene).from_peer("198.51.101.5").open().await.status, 200);
}
