//! Trades over HTTP with 1, 16 and 64 connections, from the request to the settled position,
//! compared with trades that are sent directly to an embedded chain in this process.

use std::sync::atomic::{AtomicU64, Ordering};

use hyper::StatusCode;
use store::Store;

use crate::Times;
use crate::chain_limits::ChainLimits;
use crate::disk::Disk;
use crate::load::{self, Ask};
use crate::report::{Goal, Report, Row};
use crate::sample::{Begun, Sample, median};
use crate::service::{Demonstration, Service, Trades, count, post, settle};

const CONNECTIONS: [usize; 3] = [1, 16, 64];
/// Small enough that each key's daily cap allows hundreds of thousands of trades.
const AMOUNT_USDC: &str = "0.05";

/// Number of the next request, so that all requests of a run differ.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// One load at one number of connections, until all trades have ended.
pub struct Round {
    /// Acknowledged trades, while requests were sent.
    accepted: Sample,
    /// Completed trades, from the first request until all had ended.
    pub completed: Sample,
    p50_us: f64,
    p99_us: f64,
}

pub async fn measure(service: &Service, limits: &ChainLimits, times: Times, report: &mut Report) {
    let demonstration = service.demonstration();
    let store = service.store().await;
    let disk = Disk::probe_in(service.folder());
    let mut rounds = CONNECTIONS.map(|_| Vec::new());
    let mut plain = Vec::new();
    let mut syncs_us = Vec::new();
    // The first round is a warm-up.
    for round in 0..=times.rounds {
        let in_process = limits.plain_trades(times.trades).await;
        if round > 0 {
            plain.push(in_process);
        }
        for (rounds, connections) in rounds.iter_mut().zip(CONNECTIONS) {
            let load = trade(service, &demonstration, &store, connections, times);
            // Only this load is compared with the disk. The probe would slow the disk down for the
            // others.
            let (one, sync_us) =
                if connections == 1 { disk.beside(load).await } else { (load.await, f64::NAN) };
            if round > 0 {
                rounds.push(one);
                syncs_us.push(sync_us);
            }
        }
    }
    syncs_us.retain(|us| us.is_finite());
    store.close().await;
    let (engine, is_embedded) = (service.engine(), service.is_embedded());
    report.row(Row::new(format!("plain trades in process ({engine}'s rounds)"), limit_figure(&plain)));
    let [one, sixteen, sixty_four] = &rounds;
    for (rounds, connections) in rounds.iter().zip(CONNECTIONS) {
        let plural = if connections == 1 { "" } else { "s" };
        let what = format!("trades over HTTP, {connections} connection{plural}, {engine}");
        report.row(Row::new(what, figure(rounds)));
    }
    let rows = [
        Row::new(format!("R9: CPU of a trade, end to end, 16 connections, {engine}"), cpu_figure(sixteen))
            .against(
                format!("plain trade {:.1} us CPU", median(plain.iter().map(Sample::cpu_each))),
                sixteen.iter().zip(&plain).map(|(ours, plain)| ours.completed.cpu_each() / plain.cpu_each()),
            )
            .goal_if(is_embedded, Goal::AtMost(2.0)),
        Row::new(format!("R9b: CPU of a trade, end to end, 1 connection, {engine}"), cpu_figure(one))
            .against(
                format!("16 connections {}", cpu_figure(sixteen)),
                one.iter()
                    .zip(sixteen)
                    .map(|(one, ours)| one.completed.cpu_each() / ours.completed.cpu_each()),
            )
            .goal_if(is_embedded, Goal::AtMost(2.5)),
        Row::new(
            format!("R10: completed, 64 connections, {engine}"),
            format!("{:.0}/s", median(sixty_four.iter().map(|round| round.completed.rate()))),
        )
        .against(
            format!("accepted {:.0}/s", median(sixty_four.iter().map(|round| round.accepted.rate()))),
            sixty_four.iter().map(|round| round.completed.rate() / round.accepted.rate()),
        )
        .goal(Goal::AtLeast(0.8)),
    ];
    rows.into_iter().for_each(|row| report.row(row));
    let row = Row::new(
        format!("R11: acceptance, 1 connection, {engine}"),
        format!("p50 {:.0} us", median(one.iter().map(|round| round.p50_us))),
    )
    .against(
        format!("fdatasync p50 {:.0} us", median(syncs_us.iter().copied())),
        one.iter().zip(&syncs_us).map(|(round, sync_us)| round.p50_us / sync_us),
    );
    // The durability settings of a PostgreSQL cluster are unknown, so no goal applies there.
    report.row(row.goal_if(is_embedded, Goal::AtMost(4.0)));
}

/// Creates distinct buys, spread over the keys and markets.
pub fn buys(service: &Service, demonstration: &Demonstration) -> impl Fn(usize, u64) -> Ask + use<> {
    let Demonstration { keys, markets } = demonstration.clone();
    let address = service.address().to_owned();
    let run = std::process::id();
    move |connection: usize, _: u64| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (market, outcomes) = &markets[number as usize % markets.len()];
        let outcome = number as usize / markets.len() % outcomes;
        let body = format!(
            r#"{{"marketId":"{market}","outcomeIndex":{outcome},"side":"buy","amount":"{AMOUNT_USDC}"}}"#
        );
        let key = &keys[(connection + number as usize) % keys.len()];
        post(&address, "/v1/trades", key, &format!("bench-{run}-{number}"), body)
    }
}

/// Runs the load.
pub async fn trade(
    service: &Service,
    demonstration: &Demonstration,
    store: &Store,
    connections: usize,
    times: Times,
) -> Round {
    let make = buys(service, demonstration);
    let completed_before = count(store, Trades::Completed).await;
    let begun = Begun::now(service.process());
    let (address, process) = (service.address(), service.process());
    let load = load::run(address, process, connections, times.trades, StatusCode::CREATED, make).await;
    settle(store).await;
    let accepted = load.sample.operations;
    let completed = begun.end(accepted);
    let settled = count(store, Trades::Completed).await - completed_before;
    assert_eq!(settled, accepted, "every trade that was accepted is completed");
    Round { accepted: load.sample, completed, p50_us: load.p50_us, p99_us: load.p99_us }
}

fn limit_figure(samples: &[Sample]) -> String {
    let cpu_us = median(samples.iter().map(Sample::cpu_each));
    format!("{cpu_us:.1} us CPU; {:.0}/s", median(samples.iter().map(Sample::rate)))
}

fn cpu_figure(rounds: &[Round]) -> String {
    format!("{:.0} us CPU", median(rounds.iter().map(|round| round.completed.cpu_each())))
}

fn figure(rounds: &[Round]) -> String {
    let of = |value: fn(&Round) -> f64| median(rounds.iter().map(value));
    format!(
        "{:.0} us CPU; accepted {:.0}/s (p50 {:.1} ms, p99 {:.1} ms), completed {:.0}/s",
        of(|round| round.completed.cpu_each()),
        of(|round| round.accepted.rate()),
        of(|round| round.p50_us) / 1e3,
        of(|round| round.p99_us) / 1e3,
        of(|round| round.completed.rate()),
    )
}
