//! How many trades per second a deployment can carry: the cost of a trade, measured here, and a model
//! that divides what the machines and the chain have by it.

use std::time::Duration;

use clap::Args;

use crate::Times;
use crate::chain_limits::ChainLimits;
use crate::cluster::Cluster;
use crate::process::Process;
use crate::report::{Report, Row};
use crate::sample::{Begun, Sample, median};
use crate::service::Service;
use crate::trades::{Round, trade};

const CONNECTIONS: usize = 64;

/// What a deployment has.
#[derive(Debug, Clone, Copy, Args)]
pub struct Deployment {
    /// Processes of the service
    #[arg(long, default_value_t = 2)]
    processes: u32,
    /// Processors of each process
    #[arg(long, default_value_t = 2)]
    process_cores: u32,
    /// Processors of PostgreSQL
    #[arg(long, default_value_t = 2)]
    database_cores: u32,
    /// Gas per second that the chain has left for trades
    #[arg(long, default_value_t = 2_500_000)]
    gas_per_second: u64,
}

/// The cost of a trade from its acceptance until it has ended.
struct Cost {
    /// CPU time of the service, in microseconds.
    service_us: f64,
    /// CPU time of PostgreSQL, in microseconds.
    database_us: f64,
    /// Completed trades per second.
    rate: f64,
    /// Share of this machine's processors that was used.
    used: f64,
}

pub async fn measure(deployment: Deployment, times: Times, report: &mut Report) {
    eprintln!("The service on SQLite …");
    let mut sqlite = Service::on_sqlite();
    sqlite.start_lifted().await;
    let embedded = cost(&sqlite, None, times).await;
    sqlite.stop().await;
    row(report, "a trade, everything embedded", &embedded);
    eprintln!("The chain …");
    let limits = ChainLimits::start().await;
    limits.presigned_trades(1_000).await;
    let gas = limits.gas_of_a_trade().await;
    report.row(Row::new("gas of a delegated buy in a full batch".to_owned(), format!("{gas:.0}")));
    let by_chain = deployment.gas_per_second as f64 / gas;
    let Some(mut postgres) = Service::on_postgres().await else {
        report.note("FORETELL_TEST_POSTGRES_URL is not set: PostgreSQL is not measured.".to_owned());
        return;
    };
    eprintln!("The service on PostgreSQL …");
    postgres.start_lifted().await;
    let store = postgres.store().await;
    let Some(cluster) = Cluster::of(&store).await else {
        report.note("The PostgreSQL cluster runs on another machine: its CPU is not measured.".to_owned());
        return;
    };
    let divided = cost(&postgres, Some(cluster), times).await;
    store.close().await;
    postgres.stop().await;
    row(report, "a trade on PostgreSQL", &divided);
    let cores = f64::from(deployment.processes * deployment.process_cores);
    let by_processes = divided.used * cores * 1e6 / divided.service_us;
    let by_database = divided.used * f64::from(deployment.database_cores) * 1e6 / divided.database_us;
    let model = |what: &str, rate: f64| Row::new(format!("model: {what}"), format!("{rate:.0} trades/s"));
    report.row(model(
        &format!("{} processes of {} cores", deployment.processes, deployment.process_cores),
        by_processes,
    ));
    report.row(model(&format!("PostgreSQL on {} cores", deployment.database_cores), by_database));
    report.row(model(&format!("a chain with {} gas per second", deployment.gas_per_second), by_chain));
    report.row(model("the deployment: the smallest of them", by_processes.min(by_database).min(by_chain)));
}

fn row(report: &mut Report, what: &str, cost: &Cost) {
    let Cost { service_us, database_us, rate, used } = cost;
    let figure = format!(
        "{service_us:.0} us CPU of the service, {database_us:.0} us of PostgreSQL; {rate:.0}/s here, {:.0}% of the processors",
        used * 100.0
    );
    report.row(Row::new(what.to_owned(), figure));
}

async fn cost(service: &Service, cluster: Option<Cluster>, times: Times) -> Cost {
    let (demonstration, store) = (service.demonstration(), service.store().await);
    let database = || cluster.map_or(0.0, Cluster::cpu_us);
    let mut costs = Vec::new();
    for round in 0..=times.rounds {
        let (own, before) = (Begun::now(Process::own()), database());
        let load: Round = trade(service, &demonstration, &store, CONNECTIONS, times).await;
        let completed = load.completed;
        let generator = own.end(completed.operations);
        let database_us = database() - before;
        if round > 0 {
            costs.push(of(completed, generator, database_us));
        }
    }
    store.close().await;
    let middle = |value: fn(&Cost) -> f64| median(costs.iter().map(value));
    Cost {
        service_us: middle(|cost| cost.service_us),
        database_us: middle(|cost| cost.database_us),
        rate: middle(|cost| cost.rate),
        used: middle(|cost| cost.used),
    }
}

fn of(completed: Sample, generator: Sample, database_us: f64) -> Cost {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let available = completed.wall * u32::try_from(cores).unwrap_or(1);
    let used_us = completed.cpu_us + generator.cpu_us + database_us;
    Cost {
        service_us: completed.cpu_each(),
        database_us: database_us / completed.operations as f64,
        rate: completed.rate(),
        used: (Duration::from_micros(used_us as u64).as_secs_f64() / available.as_secs_f64()).min(1.0),
    }
}
