//! `GET /v1/events` as a stream.

use std::collections::HashSet;
use std::time::Duration;

use app::feed::Watcher;
use app::keys::revoke;
use app::kill_switches::{Setting, set};
use app::worker;
use domain::ErrorCode;
use domain::event::{self, EventKind, TestData};
use domain::ids::{EventId, KeyId, UserId};
use domain::key::Tier;
use http_testkit::{EventStream, RequestBuilder, ServeHttp, StreamEvent};
use store::Store;
use store::events::NewEvent;
use testkit::TestApp;
use uuid::Uuid;

use crate::scene::Scene;

fn feed(scene: &Scene, query: &str) -> RequestBuilder {
    scene.client.get(&format!("/v1/events{query}"))
}

/// Reads everything up to the next heartbeat. Returns ids and names, and the heartbeat's number.
async fn until_heartbeat(stream: &mut EventStream) -> (Vec<(String, String)>, u64) {
    let mut sent = Vec::new();
    loop {
        let event = stream.next().await.unwrap();
        if event.name == "heartbeat" {
            assert_eq!(event.id, Some(format!("1-{}", event.data["sequence"])));
            return (sent, event.data["sequence"].as_u64().unwrap());
        }
        sent.push((event.id.unwrap(), event.name));
    }
}

/// Asserts that the stream ends with this reason.
async fn assert_closes(stream: &mut EventStream, reason: &str) {
    let StreamEvent { name, data, id } = stream.news().await;
    assert_eq!((name.as_str(), &data["reason"], id), ("closing", &reason.into(), None));
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn a_stream_sends_stored_events_then_its_position_then_new_events() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 0, "5")).await;
    let mut stream = feed(&scene, "").open().await;
    assert_eq!(stream.status, 200);
    for (name, value) in
        [("content-type", "text/event-stream"), ("cache-control", "no-store"), ("x-accel-buffering", "no")]
    {
        assert_eq!(stream.headers[name], value);
    }
    assert!(stream.headers.contains_key("x-ratelimit-remaining") && !stream.headers.contains_key("etag"));
    let first = stream.next().await.unwrap();
    assert_eq!((first.id.as_deref(), first.name.as_str()), (Some("1-4"), "trade.completed"));
    let listed = scene.client.get("/v1/events").await.ok();
    assert_eq!(first.data, listed["data"][0], "an event is the item of the list");
    assert_eq!(until_heartbeat(&mut stream).await, (vec![], 4));

    scene.settled(scene.client.buy(scene.market, 1, "5")).await;
    scene.app.workers.watch(&scene.app.ctx).await;
    let next = stream.news().await;
    assert_eq!((next.id.as_deref(), next.name.as_str()), (Some("1-8"), "trade.completed"));
}

#[tokio::test]
async fn a_stream_continues_after_the_last_received_event_or_a_cursor() {
    let scene = Scene::new().await;
    let start = scene.client.get("/v1/events?types=*").await.ok();
    let cursor = start["pagination"]["cursor"].as_str().unwrap();
    scene.settled(scene.client.buy(scene.market, 0, "5")).await;
    let ids = async |call: RequestBuilder| {
        let (sent, last) = until_heartbeat(&mut call.open().await).await;
        assert_eq!(last, 4);
        sent.into_iter().map(|(id, _)| id).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ids(feed(&scene, "?types=*")).await, "1-1 1-2 1-3 1-4");
    assert_eq!(ids(feed(&scene, "?types=*&from=latest")).await, "");
    assert_eq!(ids(feed(&scene, "?types=*").header("last-event-id", "1-2")).await, "1-3 1-4");
    assert_eq!(ids(feed(&scene, "?types=*").header("last-event-id", "1-4")).await, "");
    assert_eq!(ids(feed(&scene, "?types=*").header("last-event-id", "")).await, "1-1 1-2 1-3 1-4");
    let by_cursor = format!("?types=*&cursor={cursor}");
    assert_eq!(ids(feed(&scene, &by_cursor)).await, "1-1 1-2 1-3 1-4");
    // A browser reconnects with the same URL and `Last-Event-ID`.
    assert_eq!(ids(feed(&scene, &by_cursor).header("last-event-id", "1-3")).await, "1-4");
    // An id without a generation, as in earlier versions.
    assert_eq!(ids(feed(&scene, "?types=*").header("last-event-id", "3")).await, "1-4");
    for (query, id) in [("?limit=5", "1"), ("", "x"), ("", "-1"), ("", "+1"), ("", "1.5"), ("", "1-")] {
        let call = feed(&scene, query).header("accept", "text/event-stream").header("last-event-id", id);
        call.await.refused(ErrorCode::ValidationFailed);
    }
    // Any number above the latest event is treated the same, however large it is.
    for id in ["5", "9223372036854775808", "18446744073709551615"] {
        let call = feed(&scene, "").header("accept", "text/event-stream").header("last-event-id", id);
        call.await.refused(ErrorCode::CursorExpired);
    }
}

#[tokio::test]
async fn an_idle_stream_sends_heartbeats() {
    let scene = Scene::new().await;
    let mut stream = feed(&scene, "").open().await;
    assert_eq!(until_heartbeat(&mut stream).await, (vec![], 0));
    scene.client.buy(scene.market, 0, "5").await.created();
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    // Events of other types are skipped, and the heartbeat includes their numbers.
    assert_eq!(until_heartbeat(&mut stream).await, (vec![], 1));
    assert_eq!(until_heartbeat(&mut stream).await, (vec![], 1));
    let took = began.elapsed().as_secs();
    assert!((29..=31).contains(&took), "{took}");
}

#[tokio::test]
async fn a_stream_ends_if_its_key_route_or_service_ends() {
    let scene = Scene::new().await;
    let other = scene.app.key(&scene.ada, Tier::Mm).await;
    let mut of_revoked = scene.http.with(&other).get("/v1/events").open().await;
    let mut of_switched = feed(&scene, "").open().await;
    until_heartbeat(&mut of_revoked).await;
    until_heartbeat(&mut of_switched).await;
    revoke(&scene.app.ctx, other.caller.key.id).await.unwrap();
    // No event wakes the stream.
    scene.app.workers.watch(&scene.app.ctx).await;
    assert_closes(&mut of_revoked, "API_KEY_REVOKED").await;
    scene.settled(scene.client.buy(scene.market, 0, "5")).await;
    scene.app.workers.watch(&scene.app.ctx).await;
    assert_eq!(of_switched.news().await.name, "trade.completed");

    set(&scene.app.ctx, "GET /v1/events", Setting::Off, "ada", None).await.unwrap();
    tokio::time::pause();
    assert_closes(&mut of_switched, "ROUTE_DISABLED").await;
    tokio::time::resume();
    set(&scene.app.ctx, "GET /v1/events", Setting::On, "ada", None).await.unwrap();

    let mut of_stopped = feed(&scene, "?from=latest").open().await;
    let waits = tokio::spawn(async move {
        assert_eq!(of_stopped.news().await.data["reason"], "STOPPING");
        assert_eq!(of_stopped.next().await, None);
    });
    tokio::task::yield_now().await;
    scene.app.ctx.process.feed.close();
    waits.await.unwrap();
    assert_closes(&mut feed(&scene, "").open().await, "STOPPING").await;
}

#[tokio::test]
async fn a_new_generation_ends_streams_and_expires_earlier_positions() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 0, "5")).await;
    let listed = scene.client.get("/v1/events").await.ok();
    let cursor = listed["pagination"]["cursor"].as_str().unwrap();
    let mut open = feed(&scene, "?types=*&from=latest").open().await;
    until_heartbeat(&mut open).await;
    let mut begun = Vec::new();
    for _ in 0..2 {
        let now = scene.app.ctx.now();
        let generation = scene
            .app
            .ctx
            .store
            .write(now, |tx, now| Box::pin(store::events::begin_generation(tx, *now)))
            .await;
        begun.push(generation.unwrap());
    }
    assert!(begun[0] > 1 && begun[1] > begun[0], "{begun:?}");

    scene.settled(scene.client.buy(scene.market, 1, "5")).await;
    scene.app.workers.watch(&scene.app.ctx).await;
    assert_closes(&mut open, "FEED_RESTARTED").await;
    let page = scene.client.get(&format!("/v1/events?cursor={cursor}")).await;
    let extensions = &page.refused(ErrorCode::FeedRestarted)["extensions"];
    assert_eq!((&extensions["generation"], &extensions["oldestSequence"]), (&begun[1].into(), &1.into()));
    for id in ["4".to_owned(), "1-4".to_owned(), format!("{}-4", begun[0])] {
        let call = feed(&scene, "").header("accept", "text/event-stream").header("last-event-id", &id);
        call.await.refused(ErrorCode::FeedRestarted);
    }
    // From the start, every event is sent once, with numbers of the new generation.
    let mut again = feed(&scene, "?types=*").open().await;
    for seq in 1..=8 {
        assert_eq!(again.news().await.id, Some(format!("{}-{seq}", begun[1])));
    }
    let page = scene.client.get("/v1/events?types=*").await.ok();
    let cursor = page["pagination"]["cursor"].as_str().unwrap();
    let rest = scene.client.get(&format!("/v1/events?types=*&cursor={cursor}")).await.ok();
    assert_eq!(rest["data"], serde_json::json!([]));
}

#[tokio::test]
async fn each_user_has_at_most_five_streams() {
    let scene = Scene::new().await;
    let other_key = scene.http.with(&scene.app.key(&scene.ada, Tier::Mm).await);
    let mut open = Vec::new();
    for _ in 0..5 {
        open.push(feed(&scene, "").open().await);
    }
    for call in [feed(&scene, ""), other_key.get("/v1/events")] {
        let refusal = call.header("accept", "text/event-stream").await;
        assert_eq!(refusal.refused(ErrorCode::RateLimitExceeded)["extensions"]["limiter"], "streams");
    }
    // Pages do not count as streams.
    feed(&scene, "").await.ok();
    assert_eq!(scene.bob().await.get("/v1/events").open().await.status, 200);
    open.pop();
    assert_eq!(feed(&scene, "").open().await.status, 200);
    drop(open);
    assert_eq!(scene.app.ctx.process.feed.listeners(), 0);
    assert_eq!(scene.app.ctx.budgets().open_streams(), 0);
}

const EVENTS: u64 = 10_000;
const WRITERS: u64 = 8;
/// Number of events per transaction.
const AT_ONCE: u64 = 5;

/// Writes the events with the number `first` and every `WRITERS`-th number after it.
async fn write(store: Store, user_id: UserId, first: u64) {
    for n in (first..EVENTS / AT_ONCE).step_by(WRITERS as usize) {
        let written = store
            .write((user_id, n), |tx, (user_id, n)| {
                Box::pin(async move {
                    for part in 0..AT_ONCE {
                        let id = EventId::of_test(Uuid::from_u128(u128::from(n * AT_ONCE + part + 1)));
                        let (kind, at) = (EventKind::StatusChanged, testkit::START);
                        let data = TestData { test: true, api_key_id: KeyId(Uuid::nil()) };
                        let body = event::body(id, kind, at, &data).unwrap();
                        let (user_id, key_id, trade_id) = (*user_id, None, None);
                        store::events::emit(tx, NewEvent { id, user_id, kind, key_id, trade_id, body, at });
                    }
                    Ok(())
                })
            })
            .await;
        written.unwrap();
    }
}

store::on_each_engine! {
    async fn a_reader_that_is_cut_off_fifty_times_sees_ten_thousand_events_once_and_in_order(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = app.user("ada").await;
        let client = app.http().with(&app.disabled_key(&ada, Tier::Mm).await);
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let watcher = worker::supervise(Watcher::default, app.ctx.clone(), Duration::from_millis(250), stopped);
        let watcher = tokio::spawn(watcher);
        let writers: Vec<_> =
            (0..WRITERS).map(|first| tokio::spawn(write(app.ctx.store.clone(), ada.id, first))).collect();
        // 50 disconnects at pseudo-random positions, the same in each run.
        let cuts: HashSet<u64> = (1..=50u64).map(|n| n * n * 7_919 % EVENTS).collect();
        assert_eq!(cuts.len(), 50);
        let (mut seen, mut ids) = (0, HashSet::new());
        while seen < EVENTS {
            let mut stream =
                client.get("/v1/events?types=*").header("last-event-id", seen.to_string()).open().await;
            assert_eq!(stream.status, 200);
            while seen < EVENTS {
                let sent = stream.news().await;
                assert_eq!(sent.id, Some(format!("1-{}", seen + 1)));
                assert!(ids.insert(sent.data["id"].as_str().unwrap().to_owned()), "{:?} comes twice", sent.data);
                seen += 1;
                if cuts.contains(&seen) {
                    break;
                }
            }
        }
        for writer in writers {
            writer.await.unwrap();
        }
        assert_eq!(ids.len() as u64, EVENTS);
        stop.send_replace(true);
        watcher.await.unwrap();
    }
}
