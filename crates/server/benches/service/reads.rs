//! Market lists and quotes against a bare server, over 16 connections.

use hyper::StatusCode;

use crate::Times;
use crate::bare::Bare;
use crate::load::{self, Load};
use crate::report::{Goal, Report, Row};
use crate::sample::median;
use crate::service::Service;

const CONNECTIONS: usize = 16;
const LIST: &str = "/v1/markets?limit=20";

/// The rounds of one route.
#[derive(Default)]
struct Rounds(Vec<Load>);

impl Rounds {
    fn cpu_each(&self) -> f64 {
        median(self.0.iter().map(|load| load.sample.cpu_each()))
    }

    fn figure(&self) -> String {
        let rate = median(self.0.iter().map(|load| load.sample.rate()));
        let p50_us = median(self.0.iter().map(|load| load.p50_us));
        let p99_us = median(self.0.iter().map(|load| load.p99_us));
        format!("{:.1} us CPU; {rate:.0}/s, p50 {p50_us:.0} us, p99 {p99_us:.0} us", self.cpu_each())
    }

    /// The limit's CPU time as a part of this route's, round by round.
    fn ratios(&self, limit: &Self) -> Vec<f64> {
        let pairs = self.0.iter().zip(&limit.0);
        pairs.map(|(ours, limit)| limit.sample.cpu_each() / ours.sample.cpu_each()).collect()
    }
}

/// Measures lists and quotes.
pub async fn measure(service: &Service, times: Times, report: &mut Report) {
    let bare = Bare::start().await;
    let demonstration = service.demonstration();
    let quotes = demonstration
        .markets
        .iter()
        .map(|(market, _)| format!("/v1/markets/{market}/quote?outcomeIndex=0&action=buy&amount=25000000"));
    let quotes: Vec<String> = quotes.collect();
    let [mut bares, mut lists, mut quoted] = [(); 3].map(|()| Rounds::default());
    // The first round warms up.
    for round in 0..=times.rounds {
        let one = [
            bare_load(&bare, service, times).await,
            route_load(service, &demonstration.keys, vec![LIST.to_owned()], times).await,
            route_load(service, &demonstration.keys, quotes.clone(), times).await,
        ];
        if round > 0 {
            let [bare, list, quote] = one;
            bares.0.push(bare);
            lists.0.push(list);
            quoted.0.push(quote);
        }
    }
    let engine = service.engine();
    report.row(Row::new(format!("bare axum, 2 KB ({engine}'s rounds)"), bares.figure()));
    let limit = || format!("bare axum {:.1} us CPU", bares.cpu_each());
    for (what, rounds, goal) in
        [("R3: list of 20 markets", &lists, Goal::AtLeast(0.12)), ("R4: quote", &quoted, Goal::AtLeast(0.30))]
    {
        let row =
            Row::new(format!("{what}, {engine}"), rounds.figure()).against(limit(), rounds.ratios(&bares));
        report.row(if service.is_embedded() { row.goal(goal) } else { row });
    }
}

async fn bare_load(bare: &Bare, service: &Service, times: Times) -> Load {
    // The same request to both, so that its parsing costs the same.
    let ask = service.get("/", &service.demonstration().keys[0]);
    let (address, process) = (bare.address(), bare.process());
    load::run(address, process, CONNECTIONS, times.reads, StatusCode::OK, move |_, _| ask.clone()).await
}

async fn route_load(service: &Service, keys: &[String], routes: Vec<String>, times: Times) -> Load {
    let asks: Vec<_> =
        keys.iter().flat_map(|key| routes.iter().map(|route| service.get(route, key))).collect();
    let make =
        move |connection: usize, number: u64| asks[(connection + number as usize) % asks.len()].clone();
    load::run(service.address(), service.process(), CONNECTIONS, times.reads, StatusCode::OK, make).await
}
