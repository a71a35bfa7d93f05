//! The pages of the site: the cost of an anonymous page compared with a plain response of the same
//! length.

use hyper::StatusCode;
use hyper::header::HOST;

use crate::Times;
use crate::bare::Bare;
use crate::live;
use crate::load::{self, Ask, CONNECTIONS, Load, Rounds, ask_once};
use crate::public::from_everywhere;
use crate::report::{Goal, Report, Row};
use crate::service::Service;

/// Measures the pages and the live prices of a service that reports its clients' addresses.
pub async fn measure(service: &Service, times: Times, report: &mut Report) {
    pages(service, times, report).await;
    live::measure(service, times, report).await;
}

/// Creates requests for a page under the site's own host, each few from a new address.
fn page_requests(service: &Service, path: &str) -> impl Fn(usize, u64) -> Ask + use<> {
    let make = from_everywhere(service, &[path.to_owned()]);
    let host = own_host(service);
    move |connection, number| {
        let mut ask = make(connection, number);
        ask.headers_mut().insert(HOST, host.parse().expect("a host"));
        ask
    }
}

pub fn own_host(service: &Service) -> String {
    let (_, port) = service.address().rsplit_once(':').expect("a port");
    format!("localhost:{port}")
}

async fn pages(service: &Service, times: Times, report: &mut Report) {
    let (market, _) = &service.demonstration().markets[0];
    let bare = Bare::start().await;
    for (what, path) in [
        ("home", "/".to_owned()),
        ("markets", "/markets".to_owned()),
        ("a market", format!("/markets/{market}")),
    ] {
        let first = ask_once(service.address(), page_requests(service, &path)(0, 0)).await;
        let (status, body) = first.expect("the service answers");
        assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
        let bytes = body.len();
        let same = format!("/bytes/{bytes}");
        let (mut bares, mut ours) = (Rounds::default(), Rounds::default());
        // The first round is a warm-up.
        for round in 0..=times.rounds {
            let plain = from_everywhere(service, std::slice::from_ref(&same));
            let (address, process) = (bare.address(), bare.process());
            let plain: Load =
                load::run(address, process, CONNECTIONS, times.reads, StatusCode::OK, plain).await;
            let make = page_requests(service, &path);
            let (address, process) = (service.address(), service.process());
            let page = load::run(address, process, CONNECTIONS, times.reads, StatusCode::OK, make).await;
            if round > 0 {
                bares.push(plain);
                ours.push(page);
            }
        }
        let ratios = ours.ratios(&bares, |ours, bare| ours.sample.cpu_each() / bare.sample.cpu_each());
        let row = Row::new(format!("R20: page, {what}, {bytes} bytes"), ours.figure());
        report.row(row.against(format!("bare axum {}", bares.figure()), ratios).goal(Goal::AtMost(3.0)));
    }
}
