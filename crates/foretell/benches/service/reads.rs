//! Market lists and quotes compared with a baseline server, over 16 connections.

use hyper::StatusCode;
use hyper::header::{HeaderValue, IF_NONE_MATCH};

use crate::Times;
use crate::bare::Bare;
use crate::load::{self, Ask, CONNECTIONS, Load, Rounds};
use crate::report::{Goal, Report, Row};
use crate::service::Service;

const LIST: &str = "/v1/markets?limit=20";

pub async fn measure(service: &Service, times: Times, report: &mut Report) {
    let bare = Bare::start().await;
    let demonstration = service.demonstration();
    let keys = &demonstration.keys;
    let quotes = demonstration
        .markets
        .iter()
        .map(|(market, _)| format!("/v1/markets/{market}/quote?outcomeIndex=0&action=buy&amount=25000000"));
    let quotes: Vec<String> = quotes.collect();
    let [mut bares, mut kept, mut unchanged, mut read, mut quoted] = [(); 5].map(|()| Rounds::default());
    // The first round is a warm-up.
    for round in 0..=times.rounds {
        let one = [
            (&mut bares, bare_load(&bare, service, times).await),
            (&mut kept, route_load(service, keys, vec![LIST.to_owned()], times).await),
            (&mut unchanged, unchanged_load(service, keys, times).await),
            (&mut read, spelled_load(service, keys, times).await),
            (&mut quoted, route_load(service, keys, quotes.clone(), times).await),
        ];
        if round > 0 {
            one.into_iter().for_each(|(rounds, load)| rounds.push(load));
        }
    }
    let engine = service.engine();
    report.row(Row::new(format!("bare axum, 2 KB ({engine}'s rounds)"), bares.figure()));
    let limit = || format!("bare axum {:.1} us CPU", bares.cpu_each());
    for (what, rounds, goal) in [
        ("R1: list of 20 markets, kept", &kept, Goal::AtLeast(0.45)),
        ("R2: the same, answered 304", &unchanged, Goal::AtLeast(0.60)),
        ("R3: the same, read each time", &read, Goal::AtLeast(0.12)),
        ("R4: quote", &quoted, Goal::AtLeast(0.30)),
    ] {
        let row = Row::new(format!("{what}, {engine}"), rounds.figure())
            .against(limit(), rounds.parts_of_cpu(&bares));
        report.row(row.goal_if(service.is_embedded(), goal));
    }
}

async fn bare_load(bare: &Bare, service: &Service, times: Times) -> Load {
    // Send the same request to both, so that parsing it costs the same.
    let ask = service.get("/", &service.demonstration().keys[0]);
    let (address, process) = (bare.address(), bare.process());
    load::run(address, process, CONNECTIONS, times.reads, StatusCode::OK, move |_, _| ask.clone()).await
}

async fn route_load(service: &Service, keys: &[String], routes: Vec<String>, times: Times) -> Load {
    let asks: Vec<_> =
        keys.iter().flat_map(|key| routes.iter().map(|route| service.get(route, key))).collect();
    asks_load(service, asks, StatusCode::OK, times).await
}

async fn unchanged_load(service: &Service, keys: &[String], times: Times) -> Load {
    let asks = keys.iter().map(|key| {
        let mut ask = service.get(LIST, key);
        ask.headers_mut().insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
        ask
    });
    asks_load(service, asks.collect(), StatusCode::NOT_MODIFIED, times).await
}

/// Requests the same list in so many spellings that no cached response is used.
async fn spelled_load(service: &Service, keys: &[String], times: Times) -> Load {
    const WORDS: [&str; 4] = ["OPEN", "FROZEN", "RESOLVED", "CANCELLED"];
    let spelling = |number: usize| {
        let words = (0..7).map(|place| WORDS[(number >> (2 * place)) % WORDS.len()]);
        format!("{LIST}&status={},{}", WORDS.join(","), words.collect::<Vec<_>>().join(","))
    };
    let asks = (0..1 << 14).map(|number| service.get(&spelling(number), &keys[number % keys.len()]));
    asks_load(service, asks.collect(), StatusCode::OK, times).await
}

async fn asks_load(service: &Service, asks: Vec<Ask>, wanted: StatusCode, times: Times) -> Load {
    let make = move |connection: usize, number: u64| {
        asks[(connection + number as usize * CONNECTIONS) % asks.len()].clone()
    };
    load::run(service.address(), service.process(), CONNECTIONS, times.reads, wanted, make).await
}
