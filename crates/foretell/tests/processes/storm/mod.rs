//! Everything outside the service fails at once, under load: nodes return wrong data, lag and hang;
//! processes are killed and frozen; PostgreSQL and Redis crash; the chain reorganizes up to the
//! configured finality; and a stranger makes the contracts emit every possible event. Afterwards
//! the clients' log, the database and the chain must agree.
//!
//! `FORETELL_STORM_SECONDS` sets the length of each storm (default 30). From 600 seconds on, the
//! run also checks that everything ends soon after the faults, and compares the latency for an
//! uninvolved user with that of a quiet phase. Such a run needs the machine for itself.

mod drivers;
mod finals;
mod member;
mod neighbor;
mod stage;
mod stranger;

use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use self::stage::{Engine, Stage};
use crate::clients::Clients;
use crate::oracle;

/// Runs one storm at a time, because each of them loads the whole machine.
static ONE_STORM: Mutex<()> = Mutex::const_new(());

/// Maximum time after the faults until everything has ended, in a long storm.
const HEALED_WITHIN: Duration = Duration::from_secs(60);

/// The time after the faults within which every request has its answer, on a machine with other
/// tests.
const ANSWERED_WITHIN: Duration = Duration::from_secs(300);

/// The quiet phase lasts this fraction of the storm.
const QUIET_SHARE: u32 = 6;

/// Pause of a client after each trade. The backlog after the faults must be caused by them, not by
/// clients that outrun the chain.
const PACE: Duration = Duration::from_millis(150);

/// Storm length from which on times are compared.
const LONG: Duration = Duration::from_secs(600);

fn length() -> Duration {
    let seconds = std::env::var("FORETELL_STORM_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(30))
}

/// Waits for this time.
async fn pass(time: Duration) {
    // The lints disallow `tokio::time::sleep`, so wait for a future that never completes.
    drop(tokio::time::timeout(time, std::future::pending::<()>()).await);
}

async fn survive(stage: Stage) {
    let length = length();
    let clients = Clients::start_paced(stage.traders[1..].to_vec(), PACE);
    let targets = stage.targets();
    clients.send_to(&targets.iter().map(String::as_str).collect::<Vec<_>>());
    let neighbor = neighbor::start(&stage);
    let finals = finals::start(&stage);
    pass(length / QUIET_SHARE).await;
    let quiet = neighbor.take();
    let faults = drivers::rage(&stage, length).await;
    let stormy = neighbor.take();
    drivers::heal(&stage).await;

    let healed = Instant::now();
    let acknowledged = tokio::time::timeout(ANSWERED_WITHIN, clients.finish()).await;
    let acknowledged = acknowledged.expect("every request gets its answer after the faults");
    let parts = stage.parts().await;
    oracle::settled(&parts.ctx.store).await;
    let took = healed.elapsed();
    neighbor.stop().await;
    let finals = finals.stop().await;

    oracle::check(&parts.ctx.store, &parts.ctx.chain, &acknowledged).await;
    oracle::one_event_each(&parts.ctx.store).await;
    finals.check(&parts.ctx.store).await;
    assert_eq!(
        app::ledger::reconcile_all(&parts.ctx).await.unwrap(),
        [],
        "the database differs from the chain"
    );
    let quarantined = "SELECT COUNT(*) FROM market_quarantine";
    assert_eq!(oracle::number(&parts.ctx.store, quarantined).await, 0, "a market is in quarantine");
    let failed = "SELECT COUNT(*) FROM trades WHERE status = 'failed'";
    eprintln!("{faults}");
    eprintln!(
        "{} trades acknowledged, {} of them failed, {} final results watched, all ended {took:?} after the faults",
        acknowledged.len(),
        oracle::number(&parts.ctx.store, failed).await,
        finals.len(),
    );
    eprintln!("an uninvolved user's reads: quiet {quiet}; in the storm {stormy}");
    assert!(
        acknowledged.len() > 50,
        "the load was too thin to prove anything: {} trades",
        acknowledged.len()
    );
    if length >= LONG {
        assert!(took <= HEALED_WITHIN, "trades were still open {took:?} after the faults");
        assert!(stormy.p99 <= 2 * quiet.p99, "an uninvolved user is slowed: {quiet}, then {stormy}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_loses_repeats_and_reverts_nothing_on_sqlite() {
    let _alone = ONE_STORM.lock().await;
    let Some(stage) = Stage::set(Engine::Sqlite).await else { return };
    survive(stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_loses_repeats_and_reverts_nothing_in_two_processes_on_postgres() {
    let _alone = ONE_STORM.lock().await;
    let Some(stage) = Stage::set(Engine::Postgres).await else { return };
    survive(stage).await;
}
