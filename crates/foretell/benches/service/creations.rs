//! Creations of trades: the use case in this process, with all its checks and without HTTP, and
//! PostgreSQL's own limits beside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use domain::key::{LimitOverrides, Tier};
use domain::{Timestamp, Usdc};
use hyper::StatusCode;
use store::sized::update_statistics;
use store::testing::{TestDatabase, TestFolder};
use store::{Store, StoreError, params};
use testkit::{Setup, TestApp, TestKey, TestMarket};
use tokio::task::{AbortHandle, JoinSet};

use crate::Times;
use crate::cluster::Cluster;
use crate::load;
use crate::pgbench::TpcB;
use crate::process::Process;
use crate::report::{Goal, Report, Row};
use crate::sample::{Begun, Sample, median};
use crate::service::{Demonstration, Service, settle};
use crate::trades::buys;

/// The keys over which creations are spread, each of a user of its own.
const KEYS: usize = 12;
/// One way of the delayed connection. A round trip takes twice as long.
const ONE_WAY: Duration = Duration::from_micros(250);
pub const MIGRATED_AT: Timestamp = Timestamp::from_s(1_790_000_000);

/// Number of the next idempotency key.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A service in this process with a market and its traders.
pub struct Scene {
    pub app: TestApp,
    keys: Vec<TestKey>,
    market: TestMarket,
}

impl Scene {
    pub async fn of(setup: Setup) -> Self {
        let app = setup.start().await;
        let mut keys = Vec::with_capacity(KEYS);
        for n in 0..KEYS {
            let user = app.user(&format!("user {n}")).funded("1000000").await;
            let daily = Some(Usdc::from_whole(10_000_000));
            let overrides = LimitOverrides { daily, ..LimitOverrides::default() };
            keys.push(app.key_with(&user, Tier::Mm, overrides).await);
        }
        let market = app.market(&["Yes", "No"]).await;
        Self { app, keys, market }
    }

    /// Creates trades in `tasks` tasks, one after the other in each.
    pub async fn create(&self, tasks: usize, time: Duration) -> Sample {
        let running = self.run_clock();
        let begun = Begun::now(Process::own());
        let end = Instant::now() + time;
        let mut creators = JoinSet::new();
        for task in 0..tasks {
            let (key, market) = (self.keys[task % KEYS].clone(), self.market);
            creators.spawn(async move {
                let mut created = 0;
                while Instant::now() < end {
                    let number = NEXT.fetch_add(1, Ordering::Relaxed);
                    // Different amounts, because the executor asks for equal quotes only once.
                    let amount = format!("0.05{:04}", number % 10_000);
                    let name = number.to_string();
                    key.buy(&market, 0, &amount).idempotent(&name).send().await.expect("a trade");
                    created += 1;
                }
                created
            });
        }
        let created = creators.join_all().await.into_iter().sum();
        let sample = begun.end(created);
        running.abort();
        sample
    }

    /// Lets the test's clock run, until the task is aborted. Ids begin with their time. If it stood still, new ids of
    /// events would be spread over the whole index instead of being at its end.
    pub fn run_clock(&self) -> AbortHandle {
        let clock = Arc::clone(&self.app.clock);
        let running = tokio::spawn(async move {
            let mut last = Instant::now();
            let mut timer = tokio::time::interval(Duration::from_millis(1));
            loop {
                timer.tick().await;
                let passed = last.elapsed().as_millis();
                last += Duration::from_millis(passed as u64);
                clock.advance(passed as i64);
            }
        });
        running.abort_handle()
    }

    /// Creates trades, then executes them all outside of the time: long queues are not what is measured.
    async fn create_and_settle(&self, tasks: usize, time: Duration) -> Sample {
        let sample = self.create(tasks, time).await;
        let running = self.run_clock();
        self.app.run_workers().await;
        running.abort();
        sample
    }
}

/// Inserts single rows in 32 tasks: the limit of the driver.
async fn inserts(store: &Store, time: Duration) -> Sample {
    let begun = Begun::now(Process::own());
    let end = Instant::now() + time;
    let mut writers = JoinSet::new();
    for _ in 0..32 {
        let store = store.clone();
        writers.spawn(async move {
            let mut inserted = 0;
            while Instant::now() < end {
                let name = format!("bench.{}", NEXT.fetch_add(1, Ordering::Relaxed));
                let written: Result<u64, StoreError> = store
                    .write(name, |tx, name| {
                        Box::pin(async move {
                            const SQL: &str = "INSERT INTO settings (name, value) VALUES ($1, '1')";
                            tx.exec(SQL, &params![name.as_str()]).await
                        })
                    })
                    .await;
                written.expect("the row is written");
                inserted += 1;
            }
            inserted
        });
    }
    begun.end(writers.join_all().await.into_iter().sum())
}

/// R5 and R6, on SQLite.
pub async fn on_sqlite(times: Times, report: &mut Report) {
    let folder = TestFolder::create();
    let store = Store::open(&folder.url()).await.expect("a new file opens");
    store.migrate(MIGRATED_AT).await.expect("the migrations apply");
    let scene = Scene::of(TestApp::with().on(store.clone())).await;
    let (mut many, mut one, mut single) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=times.rounds {
        let samples = (
            scene.create_and_settle(32, times.trades).await,
            scene.create_and_settle(1, times.trades).await,
            inserts(&store, times.trades).await,
        );
        if round > 0 {
            many.push(samples.0);
            one.push(samples.1);
            single.push(samples.2);
        }
    }
    let rate = |samples: &[Sample]| median(samples.iter().map(Sample::rate));
    report.row(
        Row::new("R5: creations in process, 32 tasks, SQLite".to_owned(), figure(&many))
            .against(
                format!("single inserts, 32 tasks {:.0}/s", rate(&single)),
                many.iter().zip(&single).map(|(many, single)| many.rate() / single.rate()),
            )
            .goal(Goal::AtLeast(0.15)),
    );
    report.row(
        Row::new("R6: creations in process, 32 tasks, SQLite".to_owned(), figure(&many))
            .against(
                format!("1 task {:.0}/s", rate(&one)),
                many.iter().zip(&one).map(|(many, one)| many.rate() / one.rate()),
            )
            .goal(Goal::AtLeast(4.0)),
    );
    store.close().await;
}

fn figure(samples: &[Sample]) -> String {
    let cpu_us = median(samples.iter().map(Sample::cpu_each));
    format!("{cpu_us:.0} us CPU; {:.0}/s", median(samples.iter().map(Sample::rate)))
}

/// R7, R7b and R7c. The rounds of the creations, of the service and of pgbench alternate.
pub async fn on_postgres(service: &Service, times: Times, report: &mut Report) {
    let Some(database) = TestDatabase::create().await else { return };
    let Some(tpc_b) = TpcB::prepare(report).await else { return };
    let store = Store::open(&database.url).await.expect("the database opens");
    store.migrate(MIGRATED_AT).await.expect("the migrations apply");
    let Some(cluster) = Cluster::of(&store).await else {
        report.note("The PostgreSQL cluster runs on another machine: R7 to R7c are not measured.".to_owned());
        return;
    };
    let scene = Scene::of(TestApp::with().on(store.clone())).await;
    let demonstration = service.demonstration();
    let of_service = service.store().await;
    let (mut created, mut accepted, mut limits) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=times.rounds {
        let alone = measured(cluster, scene.create_and_settle(64, times.trades)).await;
        let served = measured(cluster, served(service, &demonstration, &of_service, times)).await;
        let limit = measured(cluster, tpc_b.run(times.trades)).await;
        let limit = (limit.0.expect("pgbench runs"), limit.1);
        if round == 0 {
            // The plans of the warm-up were made for empty tables.
            update_statistics(&store).await.expect("the statistics are updated");
            update_statistics(&of_service).await.expect("the statistics are updated");
        } else {
            created.push(alone);
            accepted.push(served);
            limits.push(limit);
        }
    }
    let rate = median(limits.iter().map(|(rate, _)| *rate));
    let limit_cpu_us = |(rate, cpu_us): &(f64, f64)| cpu_us / (rate * times.trades.as_secs_f64());
    let cpu_us = |(sample, cpu_us): &(Sample, f64)| cpu_us / sample.operations as f64;
    let tpc_b = format!("pgbench TPC-B, 32 clients {rate:.0}/s");
    let ratios = |samples: &[(Sample, f64)]| -> Vec<f64> {
        samples.iter().zip(&limits).map(|((sample, _), (rate, _))| sample.rate() / rate).collect()
    };
    let shown = |samples: &[(Sample, f64)]| {
        let rate = median(samples.iter().map(|(sample, _)| sample.rate()));
        format!("{rate:.0}/s, {:.0} us of PostgreSQL's CPU", median(samples.iter().map(cpu_us)))
    };
    report.row(
        Row::new("R7: creations in process, 64 tasks, PostgreSQL".to_owned(), shown(&created))
            .against(tpc_b.clone(), ratios(&created))
            .goal(Goal::AtLeast(1.5)),
    );
    report.row(
        Row::new("R7b: accepted over HTTP, 64 connections, PostgreSQL".to_owned(), shown(&accepted))
            .against(tpc_b, ratios(&accepted))
            .goal(Goal::AtLeast(0.35)),
    );
    report.row(
        Row::new(
            "R7c: PostgreSQL's CPU of a trade, end to end".to_owned(),
            format!("{:.0} us", median(accepted.iter().map(cpu_us))),
        )
        .against(
            format!("of a TPC-B transaction {:.0} us", median(limits.iter().map(limit_cpu_us))),
            accepted.iter().zip(&limits).map(|(ours, limit)| cpu_us(ours) / limit_cpu_us(limit)),
        )
        .goal(Goal::AtMost(1.6)),
    );
    of_service.close().await;
    store.close().await;
}

/// Runs `work` and returns PostgreSQL's CPU time meanwhile, in microseconds.
async fn measured<T>(cluster: Cluster, work: impl Future<Output = T>) -> (T, f64) {
    let before = cluster.cpu_us();
    let done = work.await;
    (done, cluster.cpu_us() - before)
}

/// Accepts trades over HTTP and waits until all have ended.
async fn served(service: &Service, demonstration: &Demonstration, store: &Store, times: Times) -> Sample {
    let make = buys(service, demonstration);
    let (address, process) = (service.address(), service.process());
    let load = load::run(address, process, 64, times.trades, StatusCode::CREATED, make).await;
    settle(store).await;
    load.sample
}

/// R7d: a service whose database is half a millisecond away.
pub async fn far_away(times: Times, report: &mut Report) {
    let Some(mut service) = Service::on_distant_postgres(ONE_WAY).await else { return };
    service.start_lifted().await;
    let demonstration = service.demonstration();
    let one_key = Demonstration { keys: demonstration.keys[..1].to_vec(), ..demonstration.clone() };
    let store = service.store().await;
    let (mut one, mut twelve) = (Vec::new(), Vec::new());
    for round in 0..=times.rounds {
        let samples = (
            served(&service, &one_key, &store, times).await,
            served(&service, &demonstration, &store, times).await,
        );
        if round == 0 {
            update_statistics(&store).await.expect("the statistics are updated");
        } else {
            one.push(samples.0);
            twelve.push(samples.1);
        }
    }
    let rate = |samples: &[Sample]| format!("{:.0}/s", median(samples.iter().map(Sample::rate)));
    report.row(
        Row::new("R7d: accepted with one key, 64 connections, PostgreSQL 0.5 ms away".to_owned(), rate(&one))
            .against(
                format!("{} keys {}", demonstration.keys.len(), rate(&twelve)),
                one.iter().zip(&twelve).map(|(one, twelve)| one.rate() / twelve.rate()),
            )
            .goal(Goal::AtLeast(0.7)),
    );
    store.close().await;
    service.stop().await;
}
