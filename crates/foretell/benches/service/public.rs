//! The public read API: the cost of its reads compared with a plain response of the same length,
//! their effect on trading, and the cost of maintaining aggregates per trade.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use alloy_primitives::B256;
use domain::time::SystemClock;
use domain::{Clock, Usdc, UsdcDelta, Wad};
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use store::movements::{Movement, MovementKind};
use store::sized::{self, Size};
use store::traders::Deeds;
use store::{Store, StoreError};
use tokio::task::JoinSet;

use crate::Times;
use crate::bare::Bare;
use crate::load::{self, Ask, CONNECTIONS, Load, Rounds, ask_once};
use crate::process::Process;
use crate::report::{Goal, Report, Row};
use crate::sample::{Begun, Sample, median};
use crate::service::{Service, settle};
use crate::site;
use crate::trades;

pub const FORWARDED: HeaderName = HeaderName::from_static("x-forwarded-for");
const LIST: &str = "/api/markets?limit=50";
/// Requests per address. A route allows 50 or 100 per minute.
const OF_ADDRESS: u64 = 10;
const READS_A_SECOND: u32 = 1_000;
const TRADES_A_SECOND: u32 = 100;
const KEPT_LIST: &str = "/v1/markets?limit=20";

/// Number of the next client address, so that no two loads share one.
pub static NEXT: AtomicU64 = AtomicU64::new(0);

/// Returns the measured routes with their names in the report.
fn routes() -> Vec<(&'static str, String)> {
    let market = sized::market(0).expect("an id");
    let thread = sized::thread(0).expect("an id");
    vec![
        ("a list of 50 markets", LIST.to_owned()),
        ("one market", format!("/api/markets/{market}")),
        ("trending", "/api/markets/trending".to_owned()),
        ("a thread with its markets", format!("/api/threads/{thread}?includeMarkets=true")),
        ("history, 7 days", format!("/api/markets/{market}/history?range=7d")),
    ]
}

/// Creates requests for these routes in turn, each few from a new address.
pub fn from_everywhere(service: &Service, routes: &[String]) -> impl Fn(usize, u64) -> Ask + use<> {
    let asks: Vec<Ask> = routes.iter().map(|route| service.get(route, "")).collect();
    move |connection: usize, number: u64| {
        let mut ask = asks[(connection + number as usize) % asks.len()].clone();
        let address = (NEXT.fetch_add(1, Ordering::Relaxed) / OF_ADDRESS) as u32;
        // Each one is in an IPv6 /48 of its own, because networks have limits, too.
        let (high, low) = (address >> 16, address & 0xffff);
        let address = HeaderValue::try_from(format!("fd00:{high:x}:{low:x}::1")).expect("an address");
        ask.headers_mut().insert(FORWARDED, address);
        ask
    }
}

/// Runs all measurements of the public API.
pub async fn measure(times: Times, report: &mut Report) {
    let mut service = Service::filled_with(Size::SMALL).await;
    reads(&service, times, report).await;
    beside_trades(&service, times, report).await;
    site::measure(&service, times, report).await;
    service.stop().await;
    upkeep(times, report).await;
}

/// Compares each route with a baseline response of the same length.
async fn reads(service: &Service, times: Times, report: &mut Report) {
    let bare = Bare::start().await;
    for (what, route) in routes() {
        let bytes = length(service, &route).await;
        let same = format!("/bytes/{bytes}");
        let (mut bares, mut ours) = (Rounds::default(), Rounds::default());
        // The first round is a warm-up.
        for round in 0..=times.rounds {
            let limit = from_everywhere(service, std::slice::from_ref(&same));
            let (address, process) = (bare.address(), bare.process());
            let limit = load::run(address, process, CONNECTIONS, times.reads, StatusCode::OK, limit).await;
            let read = route_load(service, &route, times).await;
            if round > 0 {
                bares.push(limit);
                ours.push(read);
            }
        }
        let name = format!("public reads: {what}, {bytes} bytes");
        let row = Row::new(if route == LIST { format!("R14: {name}") } else { name }, ours.figure())
            .against(format!("bare axum {}", bares.figure()), ours.parts_of_cpu(&bares));
        report.row(if route == LIST { row.goal(Goal::AtLeast(0.5)) } else { row });
    }
}

async fn length(service: &Service, route: &str) -> usize {
    let make = from_everywhere(service, &[route.to_owned()]);
    let (status, body) = ask_once(service.address(), make(0, 0)).await.expect("the service answers");
    assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
    body.len()
}

async fn route_load(service: &Service, route: &str, times: Times) -> Load {
    let make = from_everywhere(service, &[route.to_owned()]);
    let (address, process) = (service.address(), service.process());
    load::run(address, process, CONNECTIONS, times.reads, StatusCode::OK, make).await
}

/// Measures the latency of accepting a trade, alone and during a thousand public reads per second.
async fn beside_trades(service: &Service, times: Times, report: &mut Report) {
    let routes: Vec<String> = routes().into_iter().map(|(_, route)| route).collect();
    let demonstration = service.demonstration();
    let store = service.store().await;
    let time = times.trades * 3;
    let (address, process) = (service.address(), service.process());
    let [mut alone, mut beside, mut reads] = [(); 3].map(|()| Rounds::default());
    // The first round is a warm-up.
    for round in 0..=times.rounds {
        let trading = || {
            let make = trades::buys(service, &demonstration);
            load::paced(address, process, TRADES_A_SECOND, time, StatusCode::CREATED, make)
        };
        let quiet = trading().await;
        let reading = from_everywhere(service, &routes);
        let reading = load::paced(address, process, READS_A_SECOND, time, StatusCode::OK, reading);
        let (busy, reading) = tokio::join!(trading(), reading);
        settle(&store).await;
        if round > 0 {
            alone.push(quiet);
            beside.push(busy);
            reads.push(reading);
        }
    }
    store.close().await;
    let ms = |rounds: &Rounds| {
        let (p50, p99) = (rounds.median(|load| load.p50_us), rounds.median(|load| load.p99_us));
        format!("p50 {:.1} ms, p99 {:.1} ms", p50 / 1e3, p99 / 1e3)
    };
    let what =
        format!("public reads, {READS_A_SECOND} a second of all five, beside {TRADES_A_SECOND} trades");
    report.row(Row::new(what, reads.figure()));
    let what = format!(
        "acceptance of {TRADES_A_SECOND} trades a second, p99 beside {READS_A_SECOND} public reads a second"
    );
    let row = Row::new(what, ms(&beside)).against(
        format!("alone {}", ms(&alone)),
        beside.ratios(&alone, |ours, alone| ours.p99_us / alone.p99_us),
    );
    report.row(row.goal(Goal::AtMost(1.2)));
}

/// Compares a hundred thousand markets with five million trades to a hundred markets with a
/// thousand.
pub async fn at_size(times: Times, report: &mut Report) {
    let began = Instant::now();
    let mut small = Service::filled_with(Size::SMALL).await;
    let mut whole = Service::filled_with(Size::WHOLE).await;
    report.note(format!("{:?} filled in {:.0} s", Size::WHOLE, began.elapsed().as_secs_f64()));
    let routes: Vec<(String, String)> = routes()
        .into_iter()
        .map(|(what, route)| (format!("public reads: {what}"), route))
        .chain([("R1: list of 20 markets, kept".to_owned(), KEPT_LIST.to_owned())])
        .collect();
    let mut rounds: HashMap<usize, [Rounds; 2]> = HashMap::new();
    // The first round is a warm-up.
    for round in 0..=times.rounds {
        for (index, (_, route)) in routes.iter().enumerate() {
            let [of_small, of_whole] = rounds.entry(index).or_default();
            for (service, rounds) in [(&small, of_small), (&whole, of_whole)] {
                let load = if route == KEPT_LIST {
                    keyed_load(service, times).await
                } else {
                    route_load(service, route, times).await
                };
                if round > 0 {
                    rounds.push(load);
                }
            }
        }
    }
    for (index, (what, _)) in routes.iter().enumerate() {
        let [of_small, of_whole] = &rounds[&index];
        let ratios = of_whole.ratios(of_small, |w, s| w.sample.cpu_each() / s.sample.cpu_each());
        let row = Row::new(format!("R15: {what}, 100,000 markets"), of_whole.figure());
        report.row(row.against(format!("100 markets {}", of_small.figure()), ratios).goal(Goal::AtMost(1.3)));
    }
    searches(&whole, times, report).await;
    trades_at_size(&small, &whole, times, report).await;
    let mb = |service: &Service| service.process().peak_memory_mb();
    report.row(Row::new(
        "memory at most, 100,000 markets".to_owned(),
        format!("{:.0} MB; {:.0} MB with 100", mb(&whole), mb(&small)),
    ));
    small.stop().await;
    whole.stop().await;
}

/// Compares searches for words that every market or a thousandth of them has with a list of as many
/// markets: popular ones, which are cached, and pages of which none is read twice in a second.
async fn searches(service: &Service, times: Times, report: &mut Report) {
    const WORDS: [&str; 4] = ["case", "will%20pass", "w99%20case", "4"];
    let popular = WORDS.map(|words| format!("{LIST}&q={words}")).to_vec();
    let pages = |route: &str| (0..500).map(|page| format!("{route}&offset={page}")).collect::<Vec<_>>();
    let different: Vec<String> =
        (0..500).map(|page| format!("{}&offset={page}", popular[page % 4])).collect();
    for (what, lists, searches, goal) in [
        ("R19: searches for common words", vec![LIST.to_owned()], popular.clone(), Some(Goal::AtMost(3.0))),
        ("searches for common words, each another page", pages(LIST), different, None),
    ] {
        let (mut listed, mut searched) = (Rounds::default(), Rounds::default());
        // The first round is a warm-up.
        for round in 0..=times.rounds {
            for (routes, rounds) in [(&lists, &mut listed), (&searches, &mut searched)] {
                let make = from_everywhere(service, routes);
                let (address, process) = (service.address(), service.process());
                let load = load::run(address, process, CONNECTIONS, times.reads, StatusCode::OK, make).await;
                if round > 0 {
                    rounds.push(load);
                }
            }
        }
        let ratios = searched.ratios(&listed, |ours, list| ours.p99_us / list.p99_us);
        let row = Row::new(format!("{what}, p99, 100,000 markets"), searched.figure());
        let row = row.against(format!("a list of 50 {}", listed.figure()), ratios);
        report.row(match goal {
            Some(goal) => row.goal(goal),
            None => row,
        });
    }
}

async fn keyed_load(service: &Service, times: Times) -> Load {
    let keys = service.demonstration().keys;
    let asks: Vec<Ask> = keys.iter().map(|key| service.get(KEPT_LIST, key)).collect();
    let make =
        move |connection: usize, number: u64| asks[(connection + number as usize) % asks.len()].clone();
    let (address, process) = (service.address(), service.process());
    load::run(address, process, CONNECTIONS, times.reads, StatusCode::OK, make).await
}

async fn trades_at_size(small: &Service, whole: &Service, times: Times, report: &mut Report) {
    let mut samples: [Vec<Sample>; 2] = Default::default();
    for round in 0..=times.rounds {
        for (service, samples) in [small, whole].into_iter().zip(&mut samples) {
            let demonstration = service.demonstration();
            let store = service.store().await;
            let begun = Begun::now(service.process());
            let make = trades::buys(service, &demonstration);
            let (address, process) = (service.address(), service.process());
            let load =
                load::run(address, process, CONNECTIONS, times.trades, StatusCode::CREATED, make).await;
            settle(&store).await;
            store.close().await;
            if round > 0 {
                samples.push(begun.end(load.sample.operations));
            }
        }
    }
    let [of_small, of_whole] = &samples;
    let cpu_us = |samples: &[Sample]| format!("{:.0} us CPU", median(samples.iter().map(Sample::cpu_each)));
    let ratios = of_whole.iter().zip(of_small).map(|(w, s)| w.cpu_each() / s.cpu_each());
    let what = "R15: CPU of a trade, end to end, 16 connections, 100,000 markets".to_owned();
    let row = Row::new(what, cpu_us(of_whole));
    report.row(row.against(format!("100 markets {}", cpu_us(of_small)), ratios).goal(Goal::AtMost(1.3)));
}

/// Measures the cost of updating the aggregates of public lists, in process, for single trades and
/// for blocks of ten.
async fn upkeep(times: Times, report: &mut Report) {
    let store = store::testing::sqlite().await;
    sized::fill(&store, Size::SMALL, SystemClock::default().now()).await.expect("it is filled");
    for of_block in [1, 10] {
        let mut samples = Vec::new();
        // The first round is a warm-up.
        for round in 0..=times.rounds {
            let sample = kept_up(&store, of_block, times).await;
            if round > 0 {
                samples.push(sample);
            }
        }
        let cpu_us = median(samples.iter().map(Sample::cpu_each));
        let what = format!("sums of the public lists, of a trade, {of_block} to a block");
        report.row(Row::new(what, format!("{cpu_us:.0} us CPU")));
    }
    store.close().await;
}

/// Executes transactions with `of_block` trades, each on its own market, whose volume it changes.
/// Measures this process, which does nothing else.
async fn kept_up(store: &Store, of_block: u64, times: Times) -> Sample {
    const TRADED: &str = "UPDATE markets SET volume_usdc_atomic = volume_usdc_atomic + 1000000 WHERE id = $1";
    let begun = Begun::now(Process::own());
    let end = Instant::now() + times.batches;
    let mut trades = 0;
    let mut tasks = JoinSet::new();
    while Instant::now() < end {
        let movements: Vec<Movement> = (trades..trades + of_block).map(bought).collect();
        let store = store.clone();
        tasks.spawn(async move {
            let written: Result<(), StoreError> = store
                .write(movements, |tx, movements| {
                    Box::pin(async move {
                        store::traders::lock(tx).await?;
                        let mut deeds = Deeds::default();
                        for movement in movements.iter() {
                            tx.exec(TRADED, &store::params![movement.market_id]).await?;
                            store::listed::refresh(tx, movement.market_id).await?;
                            deeds.add(movement);
                        }
                        deeds.write(tx).await
                    })
                })
                .await;
            written.expect("the database takes it");
        });
        trades += of_block;
        if tasks.len() >= CONNECTIONS {
            drop(tasks.join_next().await);
        }
    }
    tasks.join_all().await;
    begun.end(trades)
}

fn bought(number: u64) -> Movement {
    let market = (number % u64::from(Size::SMALL.markets)) as u32;
    Movement {
        id: Movement::id_at(2_000_000_000 + number, 0),
        block_number: 2_000_000_000 + number,
        log_index: 0,
        tx_hash: B256::ZERO,
        kind: MovementKind::Buy,
        market_id: sized::market(market).expect("an id"),
        outcome_index: 0,
        account: sized::account((number % 50) as u32),
        counterparty: None,
        usdc: Usdc::from_whole(1),
        tokens: Wad::ONE,
        fee: Usdc::ZERO,
        cost: None,
        quantity: None,
        trade_id: None,
        created_at: SystemClock::default().now(),
        realized_pnl: UsdcDelta(0),
    }
}
