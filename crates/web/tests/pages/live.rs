//! Live prices: what they show, and that their cost does not grow with streams and topics.

use std::time::Duration;

use http_testkit::public_scene::Scene;
use http_testkit::{Answer, EventStream, StreamEvent};
use uuid::Uuid;

/// Reads a market.
const PRICES: &str = "app::markets::find";

/// Opens a stream of these topics from this address.
async fn open(scene: &Scene, topics: &str, ip: &str) -> EventStream {
    let stream = scene.client.get(&format!("/app/live?topics={topics}")).from_peer(ip).open().await;
    assert_eq!(stream.status, 200);
    stream
}

/// Returns how often the database was read for `unit` so far.
fn reads(scene: &Scene, unit: &str) -> u64 {
    let line = format!("foretell_store_seconds_count{{unit=\"{unit}\"}} ");
    let text = app::scrape::metrics_text(&scene.app.ctx);
    let count = text.lines().find_map(|text| text.strip_prefix(&line).map(|count| count.parse().unwrap()));
    count.unwrap_or_default()
}

/// Trades in a market and reads the block. The watcher has not looked yet.
async fn trade(scene: &Scene) {
    scene.app.stranger_buys(scene.rain, 0, "50").await;
    scene.app.run_workers().await;
}

async fn watch(scene: &Scene) {
    scene.app.workers.watch(&scene.app.ctx).await;
}

/// Returns the event that was sent, or `None` if the stream waits.
async fn sent(stream: &mut EventStream) -> Option<StreamEvent> {
    // With a fresh budget of the runtime, so that only the stream itself can make it wait.
    tokio::task::yield_now().await;
    tokio::time::timeout(Duration::ZERO, stream.news()).await.ok()
}

fn price(event: &StreamEvent) -> f64 {
    event.data["outcomes"][0]["price"].as_f64().unwrap()
}

/// Asserts that a stream was refused because a budget is used up.
fn assert_is_over(refusal: &Answer, limiter: &str) {
    let problem = refusal.json();
    assert_eq!(
        (refusal.status.as_u16(), &problem["code"]),
        (429, &"RATE_LIMIT_EXCEEDED".into()),
        "{refusal}"
    );
    assert_eq!(problem["extensions"]["limiter"], limiter, "{refusal}");
    assert!(refusal.header("retry-after").is_some(), "{refusal}");
}

/// Returns the topics of markets that do not exist.
fn ids(count: u128, first: u128) -> String {
    (0..count).map(|n| format!("m:{}", Uuid::from_u128(first + n))).collect::<Vec<_>>().join(",")
}

#[tokio::test]
async fn a_stream_begins_with_every_market_and_reports_each_change() {
    let scene = Scene::new().await;
    let (rain, alone) = (scene.rain.id, scene.alone.id);
    let mut stream = open(&scene, &format!("m:{rain},m:{alone}"), "192.0.2.1").await;
    let mut topics = Vec::new();
    for _ in 0..2 {
        let event = stream.news().await;
        topics.push(event.data["topic"].as_str().unwrap().to_owned());
        assert_eq!(event.data["status"], "OPEN", "{event:?}");
    }
    topics.sort();
    let mut expected = [format!("m:{rain}"), format!("m:{alone}")];
    expected.sort();
    assert_eq!(topics, expected);
    scene.app.stranger_buys(scene.alone, 0, "100").await;
    scene.app.run_workers().await;
    watch(&scene).await;
    let event = stream.news().await;
    assert_eq!(event.data["topic"], format!("m:{alone}"), "{event:?}");
    assert!(price(&event) > 0.5, "{event:?}");
}

#[tokio::test]
async fn a_market_is_read_once_per_block_for_all_streams_and_repeated_topics() {
    let scene = Scene::new().await;
    let repeated = vec![format!("m:{}", scene.rain.id); 100].join(",");
    let before = reads(&scene, PRICES);
    let mut streams = Vec::new();
    for n in 0..50 {
        streams.push(open(&scene, &repeated, &format!("10.0.{n}.1")).await);
    }
    for stream in &mut streams {
        stream.news().await;
        assert_eq!(sent(stream).await, None, "a repeated topic is one topic");
    }
    assert_eq!(reads(&scene, PRICES) - before, 1, "the first state is shared too");
    watch(&scene).await;
    for _ in 0..3 {
        scene.app.clock.advance(250);
        trade(&scene).await;
        let before = reads(&scene, PRICES);
        watch(&scene).await;
        watch(&scene).await;
        let mut events = Vec::new();
        for stream in &mut streams {
            events.push(sent(stream).await.unwrap());
            assert_eq!(sent(stream).await, None);
        }
        assert_eq!(reads(&scene, PRICES) - before, 1);
        assert!(events.iter().all(|event| *event == events[0]));
    }
    drop(streams);
    assert_eq!(scene.app.ctx.budgets().open_streams(), 0);
    trade(&scene).await;
    let before = reads(&scene, PRICES);
    watch(&scene).await;
    assert_eq!(reads(&scene, PRICES), before, "nobody looks any more");
}

#[tokio::test]
async fn a_market_is_sent_four_times_a_second_and_slow_readers_get_the_newest_state() {
    let scene = Scene::new().await;
    let topic = format!("m:{}", scene.rain.id);
    let (mut fast, mut slow) =
        (open(&scene, &topic, "192.0.2.1").await, open(&scene, &topic, "192.0.2.2").await);
    let first = price(&fast.news().await);
    slow.news().await;
    scene.app.clock.advance(250);
    trade(&scene).await;
    watch(&scene).await;
    let second = price(&sent(&mut fast).await.unwrap());
    // Three more blocks within the same quarter of a second.
    for _ in 0..3 {
        trade(&scene).await;
        watch(&scene).await;
        assert_eq!(sent(&mut fast).await, None);
    }
    scene.app.clock.advance(250);
    watch(&scene).await;
    let third = price(&sent(&mut fast).await.unwrap());
    assert!(first < second && second < third, "{first} {second} {third}");
    assert_eq!(sent(&mut fast).await, None);
    assert_eq!(sent(&mut slow).await.as_ref().map(price), Some(third));
    assert_eq!(sent(&mut slow).await, None);
}

#[tokio::test]
async fn the_end_of_trading_is_sent_without_a_block() {
    let scene = Scene::new().await;
    let mut stream = open(&scene, &format!("m:{}", scene.rain.id), "192.0.2.1").await;
    assert_eq!(stream.news().await.data["status"], "OPEN");
    watch(&scene).await;
    scene.app.clock.advance(400 * 24 * 3_600_000);
    watch(&scene).await;
    assert_eq!(sent(&mut stream).await.unwrap().data["status"], "FROZEN");
}

#[tokio::test]
async fn the_markets_that_an_address_follows_are_bounded() {
    let scene = Scene::new().await;
    let mut streams = Vec::new();
    for n in 0..20 {
        streams.push(open(&scene, &ids(100, n * 100), "192.0.2.1").await);
    }
    let path = |topics: &str| format!("/app/live?topics={topics}");
    let refusal = scene.client.get(&path(&ids(1, 7))).from_peer("192.0.2.1").await;
    assert_is_over(&refusal, "topics");
    assert!(refusal.text.contains("At most 2000 markets that streams follow of one address"), "{refusal}");
    // The person's own topic is no market, and others have their own budget.
    open(&scene, "u", "192.0.2.1").await;
    open(&scene, &ids(100, 0), "192.0.2.2").await;
    drop(streams.pop());
    open(&scene, &ids(100, 0), "192.0.2.1").await;
}

#[tokio::test]
async fn the_streams_of_an_address_are_bounded() {
    let scene = Scene::new().await;
    let topic = format!("m:{}", scene.rain.id);
    let mut streams = Vec::new();
    for _ in 0..100 {
        streams.push(open(&scene, &topic, "192.0.2.1").await);
    }
    let refusal = scene.client.get(&format!("/app/live?topics={topic}")).from_peer("192.0.2.1").await;
    assert_is_over(&refusal, "streams");
    streams.pop();
    open(&scene, &topic, "192.0.2.1").await;
}

#[tokio::test]
async fn a_stream_of_something_else_than_markets_is_rejected() {
    let scene = Scene::new().await;
    for topics in ["m:nonsense", "x:1", "m:", "u:1"] {
        let answer = scene.get(&format!("/app/live?topics={topics}")).await;
        assert_eq!(answer.status.as_u16(), 400, "{topics} {answer}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{topics}");
    }
}

#[tokio::test]
async fn a_repeated_topic_takes_one_place() {
    let scene = Scene::new().await;
    let repeated = vec![format!("m:{}", scene.rain.id); 100].join(",");
    let mut streams = Vec::new();
    // 10,000 topics as they are written, and 100 different ones.
    for _ in 0..100 {
        streams.push(open(&scene, &repeated, "192.0.2.1").await);
    }
}
