//! Webhooks of a sender that is killed again and again, and to a receiver that sleeps: every event is acknowledged at least
//! once, each key's in their order, and comes again only where a kill met its attempt.
//!
//! Whether it did is asked between two lives, of both sides: an attempt is under way from when the receiver has it until the
//! service has written that it was delivered. Those that a kill finds so may come again, once after each, and no others.
//!
//! `FORETELL_CRASH_KILLS` says how often it is killed (20 times where it is unset), `FORETELL_WEBHOOK_BACKLOG` how many events
//! wait for the receiver that sleeps (1,000), `FORETELL_CRASH_SEED` repeats a run's dice.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::{Duration, Instant};

use domain::event::{self, EventKind, TestData};
use domain::ids::{EventId, KeyId, UserId};
use domain::time::SystemClock;
use domain::{Clock, Timestamp};
use store::events::NewEvent;
use store::{Store, StoreError, Value};

use crate::clients::{Clients, Trader};
use crate::dice::Dice;
use crate::feed::Feed;
use crate::oracle::{self, number};
use crate::receiver::{Came, Receiver};
use crate::service::Service;

/// A run that has fewer events than this for each kill proves little.
const EVENTS_A_KILL: usize = 5;

/// The number that a variable holds.
pub fn setting(name: &str, otherwise: u32) -> u32 {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(otherwise)
}

/// The machine's time.
pub fn now() -> Timestamp {
    SystemClock::default().now()
}

/// Sends every key's events to a path of its own at `receiver`.
async fn point_keys_at(store: &Store, receiver: &Receiver) {
    const SQL: &str = "UPDATE keys SET webhook_url = CAST($1 AS TEXT) || '/' || id";
    let set: Result<u64, StoreError> = store
        .write(receiver.url.clone(), |tx, url| {
            Box::pin(async move { tx.exec(SQL, &[Value::from(url.as_str())]).await })
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

/// An event that was to be sent: its key, its id, the trade it tells of and what became of it.
struct Sent {
    key: String,
    event: String,
    trade: Option<String>,
    status: String,
}

/// The events that were queued, in the order in which they were written.
async fn sent(store: &Store) -> Vec<Sent> {
    const SQL: &str = "SELECT deliveries.key_id, event_id, deliveries.trade_id, status FROM deliveries
        JOIN events ON events.id = event_id WHERE status <> 'none' ORDER BY events.user_id, seq";
    let rows: Result<Vec<Sent>, StoreError> = store
        .read((), |tx, ()| {
            Box::pin(tx.list(SQL, &[], |row| {
                let (key, event) = (row.text(0)?, row.text(1)?);
                Ok(Sent { key, event, trade: row.opt_text(2)?, status: row.text(3)? })
            }))
        })
        .await;
    rows.unwrap()
}

/// What one life of the sender brought.
struct Life {
    /// What came, in the order of arrival.
    came: Vec<Came>,
    /// The events that the receiver had when the sender died, and of which it was not written that they were delivered.
    under_way: BTreeSet<String>,
}

/// Every event was acknowledged, each key's in their order; one came again only once after a death at which it was under way.
/// How many came again.
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
            if answered.is_some() {
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

/// Gathers the sender's lives while it is killed.
struct Lives<'a> {
    receiver: &'a Receiver,
    store: &'a Store,
    lives: Vec<Life>,
    /// What came, and whether it was acknowledged.
    seen: BTreeMap<String, bool>,
    came: usize,
    under_way: usize,
    /// How many of those that were under way had been acknowledged already: they are the ones whose acknowledgement doubles.
    unwritten: usize,
}

impl<'a> Lives<'a> {
    const fn new(receiver: &'a Receiver, store: &'a Store) -> Self {
        let seen = BTreeMap::new();
        Self { receiver, store, lives: Vec::new(), seen, came: 0, under_way: 0, unwritten: 0 }
    }

    /// Of a sender that was killed and not yet started again.
    async fn end_by_kill(&mut self) {
        self.receiver.hear_out().await;
        let came = self.next();
        // What PostgreSQL is about to write for the dead counts as under way, and does not come again.
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

    /// Of a sender that has sent everything.
    fn end_by_rest(&mut self) {
        let came = self.next();
        self.lives.push(Life { came, under_way: BTreeSet::new() });
    }

    fn next(&mut self) -> Vec<Came> {
        let came = self.receiver.came_from(self.came);
        self.came += came.len();
        self.seen.extend(came.iter().map(|each| (each.event.clone(), each.answered.is_some())));
        came
    }
}

/// The keys and the events that were queued and of which it is not written that they were delivered.
async fn undelivered(store: &Store) -> Vec<(String, String)> {
    const SQL: &str = "SELECT key_id, event_id FROM deliveries WHERE status NOT IN ('none', 'delivered')";
    let rows: Result<_, StoreError> =
        store.read((), |tx, ()| Box::pin(tx.list(SQL, &[], |row| Ok((row.text(0)?, row.text(1)?))))).await;
    rows.unwrap()
}

async fn survives_kills(service: &mut Service, salt: u64) {
    let (mut dice, kills) = (Dice::new(salt), setting("FORETELL_CRASH_KILLS", 20));
    let demonstration = service.demonstration().await;
    let receiver = Receiver::start().await;
    // So that kills meet attempts that wait for their answer, beside those whose answer is being written.
    receiver.answer_within(Duration::from_millis(5));
    let store = service.store().await;
    point_keys_at(&store, &receiver).await;
    let clients = Clients::start(Trader::of_demonstration(&demonstration, 4));
    let mut lives = Lives::new(&receiver, &store);
    for _ in 0..kills {
        service.start().await;
        clients.send_to(&[service.base_url()]);
        // Some kills hit the start's recovery, most of them the deliveries, however long it is until they begin.
        if dice.roll(4) > 0 {
            receiver.hear_more().await;
        }
        service.live_for(Duration::from_millis(dice.roll(250))).await;
        service.kill().await;
        lives.end_by_kill().await;
    }
    service.start().await;
    clients.send_to(&[service.base_url()]);
    let told = clients.finish().await;
    oracle::settled(&store).await;
    delivered(&store).await;
    lives.end_by_rest();

    let Lives { lives, under_way, unwritten, .. } = lives;
    let sent = sent(&store).await;
    let repeated = check(&sent, &lives);
    eprintln!(
        "{kills} kills, {} trades acknowledged, {} events; at the kills {under_way} were under way, {unwritten} of them acknowledged; {repeated} came again",
        told.len(),
        sent.len()
    );
    let trades: Vec<&str> = sent.iter().filter_map(|each| each.trade.as_deref()).collect();
    let once: BTreeSet<&str> = trades.iter().copied().collect();
    assert_eq!(once.len(), trades.len(), "a trade has two events of its end");
    for trade in told.values() {
        assert!(once.contains(trade.as_str()), "trade {trade} was acknowledged and its end was not told");
    }
    let kills = kills as usize;
    assert!(sent.len() >= kills * EVENTS_A_KILL, "the load was too thin: {} events", sent.len());
    assert!(under_way >= kills / 4, "the kills met too little: {under_way} attempts");
    assert!(unwritten >= kills / 10, "hardly a kill came behind an acknowledgement: {unwritten}");
    // Before its database goes.
    service.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_lose_no_event_and_keep_their_order_on_sqlite() {
    survives_kills(&mut Service::on_sqlite(), 11).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_lose_no_event_and_keep_their_order_on_postgres() {
    let Some(mut service) = Service::on_postgres().await else { return };
    survives_kills(&mut service, 12).await;
}

/// Writes events of this instant that tell nothing, beside the service, as another process would: for each key so many.
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
    let written: Result<(), StoreError> = store
        .write(events, |tx, events| {
            Box::pin(async move {
                events.iter().for_each(|event| store::events::emit(tx, event.clone()));
                Ok(())
            })
        })
        .await;
    written.unwrap();
}

/// Users and keys of the service.
pub async fn keys(store: &Store) -> Vec<(UserId, KeyId)> {
    const SQL: &str = "SELECT user_id, id FROM keys ORDER BY id";
    let found: Result<_, StoreError> =
        store.read((), |tx, ()| Box::pin(tx.list(SQL, &[], |row| Ok((row.parse(0)?, row.parse(1)?))))).await;
    found.unwrap()
}

/// How long the receiver that has slept takes for each answer.
const TAKES: Duration = Duration::from_millis(5);
/// So many events tell how long the service takes for one by itself.
const PROBE: u32 = 200;
/// How much longer than in the probe the service may take for an event: the machine's other work comes and goes.
const SHARE: u32 = 5;
/// Between these, so that neither a lucky nor a slow probe is the measure: a sender that waits for its next look behind every
/// event takes 100 ms for each, in the probe as well.
const LEAST_SHARE: Duration = Duration::from_millis(10);
const MOST_SHARE: Duration = Duration::from_millis(25);
/// The sender's first look, and the test's for the end.
const LOOKS: Duration = Duration::from_secs(1);
/// How often the reader of the feed is cut off.
const CUTS: usize = 50;

/// Queues events of a key while its receiver sleeps; how long they take once it is awake.
async fn sleep_through(
    store: &Store,
    receiver: &Receiver,
    key: (UserId, KeyId),
    events: Range<u32>,
    takes: Duration,
) -> Duration {
    receiver.sleep();
    let count = events.len();
    for tag in events.clone().step_by(500) {
        emit(store, &[key], 500.min(events.end - tag), tag, now()).await;
    }
    let waiting = number(store, "SELECT COUNT(*) FROM webhook_queue").await;
    assert_eq!(waiting, i64::try_from(count).unwrap(), "it was to sleep");
    let given_up =
        number(store, "SELECT COUNT(*) FROM delivery_attempts WHERE failure_code IS NOT NULL").await;
    assert_eq!(given_up, 0, "it was to wake before an attempt's time was over");
    receiver.answer_within(takes);
    let awake = Instant::now();
    delivered(store).await;
    awake.elapsed()
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

    let own = sleep_through(&store, &receiver, key, 0..PROBE, Duration::ZERO).await / PROBE;
    let share = (own * SHARE).clamp(LEAST_SHARE, MOST_SHARE);
    let (first, behind) = (receiver.came().len(), feed.latest().await);
    let took = sleep_through(&store, &receiver, key, PROBE..PROBE + backlog, TAKES).await;
    let came = receiver.came();
    let ids: Vec<String> = came[first..].iter().map(|each| each.event.clone()).collect();
    // What the receiver's clock made of its pace is its own speed, whatever the service does.
    let alone: Duration = came[first..].iter().filter_map(|each| each.answered).sum();
    check(&sent(&store).await, &[Life { came, under_way: BTreeSet::new() }]);
    assert_eq!(ids.len(), backlog as usize);
    let limit = alone + share * backlog + LOOKS;
    eprintln!(
        "{backlog} events in {took:?}, {alone:?} of it the receiver's own; {own:?} for each in the probe, so {limit:?} at the most"
    );
    assert!(
        alone >= TAKES * backlog && took >= alone,
        "the receiver was to be slow, one by one: {alone:?} of {took:?}"
    );
    assert!(took <= limit, "{took:?} for what may take {limit:?}");

    let mut cuts = BTreeSet::new();
    while cuts.len() < CUTS {
        cuts.insert(1 + dice.roll(u64::from(backlog) - 1));
    }
    assert_eq!(feed.read(behind, u64::from(backlog), &cuts).await, ids, "the feed tells something else");
    assert_eq!(feed.latest().await, behind + u64::from(backlog), "the feed has more than was delivered");
    // Before its database goes.
    service.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_wakes_up_gets_in_time_and_in_order_what_the_feed_tells_on_sqlite() {
    wakes_up(&mut Service::on_sqlite(), 13).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_wakes_up_gets_in_time_and_in_order_what_the_feed_tells_on_postgres() {
    let Some(mut service) = Service::on_postgres().await else { return };
    wakes_up(&mut service, 14).await;
}

/// Checks what came of events 1, 2 and 3 of one key, in lives of which each but the last ended with an event under way. What
/// begins with a stroke was not acknowledged.
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
        answered: (!event.starts_with('-')).then_some(Duration::ZERO),
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
fn the_oracle_takes_one_repetition_of_what_was_under_way_at_each_death() {
    assert_eq!(checked(&[(&["1", "2", "3"], &[])]), 0);
    assert_eq!(checked(&[(&["1"], &["1"]), (&["1", "2", "3"], &["3"]), (&["3"], &[])]), 2);
    assert_eq!(checked(&[(&["1", "-2"], &["2"]), (&["2"], &["2"]), (&["2", "3"], &[])]), 2);
    assert_eq!(checked(&[(&["1"], &["1"]), (&["2", "3"], &[])]), 0);
}

#[test]
fn the_oracle_notices_what_is_missing_turned_round_late_or_repeated_without_need() {
    let lives: &[&[(&[&str], &[&str])]] = &[
        &[(&["1", "3"], &[])],
        &[(&["1", "2"], &[])],
        &[(&["2", "1", "3"], &[])],
        &[(&["1", "2", "3", "4"], &[])],
        &[(&["1", "2", "-3"], &[])],
        // Again within a life, though it was under way at its beginning and end.
        &[(&["1"], &["1"]), (&["1", "1", "2", "3"], &[])],
        &[(&["1", "1"], &["1"]), (&["2", "3"], &[])],
        // Again after a death at which it was written, or at which another one was under way.
        &[(&["1"], &[]), (&["1", "2", "3"], &[])],
        &[(&["1", "2"], &["2"]), (&["1", "2", "3"], &[])],
        // Again a life too late, or after another one.
        &[(&["1"], &["1"]), (&[], &[]), (&["1", "2", "3"], &[])],
        &[(&["1"], &["1"]), (&["2", "1", "3"], &[])],
    ];
    for lives in lives {
        assert!(std::panic::catch_unwind(|| checked(lives)).is_err(), "{lives:?}");
    }
}
