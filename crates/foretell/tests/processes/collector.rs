//! A collector of traces. It keeps what it gets.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

type Bodies = Arc<Mutex<Vec<Bytes>>>;

pub struct Collector {
    pub url: String,
    bodies: Bodies,
    server: JoinHandle<()>,
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Collector {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bodies = Bodies::default();
        let routes = Router::new().route("/v1/traces", post(receive)).with_state(Arc::clone(&bodies));
        let server = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { url, bodies, server }
    }

    /// Returns the bodies of all requests.
    pub fn bodies(&self) -> Vec<Bytes> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn requests(&self) -> Vec<ExportTraceServiceRequest> {
        let bodies = self.bodies().into_iter();
        bodies.map(|body| ExportTraceServiceRequest::decode(body).unwrap()).collect()
    }

    /// Returns the attributes of the sending processes: names and texts.
    pub fn resources(&self) -> Vec<(String, String)> {
        let resources = self.requests().into_iter().flat_map(|request| request.resource_spans);
        let attributes =
            resources.filter_map(|spans| spans.resource).flat_map(|resource| resource.attributes);
        attributes.map(|pair| (pair.key, text(pair.value.and_then(|value| value.value)))).collect()
    }

    /// Returns the received spans of a trace.
    pub fn spans(&self, trace_id: &str) -> Vec<Span> {
        let resources = self.requests().into_iter().flat_map(|request| request.resource_spans);
        let spans = resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans);
        spans.filter(|span| hex(&span.trace_id) == trace_id).collect()
    }

    /// Waits until the trace has spans with all these names.
    pub async fn has(&self, trace_id: &str, names: &[&str]) -> Vec<Span> {
        let mut polls = tokio::time::interval(Duration::from_millis(50));
        for _ in 0..1_200 {
            polls.tick().await;
            let spans = self.spans(trace_id);
            if names.iter().all(|name| spans.iter().any(|span| span.name == *name)) {
                return spans;
            }
        }
        let came: Vec<_> = self.spans(trace_id).into_iter().map(|span| span.name).collect();
        panic!("only {came:?} came within a minute");
    }
}

async fn receive(State(bodies): State<Bodies>, body: Bytes) {
    bodies.lock().unwrap_or_else(PoisonError::into_inner).push(body);
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the text of an attribute, or an empty one.
pub fn attribute(span: &Span, name: &str) -> String {
    let found = span.attributes.iter().find(|pair| pair.key == name);
    text(found.and_then(|pair| pair.value.clone()?.value))
}

fn text(value: Option<Value>) -> String {
    match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        _ => String::new(),
    }
}
