//! Webhooks: the latency of first attempts, the cost of a delivery, and the cost of idle endpoints.
//!
//! For latencies, the receiver is this process, because it must record arrival times. For costs, it
//! is a separate process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use app::encryption::SealingKeys;
use app::limits::Limits;
use app::webhooks::sender::{Endpoint, SystemResolver, WebhookSender};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use domain::event::{self, EventKind, TestData};
use domain::ids::{EventId, KeyId, UserId};
use domain::key::Tier;
use domain::time::SystemClock;
use domain::webhook::target::TargetPolicy;
use domain::webhook::{Delivery, WebhookSecret};
use domain::{Clock, Timestamp};
use foretell::secrets::Secrets;
use http::{HeaderMap, HeaderName, HeaderValue};
use hyper::StatusCode;
use store::events::NewEvent;
use store::{SqlValue, Store, StoreError};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::Times;
use crate::bare::Bare;
use crate::load::{self, CONNECTIONS};
use crate::process::Process;
use crate::report::{Goal, Report, Row};
use crate::sample::{Begun, Sample, median};
use crate::service::{Service, post};

const EVENTS_A_SECOND: u32 = 200;
const MAX_P50_MS: f64 = 50.0;
const MAX_P95_MS: f64 = 100.0;
/// Number of idle endpoints.
const QUIET: usize = 100_000;
/// Number of endpoints with one event per second.
const BUSY: usize = 100;
const TEST: &str = "/v1/webhooks/test";

#[derive(Clone)]
struct Shared {
    waits_ms: Arc<Mutex<Vec<f64>>>,
    awake: watch::Receiver<bool>,
}

/// A receiver in this process. Records for each request the time since its event.
struct Receiver {
    url: String,
    waits_ms: Arc<Mutex<Vec<f64>>>,
    awake: watch::Sender<bool>,
}

impl Receiver {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}/hook", listener.local_addr().expect("a bound address"));
        let (awake, is_awake) = watch::channel(true);
        let waits_ms: Arc<Mutex<Vec<f64>>> = Arc::default();
        let shared = Shared { waits_ms: Arc::clone(&waits_ms), awake: is_awake };
        let routes = Router::new().fallback(receive).with_state(shared);
        tokio::spawn(async move { axum::serve(listener, routes).await.expect("it serves") });
        Self { url, waits_ms, awake }
    }

    fn take(&self) -> Vec<f64> {
        std::mem::take(&mut *self.waits_ms.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn receive(State(mut shared): State<Shared>, request: Request) -> StatusCode {
    let came = now();
    let body = axum::body::to_bytes(request.into_body(), 1 << 16).await.expect("a body");
    let event: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    let created: Timestamp = event["createdAt"].as_str().and_then(|at| at.parse().ok()).expect("a time");
    let wait_ms = came.since_ms(created) as f64;
    shared.waits_ms.lock().unwrap_or_else(PoisonError::into_inner).push(wait_ms);
    drop(shared.awake.wait_for(|awake| *awake).await);
    StatusCode::OK
}

fn now() -> Timestamp {
    SystemClock::default().now()
}

/// Measures the webhooks of a running service.
pub async fn measure(service: &Service, times: Times, report: &mut Report) {
    let store = service.store().await;
    let receiver = Receiver::start().await;
    set_url(&store, &receiver.url).await;
    first_attempts(service, &receiver, times, report).await;
    deliveries(service, &store, &receiver, times, report).await;
    endpoints(service, &store, &receiver, times, report).await;
    store.close().await;
}

async fn set_url(store: &Store, url: &str) {
    const SQL: &str = "UPDATE keys SET webhook_url = $1";
    let set: Result<u64, StoreError> = store
        .write(url.to_owned(), |tx, url| {
            Box::pin(async move { tx.exec(SQL, &[SqlValue::from(url.as_str())]).await })
        })
        .await;
    assert!(set.expect("the database takes it") > 0, "there are no keys");
}

async fn number(store: &Store, sql: &'static str) -> i64 {
    let found: Result<Option<i64>, StoreError> =
        store.read(sql, |tx, sql| Box::pin(tx.find(sql, &[], |row| row.only::<i64>()))).await;
    found.expect("the database answers").unwrap_or_default()
}

/// Waits until the queue is empty.
async fn delivered(store: &Store) {
    let mut looks = tokio::time::interval(Duration::from_millis(5));
    while number(store, "SELECT COUNT(*) FROM webhook_queue").await > 0 {
        looks.tick().await;
    }
}

/// Measures the time from an event's timestamp, which precedes its commit, to its first request, at
/// 200 events per second.
async fn first_attempts(service: &Service, receiver: &Receiver, times: Times, report: &mut Report) {
    let keys = service.demonstration().keys;
    let address = service.address().to_owned();
    let make = move |connection: usize, _| {
        post(&address, TEST, &keys[connection % keys.len()], "none", String::new())
    };
    let (address, process) = (service.address(), service.process());
    load::paced(address, process, EVENTS_A_SECOND, times.trades * 2, StatusCode::OK, make).await;
    let store = service.store().await;
    delivered(&store).await;
    store.close().await;
    let mut waits_ms = receiver.take();
    waits_ms.sort_by(f64::total_cmp);
    let at = |percent: usize| waits_ms[(waits_ms.len() - 1) * percent / 100];
    let engine = service.engine();
    for (percent, limit_ms) in [(50, MAX_P50_MS), (95, MAX_P95_MS)] {
        let what =
            format!("webhooks: first attempt, {EVENTS_A_SECOND} events a second, p{percent}, {engine}");
        let row = Row::new(what, format!("{:.0} ms of {}", at(percent), waits_ms.len()));
        report
            .row(row.against(format!("{limit_ms:.0} ms"), [at(percent) / limit_ms]).goal(Goal::AtMost(1.0)));
    }
    report.row(Row::new(format!("webhooks: the same, p99, {engine}"), format!("{:.0} ms", at(99))));
}

/// Measures the CPU time of a delivery: over a plain hyper connection, with the sender but without
/// a database, and with the service.
async fn deliveries(
    service: &Service,
    store: &Store,
    receiver: &Receiver,
    times: Times,
    report: &mut Report,
) {
    let bare = Bare::start().await;
    let (mut bares, mut senders, mut durable) = (Vec::new(), Vec::new(), Vec::new());
    // The first round is a warm-up.
    for round in 0..=times.rounds {
        let one = [
            bare_posts(&bare, times).await,
            sent(&bare, times).await,
            drained(service, store, receiver, times).await,
        ];
        if round > 0 {
            let [bare, sender, service] = one;
            bares.push(bare);
            senders.push(sender);
            durable.push(service);
        }
    }
    let cpu_us = |samples: &[Sample]| median(samples.iter().map(Sample::cpu_each));
    let figure = |samples: &[Sample]| {
        format!("{:.1} us CPU; {:.0}/s", cpu_us(samples), median(samples.iter().map(Sample::rate)))
    };
    let limit = format!("bare hyper {:.1} us CPU", cpu_us(&bares));
    let ratios = |samples: &[Sample]| -> Vec<f64> {
        samples.iter().zip(&bares).map(|(ours, bare)| bare.cpu_each() / ours.cpu_each()).collect()
    };
    let engine = service.engine();
    report.row(Row::new(format!("POST over a bare hyper connection ({engine}'s rounds)"), figure(&bares)));
    let row = Row::new("R13: delivery, signed, without a database".to_owned(), figure(&senders));
    report.row(row.against(limit.clone(), ratios(&senders)).goal(Goal::AtLeast(0.4)));
    let row = Row::new(format!("webhooks: delivery with its records, {engine}"), figure(&durable));
    report.row(row.against(limit, ratios(&durable)));
}

/// Returns a typical event body.
fn body(id: EventId) -> Bytes {
    let key = KeyId(uuid::Uuid::from_u128(1));
    Bytes::from(
        event::body(id, EventKind::Test, now(), &TestData { test: true, api_key_id: key }).expect("a body"),
    )
}

async fn bare_posts(bare: &Bare, times: Times) -> Sample {
    let address = bare.address().to_owned();
    let text = String::from_utf8(body(EventId::of_test(uuid::Uuid::from_u128(1))).to_vec()).expect("text");
    let make = move |_, _| post(&address, "/hook", "none", "none", text.clone());
    load::run(bare.address(), Process::own(), CONNECTIONS, times.reads, StatusCode::OK, make).await.sample
}

/// Sends signed events with the sender in this process, with the same number of tasks.
async fn sent(bare: &Bare, times: Times) -> Sample {
    let policy = TargetPolicy::development();
    let sender = Arc::new(WebhookSender::new(policy, Arc::<SystemResolver>::default()).expect("a sender"));
    let url: Arc<str> = format!("http://{}/hook", bare.address()).into();
    let secret = Arc::new(WebhookSecret::from_bytes([7; 32]));
    let begun = Begun::now(Process::own());
    let end = Instant::now() + times.reads;
    let mut tasks = JoinSet::new();
    for number in 0..CONNECTIONS {
        let (sender, url, secret) = (Arc::clone(&sender), Arc::clone(&url), Arc::clone(&secret));
        let id = uuid::Uuid::from_u128(number as u128);
        let (user_id, key_id, limits) = (UserId(id), KeyId(id), Limits::memory());
        tasks.spawn(async move {
            let mut count = 0;
            while Instant::now() < end {
                let id = EventId::of_test(uuid::Uuid::from_u128(1));
                let (id_text, body, secrets) = (id.to_string(), body(id), [&*secret]);
                let (event_id, api_version) = (id_text.as_str(), "2026-04-29");
                let delivery = Delivery { event_id, api_version, body: &body, secrets: &secrets, at: now() };
                let headers: HeaderMap = delivery
                    .headers()
                    .into_iter()
                    .map(|(name, value)| {
                        (HeaderName::from_static(name), HeaderValue::try_from(value).expect("a header"))
                    })
                    .collect();
                let endpoint = Endpoint { user_id, tier: Tier::Mm, key_id, url: &url };
                let attempt = sender.post(limits.budgets(), endpoint, headers, body).await;
                assert!(attempt.answer_head.is_none(), "the receiver says nothing");
                count += 1;
            }
            count
        });
    }
    let count = tasks.join_all().await.into_iter().sum();
    begun.end(count)
}

/// Queues events while their receiver is asleep, then measures the service while it sends them.
async fn drained(service: &Service, store: &Store, receiver: &Receiver, times: Times) -> Sample {
    let keys = service.demonstration().keys;
    receiver.awake.send_replace(false);
    let address = service.address().to_owned();
    let make = move |connection: usize, _| {
        post(&address, TEST, &keys[connection % keys.len()], "none", String::new())
    };
    load::run(service.address(), service.process(), CONNECTIONS, times.trades, StatusCode::OK, make).await;
    let queued = number(store, "SELECT COUNT(*) FROM webhook_queue").await;
    let begun = Begun::now(service.process());
    receiver.awake.send_replace(true);
    delivered(store).await;
    receiver.take();
    begun.end(queued.unsigned_abs())
}

/// Measures the idle service without and with a hundred thousand idle endpoints, and while a
/// hundred further endpoints receive one event per second each.
async fn endpoints(service: &Service, store: &Store, receiver: &Receiver, times: Times, report: &mut Report) {
    let engine = service.engine();
    let secrets = Secrets::load(&service.folder().join("secrets.json")).expect("the secrets");
    let sealing = secrets.sealing_keys().expect("the sealing keys");
    let alone = share(service, times, std::future::ready(())).await;
    for part in 0..20 {
        add_keys(store, &sealing, &receiver.url, part * QUIET / 20, QUIET / 20).await;
    }
    let busy: Vec<_> = add_keys(store, &sealing, &receiver.url, QUIET, BUSY).await;
    let idle = share(service, times, std::future::ready(())).await;
    let sending = share(service, times, trickle(store, &busy, times)).await;
    delivered(store).await;
    let of_a_second = |share: f64| format!("{:.1} ms CPU a second", share * 1_000.0);
    report.row(Row::new(format!("webhooks: nothing to do, {engine}"), of_a_second(alone)));
    report.row(Row::new(format!("webhooks: the same with {QUIET} endpoints, {engine}"), of_a_second(idle)));
    let what = format!("webhooks: {BUSY} of them with an event a second each, {engine}");
    report.row(Row::new(what, of_a_second(sending)));
}

/// Returns the fraction of a core that the service uses for some seconds, while `work` runs.
async fn share(service: &Service, times: Times, work: impl Future<Output = ()>) -> f64 {
    let begun = Begun::now(service.process());
    let mut ticks = tokio::time::interval(times.trades * 2);
    ticks.tick().await;
    tokio::join!(work, ticks.tick());
    let sample = begun.end(1);
    sample.cpu_us / 1e6 / sample.wall.as_secs_f64()
}

/// Writes one event per second for each key, ten at a time, directly to the database.
async fn trickle(store: &Store, keys: &[(UserId, KeyId)], times: Times) {
    let mut beats = tokio::time::interval(Duration::from_millis(100));
    let rounds = (times.trades * 2).as_millis() / 100;
    for (round, some) in keys.chunks(keys.len() / 10).cycle().take(rounds as usize).enumerate() {
        beats.tick().await;
        emit(store, some, round).await;
    }
}

async fn emit(store: &Store, keys: &[(UserId, KeyId)], round: usize) {
    let events: Vec<NewEvent> = keys
        .iter()
        .map(|(user_id, key_id)| {
            let id =
                EventId::of_test(uuid::Uuid::from_u128(key_id.0.as_u128() ^ ((round as u128 + 1) << 96)));
            let (kind, at) = (EventKind::Test, now());
            let body = String::from_utf8(body(id).to_vec()).expect("text");
            NewEvent { id, user_id: *user_id, kind, key_id: Some(*key_id), trade_id: None, body, at }
        })
        .collect();
    let written = store
        .write(events, |tx, events| {
            Box::pin(async move {
                events.iter().for_each(|event| store::events::emit(tx, event.clone()));
                Ok(())
            })
        })
        .await;
    written.expect("the database takes it");
}

/// Creates keys with an endpoint each, numbered from `first`, spread over the users.
async fn add_keys(
    store: &Store,
    sealing: &SealingKeys,
    url: &str,
    first: usize,
    count: usize,
) -> Vec<(UserId, KeyId)> {
    const KEY: &str = "INSERT INTO keys (id, user_id, name, tier, scopes, digest, key_index, ip_allowlist, webhook_url,
        webhook_secret_sealed, created_at_ms)
        SELECT $1, user_id, name, tier, scopes, $1, $2, ip_allowlist, $3, $4, created_at_ms FROM keys WHERE id = $5";
    const ENDPOINT: &str = "INSERT INTO webhook_endpoints (key_id, tail, held_until_ms, epoch, breaker)
        VALUES ($1, 0, 0, 0, '')";
    const LIKE: &str = "SELECT user_id, id FROM keys WHERE key_index < 1000 ORDER BY id";
    let like: Result<Vec<(UserId, KeyId)>, StoreError> = store
        .read((), |tx, ()| Box::pin(tx.list(LIKE, &[], |row| Ok((row.get("user_id")?, row.get("id")?)))))
        .await;
    let like = like.expect("the database answers");
    let secret = WebhookSecret::from_bytes([7; 32]);
    let mut made = BTreeMap::new();
    let (mut keys, mut ends): (Vec<Vec<SqlValue<'static>>>, Vec<Vec<SqlValue<'static>>>) = Default::default();
    for number in first..first + count {
        let id = KeyId(uuid::Uuid::from_u128((7 << 120) | number as u128));
        let (user, pattern) = like[number % like.len()];
        let mut nonce = [0; 24];
        nonce[..16].copy_from_slice(id.0.as_bytes());
        let sealed = sealing.seal(secret.expose().as_bytes(), &id.to_string(), nonce).expect("it seals");
        keys.push(vec![
            SqlValue::from(id.to_string()),
            SqlValue::from(1_000 + number as i64),
            SqlValue::from(url.to_owned()),
            SqlValue::from(sealed),
            SqlValue::from(pattern.to_string()),
        ]);
        ends.push(vec![SqlValue::from(id.to_string())]);
        made.insert(id, user);
    }
    let written: Result<(), StoreError> = store
        .write((keys, ends), |tx, (keys, ends)| {
            Box::pin(async move {
                tx.exec_each(KEY, keys).await?;
                tx.exec_each(ENDPOINT, ends).await.map(drop)
            })
        })
        .await;
    written.expect("the database takes it");
    made.into_iter().map(|(key, user)| (user, key)).collect()
}
