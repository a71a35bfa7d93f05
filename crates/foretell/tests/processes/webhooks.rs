//! Webhooks with a sender that is killed repeatedly, and with a receiver that is asleep. Every
//! event is acknowledged at least once, each key's events arrive in order, and an event is repeated
//! only if a kill interrupted its attempt.
//!
//! After each kill, the test compares the receiver with the database. An attempt is in progress
//! from its arrival at the receiver until the service has stored its delivery. Only events whose
//! attempt was in progress at a kill may be repeated, once per kill.
//!
//! `FORETELL_CRASH_KILLS` sets the number of kills (default 20), `FORETELL_WEBHOOK_BACKLOG` the
//! number of events for the sleeping receiver (default 1,000). `FORETELL_CRASH_SEED` repeats the
//! random choices of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::event::{self, EventKind, TestData};
use domain::ids::{EventId, KeyId, UserId};
use domain::time::SystemClock;
use domain::{Clock, Timestamp};
use store::events::NewEvent;
use store::{SqlValue, Store, StoreError};

use crate::clients::{Clients, Trader};
use crate::dice::Dice;
use crate::feed::Feed;
use crate::oracle::{self, number};
use crate::receiver::{Came, Receiver};
use crate::service::Service;

/// Minimum number of events per kill. A run with fewer events proves little.
const EVENTS_A_KILL: usize = 5;

/// Returns the number in an environment variable, or a default.
pub fn setting(name: &str, otherwise: u32) -> u32 {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(otherwise)
}

pub fn now() -> Timestamp {
    SystemClock::default().now()
}

/// Sends each key's events to its own path at `receiver`.
pub async fn point_keys_at(store: &Store, receiver: &Receiver) {
    const SQL: &str = "UPDATE keys SET webhook_url = CAST($1 AS TEXT) || '/' || id";
    let set: Result<u64, StoreError> = store
        .write(receiver.url.clone(), |tx, url| {
            Box::pin(async move { tx.exec(SQL, &[SqlValue::from(url.as_str())]).await })
        })
        .await;
    assert!(set.unwrap() > 0, "there are no keys");
}

/// Waits until every queue is empty.
pub async fn delivered(store: &Store) {
    let mut polls = tokio::time::interval(Duration::from_millis(50));
    for _ in 0..12_000 {
        polls.tick().await;
        if number(store, "SELECT COUNT(*) FROM webhook_queue").await == 0 {
            return;
        }
    }
    panic!("events are still queued after ten minutes");
}

/// A queued event: its key, its id, its trade and its delivery status.
struct Sent {
    key: String,
    event: String,
    trade: Option<String>,
    status: String,
}

/// Returns the queued events in the order of their writing.
async fn sent(store: &Store) -> Vec<Sent> {
    const SQL: &str = "SELECT deliveries.key_id, event_id, deliveries.trade_id, status FROM deliveries
        JOIN events ON events.id = event_id WHERE status <> 'none' ORDER BY events.user_id, seq";
    let rows: Result<Vec<Sent>, StoreError> = store
        .read((), |tx, ()| {
            Box::pin(tx.list(SQL, &[], |row| {
                let (key, event) = (row.get("key_id")?, row.get("event_id")?);
                Ok(Sent { key, event, trade: row.get("trade_id")?, status: row.get("status")? })
            }))
        })
        .await;
    rows.unwrap()
}

/// The observations of one run of the sender.
struct Life {
    /// The received requests, in order of arrival.
    came: Vec<Came>,
    /// Events that the receiver had when the sender was killed, and whose delivery was not stored.
    under_way: BTreeSet<String>,
}

/// Asserts that every event was acknowledged, that each key's events are in order, and that an
/// event was only repeated once after a kill that interrupted it. Returns the number of repeated
/// events.
fn check(sent: &[Sent], lives: &[Life]) -> usize {
    let mut wanted: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for each in sent {
        assert_eq!(each.status, "delivered", "event {}", each.event);
        wanted.entry(&each.key).or_default().push(&each.event);
    }
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut acknowledged, mut may_repeat) = (BTreeSet::new(), BTreeSet::new());
    let mut repeated = 0;
    for life in lives {
        for Came { key, event, answered, .. } in &life.came {
            let of_key = wanted.get(key.as_str()).map_or(&[][..], Vec::as_slice);
            let place = places.entry(key).or_default();
            if of_key.get(*place) == Some(&event.as_str()) {
                *place += 1;
            } else {
                let last = of_key[..*place].last().copied();
                assert_eq!(last, Some(event.as_str()), "of key {key} an event came out of order");
                assert!(
                    may_repeat.remove(event),
                    "event {event} came again and was not under way at a death"
                );
                repeated += 1;
            }
            if *answered {
                acknowledged.insert(event.as_str());
            }
        }
        may_repeat = life.under_way.iter().collect();
    }
    for each in sent {
        assert!(acknowledged.contains(each.event.as_str()), "event {} was never acknowledged", each.event);
    }
    repeated
}

/// Collects the runs of a sender that is killed repeatedly.
struct Lives<'a> {
    receiver: &'a Receiver,
    store: &'a Store,
    lives: Vec<Life>,
    /// The received events, and whether they were acknowledged.
    seen: BTreeMap<String, bool>,
    came: usize,
    under_way: usize,
    /// Number of interrupted attempts that were already acknowledged. These are the ones that are
    /// delivered twice.
    unwritten: usize,
}

impl<'a> Lives<'a> {
    const fn new(receiver: &'a Receiver, store: &'a Store) -> Self {
        let seen = BTreeMap::new();
        Self { receiver, store, lives: Vec::new(), seen, came: 0, under_way: 0, unwritten: 0 }
    }

    /// Ends a run after the sender was killed and before it is restarted.
    async fn end_by_kill(&mut self) {
        self.receiver.hear_out().await;
        let came = self.next();
        // A write that PostgreSQL still commits for the killed process counts as in progress,
        // although the event is not repeated.
        let mut of_keys = BTreeMap::new();
        for (key, event) in undelivered(self.store).await {
            let Some(answered) = self.seen.get(&event) else { continue };
            self.unwritten += usize::from(*answered);
            let other = of_keys.insert(key, event);
            assert_eq!(other, None, "two events of one key were under way at once");
        }
        let under_way: BTreeSet<String> = of_keys.into_values().collect();
        self.under_way += under_way.len();
        self.lives.push(Life { came, under_way });
    }

    /// Ends a run after the sender has sent everything.
    fn end_by_rest(&mut self) {
        let came = self.next();
        self.lives.push(Life { came, under_way: BTreeSet::new() });
    }

    fn next(&mut self) -> Vec<Came> {
        let came = self.receiver.came_from(self.came);
        self.came += came.len();
        self.seen.extend(came.iter().map(|each| (each.event.clone(), each.answered)));
        came
    }
}

/// Returns the keys and ids of queued events whose delivery is not stored.
async fn undelivered(store: &Store) -> Vec<(String, String)> {
    const SQL: &str = "SELECT key_id, event_id FROM deliveries WHERE status NOT IN ('none', 'delivered')";
    let rows = store
        .read((), |tx, ()| Box::pin(tx.list(SQL, &[], |row| Ok((row.get("key_id")?, row.get("event_id")?)))))
        .await;
    rows.unwrap()
}

async fn survives_kills(service: &mut Service, salt: u64) {
    let (mut dice, kills) = (Dice::new(salt), setting("FORETELL_CRASH_KILLS", 20));
    let demonstration = service.demonstration().await;
    let receiver = Receiver::start().await;
    // A slow response, so that kills hit attempts that wait for it, and not only the writes after
    // it.
    receiver.answer_within(Duration::from_millis(5));
    let store = service.store().await;
    point_keys_at(&store, &receiver).await;
    let clients = Clients::start(Trader::of_demonstration(&demonstration, 4));
    let mut lives = Lives::new(&receiver, &store);
    for _ in 0..kills {
        service.start().await;
        clients.send_to(&[service.base_url()]);
        // Some kills hit the start, most of them the deliveries, whenever these begin.
        if dice.roll(4) > 0 {
            receiver.hear_more().await;
        }
        service.live_for(Duration::from_millis(dice.roll(250))).await;
        service.kill().await;
        lives.end_by_kill().await;
    }
    service.start().await;
    clients.send_to(&[service.base_url()]);
    let kills = kills as usize;
    let acknowledged = clients.finish_after(kills * EVENTS_A_KILL).await;
    oracle::settled(&store).await;
    delivered(&store).await;
    lives.end_by_rest();

    let Lives { lives, under_way, unwritten, .. } = lives;
    let sent = sent(&store).await;
    let repeated = check(&sent, &lives);
    eprintln!(
        "{kills} kills, {} trades acknowledged, {} events; at the kills {under_way} were under way, {unwritten} of them acknowledged; {repeated} came again",
        acknowledged.len(),
        sent.len()
    );
    let trades: Vec<&str> = sent.iter().filter_map(|each| each.trade.as_deref()).collect();
    let once: BTreeSet<&str> = trades.iter().copied().collect();
    assert_eq!(once.len(), trades.len(), "a trade has two events of its end");
    for trade in acknowledged.values() {
        assert!(once.contains(trade.as_str()), "trade {trade} was acknowledged and its end was not sent");
    }
    assert!(under_way >= kills / 4, "the kills met too little: {under_way} attempts");
    assert!(unwritten >= kills / 10, "hardly a kill came behind an acknowledgement: {unwritten}");
    // Kill the service before its database is dropped.
    service.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_lose_no_event_and_keep_their_order_on_sqlite() {
    survives_kills(&mut Service::on_sqlite().await, 11).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_lose_no_event_and_keep_their_order_on_postgres() {
    let Some(mut service) = Service::on_postgres().await else { return };
    survives_kills(&mut service, 12).await;
}

/// Writes `each` test events per key to the database, as another process would.
pub async fn emit(store: &Store, keys: &[(UserId, KeyId)], each: u32, tag: u32, at: Timestamp) {
    let mut events = Vec::new();
    for number in 0..each {
        for (place, (user_id, key_id)) in (0u32..).zip(keys) {
            let unique = (u128::from(tag) << 64) | (u128::from(place) << 32) | u128::from(number);
            let id = EventId::of_test(uuid::Uuid::from_u128(unique));
            let body = event::body(id, EventKind::Test, at, &TestData { test: true, api_key_id: *key_id });
            let (user_id, key_id, kind) = (*user_id, Some(*key_id), EventKind::Test);
            events.push(NewEvent { id, user_id, kind, key_id, trade_id: None, body: body.unwrap(), at });
        }
    }
    let written = store
        .write(events, |tx, events| {
            Box::pin(async move {
                events.iter().for_each(|event| store::events::emit(tx, event.clone()));
                Ok(())
            })
        })
        .await;
    written.unwrap();
}

/// Returns the users and keys of the service.
pub async fn keys(store: &Store) -> Vec<(UserId, KeyId)> {
    const SQL: &str = "SELECT user_id, id FROM keys ORDER BY id";
    let found = store
        .read((), |tx, ()| Box::pin(tx.list(SQL, &[], |row| Ok((row.get("user_id")?, row.get("id")?)))))
        .await;
    found.unwrap()
}

/// Response time of the receiver after its sleep.
const TAKES: Duration = Duration::from_millis(5);
/// Number of disconnects of the feed's reader.
const CUTS: usize = 50;

/// Queues events of a key while its receiver is asleep, wakes it and waits until they are delivered.
async fn sleep_through(store: &Store, receiver: &Receiver, key: (UserId, KeyId), count: u32) {
    receiver.sleep();
    for tag in (0..count).step_by(500) {
        emit(store, &[key], 500.min(count - tag), tag, now()).await;
    }
    let waiting = number(store, "SELECT COUNT(*) FROM webhook_queue").await;
    assert_eq!(waiting, i64::from(count), "it was to sleep");
    let given_up =
        number(store, "SELECT COUNT(*) FROM delivery_attempts WHERE failure_code IS NOT NULL").await;
    assert_eq!(given_up, 0, "it was to wake before an attempt's time was over");
    receiver.answer_within(TAKES);
    delivered(store).await;
}

async fn wakes_up(service: &mut Service, salt: u64) {
    let (mut dice, backlog) = (Dice::new(salt), setting("FORETELL_WEBHOOK_BACKLOG", 1_000));
    let demonstration = service.demonstration().await;
    let user = &demonstration["users"][1];
    let receiver = Receiver::start().await;
    let store = service.store().await;
    point_keys_at(&store, &receiver).await;
    let keys = keys(&store).await;
    let key = *keys.iter().find(|(id, _)| user["userId"] == id.to_string()).unwrap();
    service.start().await;
    let feed = Feed::new(service.base_url(), user["keys"][0]["key"].as_str().unwrap());

    let behind = feed.latest().await;
    sleep_through(&store, &receiver, key, backlog).await;
    let came = receiver.came();
    let ids: Vec<String> = came.iter().map(|each| each.event.clone()).collect();
    check(&sent(&store).await, &[Life { came, under_way: BTreeSet::new() }]);
    assert_eq!(ids.len(), backlog as usize);

    let mut cuts = BTreeSet::new();
    while cuts.len() < CUTS {
        cuts.insert(1 + dice.roll(u64::from(backlog) - 1));
    }
    assert_eq!(feed.read(behind, u64::from(backlog), &cuts).await, ids, "the feed tells something else");
    assert_eq!(feed.latest().await, behind + u64::from(backlog), "the feed has more than was delivered");
    // Kill the service before its database is dropped.
    service.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovered_receiver_gets_the_events_of_the_feed_in_order_on_sqlite() {
    wakes_up(&mut Service::on_sqlite().await, 13).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovered_receiver_gets_the_events_of_the_feed_in_order_on_postgres() {
    let Some(mut service) = Service::on_postgres().await else { return };
    wakes_up(&mut service, 14).await;
}

/// Runs `check` for events 1, 2 and 3 of one key. Each run is a list of received events and of
/// those that were in progress at its end. A leading minus marks an unacknowledged event.
fn checked(lives: &[(&[&str], &[&str])]) -> usize {
    let sent = ["1", "2", "3"].map(|event| Sent {
        key: "key".to_owned(),
        event: event.to_owned(),
        trade: None,
        status: "delivered".to_owned(),
    });
    let came = |event: &&str| Came {
        key: "key".to_owned(),
        event: event.trim_start_matches('-').to_owned(),
        at_ms: 0,
        answered: !event.starts_with('-'),
    };
    let lives: Vec<_> = lives
        .iter()
        .map(|(events, under_way)| Life {
            came: events.iter().map(came).collect(),
            under_way: under_way.iter().map(|event| (*event).to_owned()).collect(),
        })
        .collect();
    check(&sent, &lives)
}

#[test]
fn the_oracle_allows_one_repetition_per_unfinished_delivery_and_kill() {
    assert_eq!(checked(&[(&["1", "2", "3"], &[])]), 0);
    assert_eq!(checked(&[(&["1"], &["1"]), (&["1", "2", "3"], &["3"]), (&["3"], &[])]), 2);
    assert_eq!(checked(&[(&["1", "-2"], &["2"]), (&["2"], &["2"]), (&["2", "3"], &[])]), 2);
    assert_eq!(checked(&[(&["1"], &["1"]), (&["2", "3"], &[])]), 0);
}

#[test]
fn the_oracle_detects_missing_reordered_late_and_repeated_events() {
    let lives: &[&[(&[&str], &[&str])]] = &[
        &[(&["1", "3"], &[])],
        &[(&["1", "2"], &[])],
        &[(&["2", "1", "3"], &[])],
        &[(&["1", "2", "3", "4"], &[])],
        &[(&["1", "2", "-3"], &[])],
        // Repeated within a run, although it was in progress before and after it.
        &[(&["1"], &["1"]), (&["1", "1", "2", "3"], &[])],
        &[(&["1", "1"], &["1"]), (&["2", "3"], &[])],
        // Repeated after a kill at which it was already stored, or at which another event was in
        // progress.
        &[(&["1"], &[]), (&["1", "2", "3"], &[])],
        &[(&["1", "2"], &["2"]), (&["1", "2", "3"], &[])],
        // Repeated one run too late, or after another event.
        &[(&["1"], &["1"]), (&[], &[]), (&["1", "2", "3"], &[])],
        &[(&["1"], &["1"]), (&["2", "1", "3"], &[])],
    ];
    for lives in lives {
        assert!(std::panic::catch_unwind(|| checked(lives)).is_err(), "{lives:?}");
    }
}
