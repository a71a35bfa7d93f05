//! R12: trades through the executor on anvil, compared with anvil's own rate of the same batches.

use std::time::Duration;

use app::ledger::Sync;
use app::trades::Executor;
use app::worker::supervise;
use store::Store;
use store::testing::TestFolder;
use testkit::{Anvil, TestApp};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::Times;
use crate::chain_limits::ChainLimits;
use crate::creations::{MIGRATED_AT, Scene};
use crate::process::Process;
use crate::report::{Goal, Report, Row};
use crate::sample::{Begun, Sample, median};
use crate::service::{Trades, count, settle};

/// The workers' name in leases.
const OWNER: &str = "bench";
/// The longest time that an idle worker waits for a signal, as in the service.
const PAUSE: Duration = Duration::from_millis(250);
/// The share of a round in which trades are created. Anvil executes them much more slowly.
const CREATING: u32 = 6;

pub async fn measure(times: Times, report: &mut Report) {
    let (Some(anvil), Some(other)) = (Anvil::start(), Anvil::start()) else {
        report.note("FORETELL_ANVIL is not set: R12 is not measured.".to_owned());
        return;
    };
    let folder = TestFolder::create();
    let store = Store::open(&folder.url()).await.expect("a new file opens");
    store.migrate(MIGRATED_AT).await.expect("the migrations apply");
    let scene = Scene::of(TestApp::with().on(store.clone()).over(anvil.provider.clone())).await;
    // The workers of the scene's setup would hold them.
    scene.app.workers.release(&scene.app.ctx).await;
    let limits = ChainLimits::on_anvil(&other).await;
    let (mut executed, mut presigned) = (Vec::new(), Vec::new());
    for round in 0..=times.rounds {
        let ours = execute(&scene, &store, times.trades / CREATING).await;
        let limit = limits.presigned_trades(ours.operations).await;
        if round > 0 {
            executed.push(ours);
            presigned.push(limit);
        }
    }
    let rate = |samples: &[Sample]| format!("{:.0}/s", median(samples.iter().map(Sample::rate)));
    report.row(
        Row::new("R12: trades through the executor, anvil".to_owned(), rate(&executed))
            .against(
                format!("signed batches of 100 {}", rate(&presigned)),
                executed.iter().zip(&presigned).map(|(ours, limit)| ours.rate() / limit.rate()),
            )
            .goal(Goal::AtLeast(0.5)),
    );
    store.close().await;
}

/// Creates trades, and measures the time until all of them are completed.
async fn execute(scene: &Scene, store: &Store, creating: Duration) -> Sample {
    let before = count(store, Trades::Completed).await;
    let created = scene.create(12, creating).await.operations;
    let clock = scene.run_clock();
    let begun = Begun::now(Process::own());
    let workers = start_workers(&scene.app);
    settle(store).await;
    let sample = begun.end(created);
    workers.stop().await;
    clock.abort();
    assert_eq!(count(store, Trades::Completed).await - before, created, "every trade is completed");
    sample
}

/// The executor and the sync, which run as in the service.
struct Running {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

fn start_workers(app: &TestApp) -> Running {
    let (stop, stopped) = watch::channel(false);
    let mut tasks = JoinSet::new();
    let signer = app.roles.executors[0].clone();
    let executor = move || Executor::new(0, signer.clone(), OWNER.to_owned());
    tasks.spawn(supervise(executor, app.ctx.clone(), PAUSE, stopped.clone()));
    tasks.spawn(supervise(|| Sync::new(OWNER.to_owned(), 0), app.ctx.clone(), PAUSE, stopped));
    Running { stop, tasks }
}

impl Running {
    async fn stop(self) {
        self.stop.send_replace(true);
        self.tasks.join_all().await;
    }
}
