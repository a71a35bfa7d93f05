//! The service's benchmarks: `cargo bench -p foretell --bench service`.
//!
//! Each figure is compared with a baseline that is measured in the same run, in alternating rounds,
//! and compared by the median of the rounds' ratios. A shared machine changes its speed from minute
//! to minute, but a ratio hardly does. The compared quantity is the CPU time of the service's
//! process; wall-clock rates are only informative. docs/benchmarks.md explains each baseline.
//!
//! Options after `--`: `--quick` for a run of less than a minute, `--webhooks`, `--public`, `--pages`,
//! `--live`, `--anvil` or `--creations` for only these, `--capacity` for a model of a deployment, `--sized` for large data, `--gate` to fail if a goal is missed. PostgreSQL is
//! included if `FORETELL_TEST_POSTGRES_URL` names a cluster whose user may create databases.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::float_arithmetic,
    reason = "a program for people, not part of the service"
)]

mod anvil;
mod bare;
mod capacity;
mod chain_limits;
mod cluster;
mod creations;
mod delay;
mod disk;
mod live;
mod load;
mod machine;
mod pgbench;
mod process;
mod public;
mod reads;
mod report;
mod sample;
mod service;
mod site;
mod starts;
mod trades;
mod webhooks;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use capacity::Deployment;
use chain_limits::ChainLimits;
use report::Report;
use service::Service;
use store::sized::Size;

/// Measures the service against the limits of this machine
#[derive(Debug, Parser)]
struct Args {
    /// Short rounds, SQLite alone
    #[arg(long)]
    quick: bool,
    /// Fail where the median of a goal's ratios misses it
    #[arg(long)]
    gate: bool,
    /// Webhooks alone, on SQLite
    #[arg(long)]
    webhooks: bool,
    /// The public read API alone, on SQLite
    #[arg(long)]
    public: bool,
    /// The pages of the site alone, on SQLite
    #[arg(long)]
    pages: bool,
    /// Live prices in many browsers alone, on SQLite
    #[arg(long)]
    live: bool,
    /// Creations of trades alone
    #[arg(long)]
    creations: bool,
    /// The executor on anvil alone
    #[arg(long)]
    anvil: bool,
    /// The capacity of a deployment
    #[arg(long)]
    capacity: bool,
    #[command(flatten)]
    deployment: Deployment,
    /// A hundred thousand markets with five million trades against a hundred, on SQLite
    #[arg(long)]
    sized: bool,
    /// What cargo adds for every benchmark
    #[arg(long, hide = true)]
    bench: bool,
    /// Be the server that the service is held against
    #[arg(long, hide = true)]
    bare_axum: bool,
}

/// Duration of each part of a round.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// A read route, or the baseline server.
    reads: Duration,
    /// Trades over HTTP at one number of connections, or in process.
    trades: Duration,
    /// Batches of one size on the embedded chain.
    batches: Duration,
    rounds: usize,
}

impl Times {
    const WHOLE: Self = Self {
        reads: Duration::from_secs(2),
        trades: Duration::from_secs(3),
        batches: Duration::from_secs(2),
        rounds: 3,
    };
    const QUICK: Self = Self {
        reads: Duration::from_millis(300),
        trades: Duration::from_millis(400),
        batches: Duration::from_millis(300),
        rounds: 3,
    };
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    if args.bare_axum {
        runtime.block_on(bare::serve());
        return ExitCode::SUCCESS;
    }
    if !args.bench {
        println!("These are benchmarks: cargo bench -p foretell --bench service");
        return ExitCode::SUCCESS;
    }
    let report = runtime.block_on(measure(&args));
    report.print();
    if args.gate && report.missed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

async fn measure(args: &Args) -> Report {
    let times = if args.quick { Times::QUICK } else { Times::WHOLE };
    let mut report = Report::default();
    report.note(machine::describe());
    if args.webhooks {
        let mut sqlite = Service::on_sqlite();
        starts::first(&mut sqlite, &mut report).await;
        webhooks::measure(&sqlite, times, &mut report).await;
        sqlite.stop().await;
        return report;
    }
    if args.public {
        public::measure(times, &mut report).await;
        return report;
    }
    if args.pages {
        let mut service = Service::filled_with(Size::SMALL).await;
        site::measure(&service, times, &mut report).await;
        service.stop().await;
        return report;
    }
    if args.live {
        let mut service = Service::filled_with(Size::SMALL).await;
        live::measure(&service, times, &mut report).await;
        service.stop().await;
        return report;
    }
    if args.sized {
        public::at_size(times, &mut report).await;
        return report;
    }
    if args.capacity {
        capacity::measure(args.deployment, times, &mut report).await;
        return report;
    }
    if args.anvil {
        anvil::measure(times, &mut report).await;
        return report;
    }
    if args.creations {
        creations::on_sqlite(times, &mut report).await;
        creations_on_postgres(times, &mut report).await;
        return report;
    }
    eprintln!("The embedded chain alone …");
    let limits = ChainLimits::start().await;
    chain_limits::batches(&limits, times, &mut report).await;
    let mut sqlite = Service::on_sqlite();
    engine(&mut sqlite, &limits, times, &mut report).await;
    drop(sqlite);
    eprintln!("Creations on SQLite …");
    creations::on_sqlite(times, &mut report).await;
    eprintln!("The executor on anvil …");
    anvil::measure(times, &mut report).await;
    eprintln!("The public read API …");
    public::measure(times, &mut report).await;
    if args.quick {
        report.note("PostgreSQL is left out of a quick run.".to_owned());
        return report;
    }
    match Service::on_postgres().await {
        Some(mut postgres) => engine(&mut postgres, &limits, times, &mut report).await,
        None => report.note("FORETELL_TEST_POSTGRES_URL is not set: PostgreSQL is not measured.".to_owned()),
    }
    creations_on_postgres(times, &mut report).await;
    report
}

/// Compares a service with PostgreSQL's own limits, if there is a cluster. It is a new service, because that of the
/// measurements before also delivers a webhook for each trade.
async fn creations_on_postgres(times: Times, report: &mut Report) {
    let Some(mut service) = Service::on_postgres().await else { return };
    eprintln!("Creations on PostgreSQL …");
    service.start_lifted().await;
    creations::on_postgres(&service, times, report).await;
    creations::far_away(times, report).await;
    service.stop().await;
}

/// Runs all measurements of the real binary on one engine.
async fn engine(service: &mut Service, limits: &ChainLimits, times: Times, report: &mut Report) {
    let engine = service.engine();
    eprintln!("The service on {engine}: a demonstration …");
    starts::first(service, report).await;
    starts::second(service, report).await;
    eprintln!("The service on {engine}: reads …");
    reads::measure(service, times, report).await;
    eprintln!("The service on {engine}: trades …");
    trades::measure(service, limits, times, report).await;
    starts::loaded(service, report).await;
    eprintln!("The service on {engine}: webhooks …");
    webhooks::measure(service, times, report).await;
    starts::second(service, report).await;
    service.stop().await;
}
