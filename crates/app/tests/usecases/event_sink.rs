//! The event sink: order, resumption, takeover and outages, with a broker that a test controls.

use std::collections::HashSet;
use std::sync::Arc;

use app::event_sink::{Acknowledgement, EventPublisher, EventSink, OutgoingEvent, PublishError, StreamState};
use app::worker::{Progress, Worker};
use async_trait::async_trait;
use domain::event::{self, EventKind, FeedPosition, feed_body};
use domain::ids::{EventId, UserId};
use domain::{Clock, Timestamp};
use parking_lot::Mutex;
use store::events::{FeedEvent, NewEvent};
use store::{Store, StoreError, params};
use testkit::TestApp;
use tokio::sync::Semaphore;

use crate::scene::Scene;

/// How the broker treats the next events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Answers,
    /// Stores nothing and answers nothing.
    Gone,
    /// Stores this many more events, and then only loses acknowledgements.
    LosesAcknowledgementsAfter(usize),
}

/// A stream, which outlives the connections of publishers.
struct Broker {
    mode: Mutex<Mode>,
    has_stream: Mutex<bool>,
    messages: Mutex<Vec<OutgoingEvent>>,
    ids: Mutex<HashSet<EventId>>,
    /// The number of events that were sent again.
    repeated: Mutex<usize>,
    /// One permit for each event that may be stored.
    admits: Semaphore,
}

impl Broker {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            mode: Mutex::new(Mode::Answers),
            has_stream: Mutex::new(false),
            messages: Mutex::default(),
            ids: Mutex::default(),
            repeated: Mutex::default(),
            admits: Semaphore::new(Semaphore::MAX_PERMITS),
        })
    }

    fn enter(&self, mode: Mode) {
        *self.mode.lock() = mode;
    }

    fn lose_stream(&self) {
        *self.has_stream.lock() = false;
        self.messages.lock().clear();
        self.ids.lock().clear();
    }

    fn messages_of(&self, user: UserId) -> Vec<OutgoingEvent> {
        self.messages.lock().iter().filter(|message| message.user_id == user).cloned().collect()
    }

    fn sequences_of(&self, user: UserId) -> Vec<u64> {
        self.messages_of(user).iter().map(|message| message.position.sequence).collect()
    }

    fn sink(self: &Arc<Self>, owner: &str) -> EventSink {
        EventSink::new(Arc::new(FakePublisher(Arc::clone(self))), owner.to_owned())
    }
}

struct FakePublisher(Arc<Broker>);

fn gone() -> PublishError {
    PublishError("the broker is gone".to_owned())
}

#[async_trait]
impl EventPublisher for FakePublisher {
    fn stream(&self) -> &str {
        "EVENTS"
    }

    async fn open(&self) -> Result<StreamState, PublishError> {
        match (*self.0.mode.lock(), *self.0.has_stream.lock()) {
            (Mode::Gone, _) => Err(gone()),
            (_, true) => Ok(StreamState::Present),
            (_, false) => Ok(StreamState::Missing),
        }
    }

    async fn create(&self) -> Result<(), PublishError> {
        *self.0.has_stream.lock() = true;
        Ok(())
    }

    async fn publish(&self, event: &OutgoingEvent) -> Result<Acknowledgement, PublishError> {
        let broker = &self.0;
        broker.admits.acquire().await.unwrap().forget();
        let mut mode = broker.mode.lock();
        if *mode == Mode::Gone {
            return Err(gone());
        }
        if !broker.ids.lock().insert(event.id) {
            *broker.repeated.lock() += 1;
            return Ok(Acknowledgement::Duplicate);
        }
        broker.messages.lock().push(event.clone());
        match *mode {
            Mode::LosesAcknowledgementsAfter(0) => Err(PublishError("timed out".to_owned())),
            Mode::LosesAcknowledgementsAfter(left) => {
                *mode = Mode::LosesAcknowledgementsAfter(left - 1);
                Ok(Acknowledgement::Stored)
            }
            _ => Ok(Acknowledgement::Stored),
        }
    }

    async fn close(&self) {}
}

/// Writes events of users at a time, in one transaction.
async fn emit_at(app: &TestApp, users: &[UserId], count: usize, at: Timestamp) {
    let mut events = Vec::new();
    for user_id in users.iter().copied() {
        for _ in 0..count {
            let id = EventId::of_test(app.ctx.uuid());
            let kind = EventKind::StatusChanged;
            let body = event::body(id, kind, at, &serde_json::json!({})).unwrap();
            events.push(NewEvent { id, user_id, kind, key_id: None, trade_id: None, body, at });
        }
    }
    let written: Result<(), StoreError> = app
        .ctx
        .store
        .write(events, |tx, events| {
            Box::pin(async move {
                events.iter().for_each(|event| store::events::emit(tx, event.clone()));
                Ok(())
            })
        })
        .await;
    written.unwrap();
}

async fn emit(app: &TestApp, user: UserId, count: usize) {
    emit_at(app, &[user], count, app.ctx.now()).await;
}

async fn run(app: &TestApp, sink: &EventSink) {
    for _ in 0..1_000 {
        if sink.tick(&app.ctx).await.unwrap() == Progress::Idle {
            return;
        }
    }
    panic!("the sink never comes to rest");
}

/// Returns the user's whole feed.
async fn feed(app: &TestApp, user: UserId) -> Vec<FeedEvent> {
    let read = app
        .ctx
        .store
        .read(user, |tx, user| Box::pin(store::events::list_after(tx, *user, 0, EventKind::ALL, 10_000)));
    read.await.unwrap()
}

/// Asserts that the stream has each event of the user's feed once, in order, with its body.
async fn assert_equals_feed(app: &TestApp, broker: &Broker, user: UserId) {
    let published: Vec<_> =
        broker.messages_of(user).into_iter().map(|message| (message.id, message.body)).collect();
    let feed = feed(app, user).await;
    let expected: Vec<_> =
        feed.iter().map(|event| (event.id, feed_body(event.seq, event.key_id, &event.body))).collect();
    assert!(!expected.is_empty());
    assert_eq!(published, expected);
}

fn metric(app: &TestApp, name: &str) -> String {
    let text = app.ctx.process.metrics.text();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.rsplit(' ').next().unwrap_or_default().to_owned()
}

async fn delete_events(app: &TestApp, user: UserId, through: u64) {
    const SQL: &str = "DELETE FROM events WHERE user_id = $1 AND seq <= $2";
    let input = (user, i64::try_from(through).unwrap());
    let deleted: Result<u64, StoreError> = app
        .ctx
        .store
        .write(input, |tx, (user, through)| {
            Box::pin(async move { tx.exec(SQL, &params![*user, *through]).await })
        })
        .await;
    assert!(deleted.unwrap() > 0);
}

store::on_each_engine! {
    async fn events_are_published_in_the_order_of_each_feed(store: Store) {
        let Scene { app, ada, key, market } = Scene::on(store).await;
        let (broker, bob) = (Broker::new(), app.user("bob").await);
        let sink = broker.sink("one");
        for _ in 0..3 {
            key.buy(&market, 0, "10").await;
            emit(&app, bob.id, 70).await;
            app.run_workers().await;
            run(&app, &sink).await;
        }
        assert_equals_feed(&app, &broker, ada.id).await;
        assert_equals_feed(&app, &broker, bob.id).await;
        assert_eq!(*broker.repeated.lock(), 0);
        assert_eq!(metric(&app, "foretell_sink_lag_seconds"), "0.0");
        let first = &broker.messages_of(bob.id)[0];
        assert_eq!(first.position, FeedPosition { generation: 1, sequence: 1 });
        assert!(first.body.starts_with(r#"{"sequence":1,"apiKeyId":null,"id":""#), "{}", first.body);
    }

    async fn a_lost_acknowledgement_repeats_only_its_event(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (broker, ada) = (Broker::new(), app.user("ada").await.id);
        let sink = broker.sink("one");
        emit(&app, ada, 10).await;
        broker.enter(Mode::LosesAcknowledgementsAfter(4));
        run(&app, &sink).await;
        assert_eq!(broker.sequences_of(ada), [1, 2, 3, 4, 5], "nothing passes the event without an answer");
        broker.enter(Mode::Answers);
        // Another process, which only knows the stored positions.
        app.clock.advance(app.ctx.config.lease_ms);
        run(&app, &broker.sink("two")).await;
        assert_equals_feed(&app, &broker, ada).await;
        assert_eq!(*broker.repeated.lock(), 1);
    }

    async fn an_outage_stops_only_the_sink(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (broker, ada) = (Broker::new(), app.user("ada").await.id);
        let sink = broker.sink("one");
        emit(&app, ada, 3).await;
        run(&app, &sink).await;
        broker.enter(Mode::Gone);
        emit(&app, ada, 3).await;
        for _ in 0..20 {
            assert_eq!(sink.tick(&app.ctx).await.unwrap(), Progress::Idle, "a gone broker fails no tick");
            app.clock.advance(5_000);
        }
        let failures: u64 = metric(&app, "foretell_sink_failures_total").parse().unwrap();
        assert!((10..=20).contains(&failures), "{failures}");
        assert_eq!(metric(&app, "foretell_sink_lag_seconds"), "95.0");
        let readiness = app::health::readiness(&app.ctx).await;
        assert!(readiness.is_ready() && readiness.degraded.is_empty(), "{readiness:?}");
        broker.enter(Mode::Answers);
        run(&app, &sink).await;
        assert_equals_feed(&app, &broker, ada).await;
        assert_eq!(metric(&app, "foretell_sink_lag_seconds"), "0.0");
    }

    async fn after_a_failure_the_sink_pauses(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (broker, ada) = (Broker::new(), app.user("ada").await.id);
        let sink = broker.sink("one");
        broker.enter(Mode::Gone);
        emit(&app, ada, 1).await;
        for _ in 0..50 {
            sink.tick(&app.ctx).await.unwrap();
        }
        assert_eq!(metric(&app, "foretell_sink_failures_total"), "1");
        app.clock.advance(250);
        sink.tick(&app.ctx).await.unwrap();
        sink.tick(&app.ctx).await.unwrap();
        assert_eq!(metric(&app, "foretell_sink_failures_total"), "2");
    }

    async fn another_process_publishes_only_after_the_lease_has_ended(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (broker, ada) = (Broker::new(), app.user("ada").await.id);
        let (one, two) = (broker.sink("one"), broker.sink("two"));
        emit(&app, ada, 5).await;
        run(&app, &one).await;
        emit(&app, ada, 5).await;
        run(&app, &two).await;
        assert_eq!(broker.sequences_of(ada).len(), 5);
        app.clock.advance(app.ctx.config.lease_ms);
        run(&app, &two).await;
        assert_equals_feed(&app, &broker, ada).await;
        emit(&app, ada, 5).await;
        run(&app, &one).await;
        assert_eq!(broker.sequences_of(ada).len(), 10);
        two.release(&app.ctx).await.unwrap();
        run(&app, &one).await;
        assert_equals_feed(&app, &broker, ada).await;
        assert_eq!(*broker.repeated.lock(), 0);
    }

    async fn a_replaced_process_stores_no_position(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (broker, ada) = (Broker::new(), app.user("ada").await.id);
        run(&app, &broker.sink("one")).await;
        emit(&app, ada, 6).await;
        broker.admits.forget_permits(Semaphore::MAX_PERMITS);
        broker.admits.add_permits(2);
        app.clock.advance(app.ctx.config.lease_ms);
        // It publishes two events and hangs in the third.
        let frozen = broker.sink("frozen");
        let mut hangs = Box::pin(frozen.tick(&app.ctx));
        let mut polls = tokio::time::interval(std::time::Duration::from_millis(2));
        while broker.messages.lock().len() < 2 {
            tokio::select! {
                _ = &mut hangs => panic!("it hangs"),
                _ = polls.tick() => {}
            }
        }
        app.clock.advance(app.ctx.config.lease_ms + 1);
        broker.admits.add_permits(1_000);
        let successor = broker.sink("successor");
        while broker.messages.lock().len() < 6 {
            run(&app, &successor).await;
        }
        drop(hangs);
        assert_equals_feed(&app, &broker, ada).await;
        assert_eq!(*broker.repeated.lock(), 2, "what the frozen process had published");
        run(&app, &frozen).await;
        assert_equals_feed(&app, &broker, ada).await;
    }

    async fn deleted_events_are_reported_and_the_rest_is_published(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (broker, ada) = (Broker::new(), app.user("ada").await.id);
        let sink = broker.sink("one");
        emit(&app, ada, 2).await;
        run(&app, &sink).await;
        emit(&app, ada, 200).await;
        delete_events(&app, ada, 150).await;
        run(&app, &sink).await;
        assert_eq!(broker.sequences_of(ada), (1..=2).chain(151..=202).collect::<Vec<_>>());
        assert_eq!(metric(&app, r#"foretell_sink_events_total{outcome="lost"}"#), "148");
        emit(&app, ada, 3).await;
        delete_events(&app, ada, 205).await;
        run(&app, &sink).await;
        emit(&app, ada, 1).await;
        run(&app, &sink).await;
        assert_eq!(broker.sequences_of(ada).last(), Some(&206));
        assert_eq!(metric(&app, r#"foretell_sink_events_total{outcome="lost"}"#), "151");
    }

    async fn a_new_stream_begins_with_the_oldest_stored_event(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (broker, ada) = (Broker::new(), app.user("ada").await.id);
        emit(&app, ada, 100).await;
        delete_events(&app, ada, 90).await;
        let sink = broker.sink("one");
        run(&app, &sink).await;
        assert_eq!(broker.sequences_of(ada), (91..=100).collect::<Vec<_>>());
        assert_eq!(metric(&app, r#"foretell_sink_events_total{outcome="lost"}"#), "0");
        broker.lose_stream();
        emit(&app, ada, 1).await;
        run(&app, &sink).await;
        assert_eq!(broker.sequences_of(ada), (91..=101).collect::<Vec<_>>());
    }

    async fn the_position_of_an_event_names_the_generation_of_the_feed(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (broker, ada) = (Broker::new(), app.user("ada").await.id);
        let sink = broker.sink("one");
        emit(&app, ada, 1).await;
        run(&app, &sink).await;
        let begun = app.ctx.store.write(app.ctx.now(), |tx, now| {
            Box::pin(store::events::begin_generation(tx, *now))
        });
        let generation = begun.await.unwrap();
        emit(&app, ada, 1).await;
        run(&app, &sink).await;
        let positions: Vec<_> = broker.messages_of(ada).iter().map(|message| message.position).collect();
        let position = |generation, sequence| FeedPosition { generation, sequence };
        assert_eq!(positions, [position(1, 1), position(generation, 2)]);
    }

    async fn an_event_that_was_written_slowly_is_found_by_a_sweep(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (broker, ada) = (Broker::new(), app.user("ada").await.id);
        let sink = broker.sink("one");
        run(&app, &sink).await;
        emit_at(&app, &[ada], 1, app.ctx.now().plus_ms(-60_000)).await;
        run(&app, &sink).await;
        assert!(broker.messages_of(ada).is_empty());
        app.clock.advance(30_000);
        run(&app, &sink).await;
        assert_equals_feed(&app, &broker, ada).await;
    }

    async fn a_backlog_of_many_users_is_published_in_order(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let broker = Broker::new();
        let mut users = Vec::new();
        for n in 0..150 {
            users.push(app.user(&format!("user {n}")).await.id);
        }
        let long_ago = app.ctx.now().plus_ms(-3_600_000);
        emit_at(&app, &users, 3, long_ago).await;
        emit_at(&app, &users[70..71], 300, long_ago).await;
        emit_at(&app, &users[..100], 1, app.clock.now()).await;
        run(&app, &broker.sink("one")).await;
        for user in users {
            assert_equals_feed(&app, &broker, user).await;
        }
    }
}
