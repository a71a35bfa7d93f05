//! Webhooks of a sender that is killed again and again, and to a receiver that sleeps: every event is acknowledged at least
//! once, each key's in their order.
//!
//! `FORETELL_CRASH_KILLS` says how often it is killed (20 times where it is unset), `FORETELL_WEBHOOK_BACKLOG` how many events
//! wait for the receiver that sleeps (1,000).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::event::{self, EventKind, TestData};
use domain::ids::{EventId, KeyId, UserId};
use domain::time::SystemClock;
use domain::{Clock, Timestamp};
use store::events::NewEvent;
use store::{Store, StoreError, Value};

use crate::clients::{Clients, Trader};
use crate::dice::Dice;
use crate::oracle::{self, number};
use crate::receiver::{Came, Receiver};
use crate::service::Service;

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

/// Every event was acknowledged, each key's in their order, repeated only where it was the one under way; how many
/// repetitions there were.
fn check(sent: &[Sent], came: &[Came]) -> usize {
    let mut wanted: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for each in sent {
        assert_eq!(each.status, "delivered", "event {}", each.event);
        wanted.entry(&each.key).or_default().push(&each.event);
    }
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for each in came {
        let of_key = found.entry(&each.key).or_default();
        if of_key.last() != Some(&each.event.as_str()) {
            of_key.push(&each.event);
        }
    }
    assert_eq!(found, wanted, "an event is missing, out of order, or came again after another");
    came.len() - sent.len()
}

async fn survives_kills(service: &mut Service, salt: u64) {
    let (mut dice, kills) = (Dice::new(salt), setting("FORETELL_CRASH_KILLS", 20));
    let demonstration = service.demonstration().await;
    let receiver = Receiver::start().await;
    let store = service.store().await;
    point_keys_at(&store, &receiver).await;
    let traders = Trader::of_demonstration(&demonstration, 4);
    let keys = traders.len();
    let clients = Clients::start(traders);
    for _ in 0..kills {
        service.start().await;
        clients.send_to(&[service.base_url()]);
        service.live_for(Duration::from_millis(dice.roll(400))).await;
        service.kill().await;
    }
    service.start().await;
    clients.send_to(&[service.base_url()]);
    let told = clients.finish().await;
    oracle::settled(&store).await;
    delivered(&store).await;

    let (sent, came) = (sent(&store).await, receiver.came());
    let repeated = check(&sent, &came);
    eprintln!(
        "{kills} kills, {} trades acknowledged, {} events, {repeated} repeated",
        told.len(),
        sent.len()
    );
    assert!(repeated <= kills as usize * keys, "more repetitions than attempts can have been under way");
    let trades: Vec<&str> = sent.iter().filter_map(|each| each.trade.as_deref()).collect();
    let once: BTreeSet<&str> = trades.iter().copied().collect();
    assert_eq!(once.len(), trades.len(), "a trade has two events of its end");
    for trade in told.values() {
        assert!(once.contains(trade.as_str()), "trade {trade} was acknowledged and its end was not told");
    }
    assert!(sent.len() as u32 >= kills / 2, "the load was too thin to prove anything: {} events", sent.len());
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

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_wakes_up_gets_what_was_queued_in_order() {
    let backlog = setting("FORETELL_WEBHOOK_BACKLOG", 1_000);
    let mut service = Service::on_sqlite();
    service.demonstration().await;
    let receiver = Receiver::start().await;
    let store = service.store().await;
    point_keys_at(&store, &receiver).await;
    let key = keys(&store).await[0];
    service.start().await;
    receiver.sleep();
    for tag in 0..backlog.div_ceil(100) {
        emit(&store, &[key], 100, tag, now()).await;
    }
    let waiting = number(&store, "SELECT COUNT(*) FROM webhook_queue").await;
    assert_eq!(waiting, i64::from(backlog.div_ceil(100) * 100), "it was to sleep");
    receiver.wake();
    delivered(&store).await;
    check(&sent(&store).await, &receiver.came());
}

/// Checks what came of events 1, 2 and 3 of one key.
fn checked(came: &[&str]) -> usize {
    let sent = ["1", "2", "3"].map(|event| Sent {
        key: "key".to_owned(),
        event: event.to_owned(),
        trade: None,
        status: "delivered".to_owned(),
    });
    let came: Vec<_> = came
        .iter()
        .map(|event| Came { key: "key".to_owned(), event: (*event).to_owned(), at_ms: 0 })
        .collect();
    check(&sent, &came)
}

#[test]
fn the_oracle_takes_repetitions_of_the_event_that_is_under_way() {
    assert_eq!(checked(&["1", "2", "3"]), 0);
    assert_eq!(checked(&["1", "1", "2", "3", "3"]), 2);
}

#[test]
fn the_oracle_notices_what_is_missing_turned_round_or_late() {
    for came in [&["1", "3"][..], &["2", "1", "3"], &["1", "2", "1", "3"], &["1", "2", "3", "4"]] {
        assert!(std::panic::catch_unwind(|| checked(came)).is_err(), "{came:?}");
    }
}
