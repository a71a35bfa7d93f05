//! The state of the service at a glance.

use std::time::Duration;

use app::health::{Check, Degradation, readiness};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::Timestamp;
use http_kit::{Problem, Shared};
use presentation::amounts;
use store::kill_switches::KillSwitch;
use store::lanes::Lane;
use store::operations::{
    LaneQueue, count_acts, count_markets, count_users, list_lanes, list_waiting_webhooks,
};
use store::sync::SyncBlock;
use store::{StoreError, Tx};

use super::{Admin, Area};
use crate::site::shell::{Reader, Section, Shell, answer, render};

/// The maximum number of keys whose webhooks are counted.
const MOST_RECEIVERS: u32 = 200;
/// The time that the chain has to answer. The page is shown without it.
const CHAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// Digits of a balance after the point: a millionth of the native currency.
const WEI_PER_MILLIONTH: u64 = 1_000_000_000_000;

/// A part of the service.
#[derive(Debug)]
struct PartLine {
    name: &'static str,
    check: Check,
}

/// A lane: an executor and its queue.
#[derive(Debug)]
struct LaneLine {
    lane: u16,
    executor: String,
    open: u64,
    oldest: Option<String>,
    /// In the native currency. `None` if the chain does not answer.
    gas: Option<String>,
}

/// A worker of this process that fails or has panicked.
#[derive(Debug)]
struct WorkerLine {
    name: String,
    problem: String,
}

/// The state of the sync.
#[derive(Debug)]
struct SyncLine {
    /// `None` if the chain does not answer.
    head: Option<u64>,
    read: Option<u64>,
    read_at: Option<String>,
    settled: Option<u64>,
    lag: Option<u64>,
}

#[derive(Debug, Template)]
#[template(path = "site/admin/overview.html")]
struct OverviewPage {
    shell: Shell,
    area: Area,
    is_ready: bool,
    problems: Vec<Degradation>,
    parts: Vec<PartLine>,
    sync: SyncLine,
    lanes: Vec<LaneLine>,
    acts: u64,
    oldest_act: Option<String>,
    receivers: usize,
    failing: usize,
    oldest_webhook: Option<String>,
    quarantined: u64,
    switches: Vec<KillSwitch>,
    streams: u64,
    users: String,
    admins: u64,
    markets: Vec<(String, u64)>,
    workers: Vec<WorkerLine>,
    version: &'static str,
    started: String,
}

struct Rows {
    last: Option<SyncBlock>,
    settled: Option<u64>,
    lanes: Vec<LaneQueue>,
    acts: (u64, Option<Timestamp>),
    receivers: Vec<store::operations::WaitingWebhooks>,
    quarantined: u64,
    switches: Vec<KillSwitch>,
    users: (u64, u64),
    markets: Vec<(String, u64)>,
}

impl Rows {
    async fn read(tx: &mut Tx) -> Result<Self, StoreError> {
        Ok(Self {
            last: store::sync::find_last(tx, None).await?,
            settled: store::sync::find_settled(tx).await?,
            lanes: list_lanes(tx).await?,
            acts: count_acts(tx).await?,
            receivers: list_waiting_webhooks(tx, MOST_RECEIVERS).await?,
            quarantined: store::quarantine::count(tx).await?,
            switches: store::kill_switches::list(tx).await?,
            users: count_users(tx).await?,
            markets: count_markets(tx).await?,
        })
    }
}

/// `GET /admin`.
pub async fn page(State(app): State<Shared>, _: Admin, reader: Reader) -> Result<Response, Problem> {
    let ctx = &app.ctx;
    let rows = ctx.store.read((), |tx, ()| Box::pin(Rows::read(tx))).await?;
    let (ready, head) = tokio::join!(readiness(ctx), tokio::time::timeout(CHAIN_TIMEOUT, ctx.chain.head()));
    let head = head.ok().and_then(Result::ok).map(|block| block.number);
    let read = rows.last.as_ref().map(|last| last.number);
    let now = ctx.now();
    let page = OverviewPage {
        shell: Shell::new(&reader, Section::None, "Admin"),
        area: Area::Overview,
        is_ready: ready.is_ready(),
        parts: vec![
            PartLine { name: "Database", check: ready.database },
            PartLine { name: "Chain", check: ready.chain },
            PartLine { name: "Rate limits", check: ready.rate_limiter },
            PartLine { name: "Webhooks", check: ready.webhooks },
        ],
        problems: ready.degraded,
        sync: SyncLine {
            head,
            read,
            read_at: rows.last.as_ref().map(|last| amounts::minute(last.at)),
            settled: rows.settled,
            lag: head.zip(read).map(|(head, read)| head.saturating_sub(read)),
        },
        lanes: lanes(&app, &rows.lanes, head.is_some(), now).await,
        acts: rows.acts.0,
        oldest_act: rows.acts.1.map(|at| age(at, now)),
        receivers: rows.receivers.len(),
        failing: rows.receivers.iter().filter(|waiting| waiting.attempts > 0).count(),
        oldest_webhook: rows.receivers.first().and_then(|waiting| waiting.oldest).map(|at| age(at, now)),
        quarantined: rows.quarantined,
        switches: rows.switches.into_iter().filter(|switch| switch.thrown_at.is_some()).collect(),
        streams: ctx.budgets().open_streams(),
        users: amounts::grouped(rows.users.0),
        admins: rows.users.1,
        markets: rows.markets,
        workers: workers(&app),
        version: env!("CARGO_PKG_VERSION"),
        started: amounts::minute(app.started_at),
    };
    Ok(answer(render(&page)?))
}

/// Returns all lanes with their queues and the balances of their executors.
async fn lanes(app: &Shared, queues: &[LaneQueue], has_chain: bool, now: Timestamp) -> Vec<LaneLine> {
    let mut lines = Vec::new();
    for Lane { lane, executor, .. } in app.ctx.process.lanes.in_use() {
        let gas = async {
            let balance = app.ctx.chain.native_balance(executor).await.ok()?;
            let millionths = balance / alloy_primitives::U256::from(WEI_PER_MILLIONTH);
            Some(presentation::numbers::decimal(&millionths, 6))
        };
        let gas = if has_chain { gas.await } else { None };
        let queue = queues.iter().find(|queue| queue.lane == lane);
        lines.push(LaneLine {
            lane,
            executor: executor.to_string(),
            open: queue.map_or(0, |queue| queue.open),
            oldest: queue.and_then(|queue| queue.oldest).map(|at| age(at, now)),
            gas,
        });
    }
    lines
}

fn workers(app: &Shared) -> Vec<WorkerLine> {
    let problem = |(name, status): (String, app::process::worker_registry::WorkerStatus)| {
        let problem = match (status.is_down, status.failing_since) {
            (true, _) => "has panicked and waits for its restart".to_owned(),
            (_, Some(since)) => format!("every tick has failed since {}", amounts::minute(since)),
            _ if status.panics > 0 => {
                format!("has panicked {}", amounts::count(status.panics, "time"))
            }
            _ => return None,
        };
        Some(WorkerLine { name, problem })
    };
    app.ctx.process.workers.list().into_iter().filter_map(problem).collect()
}

/// Formats the time since `at`, such as `4 min`.
pub fn age(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.since_ms(at).max(0) / 1_000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_the_unit_that_fits_it() {
        let now = Timestamp::from_s(1_000_000);
        let ago = |seconds: i64| age(now.plus_ms(-1_000 * seconds), now);
        assert_eq!(
            [ago(0), ago(119), ago(120), ago(7_200), ago(172_800)],
            ["0 s", "119 s", "2 min", "2 h", "2 days"]
        );
        assert_eq!(age(now.plus_ms(1_000), now), "0 s");
    }
}
