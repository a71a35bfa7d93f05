//! A hundred keys with slow receivers that fail three times in ten, and two senders on one
//! database: no event is sent out of order or twice, and no two events of a key overlap.
//!
//! The retry schedule takes hours, so the senders run in this process with a clock that is four
//! hundred times as fast. `FORETELL_WEBHOOK_DELIVERIES` sets the number of events (default 800).
//! `FORETELL_CRASH_SEED` repeats the random choices of a run.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use app::Ctx;
use app::keys::IssueKey;
use app::webhooks::Dispatcher;
use app::webhooks::sender::{Resolver, WebhookSender};
use app::worker;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use domain::ids::{KeyId, UserId};
use domain::key::Tier;
use domain::{Clock, Timestamp};
use futures::future::BoxFuture;
use store::Store;
use store::testing::{TestDatabase, TestFolder};
use testkit::{TestApp, key_of};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::dice::Dice;
use crate::oracle::number;
use crate::webhooks::{emit, now, setting};

const KEYS: usize = 100;
/// Maximum number of keys per user.
const KEYS_OF_A_USER: usize = 5;
/// Number of events that a key gets at a time.
const BURST: u32 = 4;
/// Maximum backlog, so that no event expires on the fast clock.
const BACKLOG: i64 = 600;
/// Maximum number of rejections of an event, so that none is given up.
const MOST_REFUSALS: u32 = 5;
const SPEED: u32 = 400;
/// Polling interval of a sender, in real time.
const PAUSE: Duration = Duration::from_millis(10);

struct FastClock {
    start: Timestamp,
    began: Instant,
}

impl Clock for FastClock {
    fn now(&self) -> Timestamp {
        let passed_ms = (self.began.elapsed() * SPEED).as_millis();
        self.start.plus_ms(i64::try_from(passed_ms).unwrap())
    }
}

/// Resolves the receiver's name to this machine. The number of lookups shows whether a sender took
/// part.
#[derive(Default)]
struct Names(AtomicUsize);

impl Resolver for Names {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])))
    }
}

/// The state of one key.
#[derive(Default)]
struct Line {
    /// The acknowledged events, in order.
    taken: Vec<String>,
    /// Number of rejections of the event at the head.
    refused: u32,
    /// True while a request is in progress.
    open: bool,
}

struct Judge {
    lines: BTreeMap<String, Line>,
    dice: Dice,
    overlaps: usize,
    attempts: usize,
}

type Shared = Arc<Mutex<Judge>>;

fn lock(judge: &Shared) -> std::sync::MutexGuard<'_, Judge> {
    judge.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn receive(State(judge): State<Shared>, request: Request) -> StatusCode {
    let key = request.uri().path().trim_start_matches('/').to_owned();
    let event = request.headers()["x-service-event-id"].to_str().unwrap().to_owned();
    let delay = {
        let mut judge = lock(&judge);
        judge.attempts += 1;
        let line = judge.lines.entry(key.clone()).or_default();
        let overlaps = std::mem::replace(&mut line.open, true);
        judge.overlaps += usize::from(overlaps);
        Duration::from_millis(judge.dice.roll(20))
    };
    // Simulates work: the first tick of an interval is immediate, the second one comes after its
    // period.
    let mut work = tokio::time::interval(delay.max(Duration::from_millis(1)));
    work.tick().await;
    work.tick().await;
    let mut judge = lock(&judge);
    let fails = judge.dice.roll(10) < 3;
    let line = judge.lines.entry(key).or_default();
    line.open = false;
    if fails && line.refused < MOST_REFUSALS {
        line.refused += 1;
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    line.refused = 0;
    line.taken.push(event);
    StatusCode::OK
}

/// Runs a sender on `store` until `stop`. Returns its number of name lookups.
fn send(
    ctx: &Ctx,
    store: &Store,
    clock: &Arc<FastClock>,
    stop: &watch::Receiver<bool>,
) -> (Arc<Names>, JoinHandle<()>) {
    let names = Arc::<Names>::default();
    let mut config = ctx.config.as_ref().clone();
    // Scale the hold, so that it lasts as long as usual in real time.
    config.webhooks.hold_ms *= i64::from(SPEED);
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let ctx = Ctx::new(store.for_workers(), ctx.chain.clone(), clock, ctx.ids.entropy(), config);
    let sender =
        WebhookSender::new(ctx.config.webhooks.targets.clone(), Arc::clone(&names) as Arc<dyn Resolver>);
    let sender = Arc::new(sender.unwrap());
    let dispatcher = move || Dispatcher::new(Arc::clone(&sender), 1_024);
    (names, tokio::spawn(worker::supervise(dispatcher, ctx, PAUSE, stop.clone())))
}

async fn keeps_order(stores: &[Store], salt: u64) {
    let events = setting("FORETELL_WEBHOOK_DELIVERIES", 800);
    let judge: Shared = Arc::new(Mutex::new(Judge {
        lines: BTreeMap::new(),
        dice: Dice::new(salt),
        overlaps: 0,
        attempts: 0,
    }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://hooks.example:{}", listener.local_addr().unwrap().port());
    let routes = Router::new().fallback(receive).with_state(Arc::clone(&judge));
    let server = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });

    let app = TestApp::with().on(stores[0].clone()).start().await;
    let mut keys: Vec<(UserId, KeyId)> = Vec::new();
    for user in 0..KEYS / KEYS_OF_A_USER {
        let user = app.user(&format!("user-{user}")).await;
        for number in 0..KEYS_OF_A_USER {
            let webhook_url = Some(format!("{url}/{}-{number}", user.id));
            let key = app.issue(IssueKey { webhook_url, ..key_of(&user, Tier::Mm) }).await.unwrap();
            keys.push((user.id, key.caller.key.id));
        }
    }
    let (stop, stopped) = watch::channel(false);
    let clock = Arc::new(FastClock { start: now(), began: Instant::now() });
    let senders: Vec<_> = stores.iter().map(|store| send(&app.ctx, store, &clock, &stopped)).collect();

    let waiting = "SELECT COUNT(*) FROM webhook_queue";
    let (mut written, mut tag, mut polls) = (0, 0, tokio::time::interval(Duration::from_millis(20)));
    while written < events || number(&stores[0], waiting).await > 0 {
        if written < events && number(&stores[0], waiting).await < BACKLOG {
            let some: Vec<_> = keys.iter().copied().skip(tag as usize % 4).step_by(4).collect();
            emit(&stores[0], &some, BURST, tag, clock.now()).await;
            (written, tag) = (written + some.len() as u32 * BURST, tag + 1);
        } else {
            polls.tick().await;
        }
        assert!(clock.began.elapsed() < Duration::from_secs(1_800), "the senders do not get ahead");
    }
    stop.send_replace(true);
    for (names, sender) in senders {
        sender.await.unwrap();
        assert!(names.0.load(Ordering::Relaxed) > 0, "one of the senders had nothing to do");
    }
    let ids = "SELECT COUNT(*) FROM deliveries WHERE status = 'delivered'";
    assert_eq!(number(&stores[0], ids).await, i64::from(written));
    let wanted = sent_by_path(&stores[0]).await;
    let judge = lock(&judge);
    let found: BTreeMap<String, Vec<String>> =
        judge.lines.iter().map(|(key, line)| (key.clone(), line.taken.clone())).collect();
    let (overlaps, attempts) = (judge.overlaps, judge.attempts);
    eprintln!(
        "{written} events, {attempts} attempts, {overlaps} overlaps, {} s",
        clock.began.elapsed().as_secs()
    );
    assert_eq!(overlaps, 0, "two attempts of one key at once");
    assert_eq!(found, wanted, "an event came before its time, twice, or not at all");
    assert!(attempts as u32 > written + written / 5, "the receivers hardly failed");
    server.abort();
}

/// Returns the events of each key's path, in the order of their writing.
async fn sent_by_path(store: &Store) -> BTreeMap<String, Vec<String>> {
    const SQL: &str = "SELECT webhook_url, events.id FROM events JOIN keys ON keys.id = key_id ORDER BY events.user_id, seq";
    let rows: Result<Vec<(String, String)>, store::StoreError> = store
        .read((), |tx, ()| Box::pin(tx.list(SQL, &[], |row| Ok((row.get("webhook_url")?, row.get("id")?)))))
        .await;
    let mut by_path: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (url, id) in rows.unwrap() {
        by_path.entry(url.rsplit('/').next().unwrap().to_owned()).or_default().push(id);
    }
    by_path
}

#[tokio::test(flavor = "multi_thread")]
async fn one_sender_keeps_each_keys_order_on_sqlite() {
    let folder = TestFolder::create();
    let store = Store::open(&folder.url()).await.unwrap();
    store.migrate(Timestamp::from_s(1_700_000_000)).await.unwrap();
    keeps_order(&[store], 21).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_senders_keep_each_keys_order_on_postgres() {
    let Some(database) = TestDatabase::create().await else { return };
    let stores = [Store::open(&database.url).await.unwrap(), Store::open(&database.url).await.unwrap()];
    stores[0].migrate(Timestamp::from_s(1_700_000_000)).await.unwrap();
    keeps_order(&stores, 22).await;
}
