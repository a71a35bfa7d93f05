//! Traces of a service that is a process, with a collector that takes, ignores or refuses them.

use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::Span;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::clients::Trader;
use crate::collector::{Collector, attribute, hex};
use crate::receiver::Receiver;
use crate::service::{Service, read_json};
use crate::webhooks::point_keys_at;

/// A trace that is sampled by its id, and the caller's span in it.
const TRACE: &str = "4bf92f3577b34da6a3ffffffffff4736";
const CALLER: &str = "00f067aa0ba902b7";
/// A trace that is not sampled.
const OTHER: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn client() -> Client {
    Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap()
}

/// Creates a trade in a trace and returns the answer.
async fn trade(service: &Service, trader: &Trader, name: &str) -> Value {
    let body = json!({
        "marketId": trader.markets[0], "outcomeIndex": 0, "side": "buy", "amount": "0.25",
        "clientRequestId": format!("body-of-{name}"),
    });
    let request = client().post(format!("{}/v1/trades", service.base_url())).json(&body);
    let request = request.header("x-api-key", &trader.key).header("idempotency-key", name);
    let answer = request.header("traceparent", format!("00-{TRACE}-{CALLER}-01")).send().await.unwrap();
    assert_eq!(answer.status(), 201);
    answer.json().await.unwrap()
}

fn only<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    let mut named = spans.iter().filter(|span| span.name == name);
    let (first, second) = (named.next(), named.next());
    assert!(second.is_none(), "{name} came twice");
    first.unwrap_or_else(|| panic!("{name} did not come"))
}

async fn assert_is_one_trace(service: &mut Service) {
    let (collector, receiver) = (Collector::start().await, Receiver::start().await);
    let trader = Trader::of_demonstration(&service.demonstration().await, 1).remove(0);
    let store = service.store().await;
    point_keys_at(&store, &receiver).await;
    store.close().await;
    service.start_with(&["--otlp-endpoint", &collector.url]).await;
    let answer = trade(service, &trader, "traced-by-its-caller").await;
    assert_eq!(answer["trade"]["correlationId"], TRACE);

    let life = ["POST /v1/trades", "trade.create", "trade.sign", "trade.settle", "webhook.attempt", "store"];
    let spans = collector.has(TRACE, &life).await;
    let parent_of = |name: &str| hex(&only(&spans, name).parent_span_id);
    let id_of = |name: &str| hex(&only(&spans, name).span_id);
    assert_eq!(parent_of("POST /v1/trades"), CALLER);
    assert_eq!(parent_of("trade.create"), id_of("POST /v1/trades"));
    for later in ["trade.sign", "trade.settle"] {
        assert_eq!(parent_of(later), id_of("trade.create"), "{later}");
    }
    for span in spans.iter().filter(|span| span.name == "webhook.attempt") {
        assert_eq!(hex(&span.parent_span_id), id_of("trade.create"));
        assert_eq!(attribute(span, "http.response.status_code"), "200");
    }
    for span in spans.iter().filter(|span| span.name == "store") {
        assert_eq!(hex(&span.parent_span_id), id_of("POST /v1/trades"));
    }
    let batch = |name| attribute(only(&spans, name), "batch.id");
    assert!(!batch("trade.sign").is_empty());
    assert_eq!(batch("trade.sign"), batch("trade.settle"));
    for name in ["trade.create", "trade.sign", "trade.settle"] {
        assert_eq!(attribute(only(&spans, name), "trade.id"), answer["trade"]["id"], "{name}");
    }
    let request = only(&spans, "POST /v1/trades");
    assert_eq!(attribute(request, "http.response.status_code"), "201");
    assert!(request.end_time_unix_nano > request.start_time_unix_nano);

    // Not the key, not its webhook's URL, no header and no body.
    let secrets = [trader.key.as_str(), receiver.url.as_str(), "traced-by-its-caller"];
    for body in collector.bodies() {
        let text = String::from_utf8_lossy(&body);
        assert!(!secrets.iter().any(|secret| text.contains(secret)), "{text}");
    }
    assert!(collector.resources().contains(&("service.name".to_owned(), "foretell".to_owned())));
    service.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trade_is_one_trace_from_the_request_to_the_webhook_on_sqlite() {
    assert_is_one_trace(&mut Service::on_sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trade_is_one_trace_from_the_request_to_the_webhook_on_postgres() {
    let Some(mut service) = Service::on_postgres().await else { return };
    assert_is_one_trace(&mut service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_spans_are_sent_when_the_process_stops_and_only_those_of_sampled_traces() {
    let (collector, mut service) = (Collector::start().await, Service::on_sqlite().await);
    let trader = Trader::of_demonstration(&service.demonstration().await, 1).remove(0);
    service.start_with(&["--otlp-endpoint", &collector.url]).await;
    for trace in [OTHER, TRACE] {
        let request = client().get(format!("{}/v1/markets", service.base_url()));
        let request = request.header("x-api-key", &trader.key);
        let answer = request.header("traceparent", format!("00-{trace}-{CALLER}-01")).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    }
    service.terminate().await;
    assert_eq!(attribute(only(&collector.spans(TRACE), "GET /v1/markets"), "http.route"), "/v1/markets");
    assert_eq!(collector.spans(OTHER).len(), 0);
}

/// Returns the service's metrics.
async fn metrics(service: &Service) -> String {
    let url = read_json(&service.file("service.json")).unwrap()["opsUrl"].as_str().unwrap().to_owned();
    client().get(format!("{url}/metrics")).send().await.unwrap().text().await.unwrap()
}

/// Asserts that trades succeed although the collector at this address takes no spans, that lost spans
/// are counted and logged, and that the process still stops.
async fn assert_is_unaffected_by(address: &str) {
    let mut service = Service::on_sqlite().await;
    let trader = Trader::of_demonstration(&service.demonstration().await, 1).remove(0);
    let url = format!("http://{address}");
    service.start_with(&["--otlp-endpoint", &url, "--ops-listen", "127.0.0.1:0"]).await;
    for number in 0..10 {
        trade(&service, &trader, &format!("trade-{number}")).await;
    }
    let mut polls = tokio::time::interval(Duration::from_millis(100));
    let counted = async {
        let none = "foretell_trace_spans_total{outcome=\"failed\"} 0\n";
        while metrics(&service).await.contains(none) {
            polls.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), counted).await.expect("lost spans are counted");
    trade(&service, &trader, "the-last-trade").await;
    let log = service.file("log");
    service.terminate().await;
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("the collector of traces did not take spans"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_never_answers_affects_no_request() {
    // The kernel accepts connections, and nothing reads them.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    assert_is_unaffected_by(&silent.local_addr().unwrap().to_string()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_gone_affects_no_request() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    assert_is_unaffected_by(&gone.to_string()).await;
}
