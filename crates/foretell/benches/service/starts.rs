//! Start times and memory of the service.

use std::time::Duration;

use crate::report::{Goal, Report, Row};
use crate::service::{Service, Trades, count};

/// Idle time of the service before its memory is read.
const REST: Duration = Duration::from_secs(1);

/// Measures the first start, which seeds the demonstration, and lifts the rate limits of its
/// developer keys.
pub async fn first(service: &mut Service, report: &mut Report) {
    let time = service.start_lifted().await;
    let what = format!("first start, demonstration made, {}", service.engine());
    report.row(Row::new(what, format!("{:.1} s", time.as_secs_f64())));
}

/// Measures a restart, and the memory when idle.
pub async fn second(service: &mut Service, report: &mut Report) {
    service.stop().await;
    let time_s = service.start().await.as_secs_f64();
    let store = service.store().await;
    let trades = count(&store, Trades::All).await;
    store.close().await;
    rest().await;
    let memory_mb = service.process().memory_mb();
    let engine = service.engine();
    let start =
        Row::new(format!("R17: second start with {trades} trades, {engine}"), format!("{time_s:.2} s"));
    let memory =
        Row::new(format!("R16: memory at rest with {trades} trades, {engine}"), format!("{memory_mb:.0} MB"));
    report.row(start.against("1 s".to_owned(), [time_s]).goal(Goal::AtMost(1.0)));
    report.row(memory.against("120 MB".to_owned(), [memory_mb / 120.0]).goal(Goal::AtMost(1.0)));
}

/// Measures the memory after the load.
pub async fn loaded(service: &Service, report: &mut Report) {
    let process = service.process();
    let (now_mb, peak_mb) = (process.memory_mb(), process.peak_memory_mb());
    let row = Row::new(
        format!("R16: memory under load, {}", service.engine()),
        format!("peak {peak_mb:.0} MB, {now_mb:.0} MB at its end"),
    );
    report.row(row.against("400 MB".to_owned(), [peak_mb / 400.0]).goal(Goal::AtMost(1.0)));
}

async fn rest() {
    let mut ticks = tokio::time::interval(REST);
    ticks.tick().await;
    ticks.tick().await;
}
