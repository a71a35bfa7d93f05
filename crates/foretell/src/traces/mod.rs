//! Sends spans to a collector, by OTLP over HTTP.
//!
//! Spans wait in a bounded queue, which one task empties. Requests and workers only append to it, so a
//! collector that is slow or gone costs spans, which are counted, and nothing else.

mod convert;
mod endpoint;
mod queue;

use std::sync::Arc;
use std::time::Duration;

use app::Ctx;
use opentelemetry::KeyValue;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanExporter as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use endpoint::{EndpointError, OtlpEndpoint};

/// The time limits of one export and of its connection.
const EXPORT: Duration = Duration::from_secs(5);
const CONNECT: Duration = Duration::from_secs(2);
/// The time that a stop waits for the last spans.
const LAST_SPANS: Duration = Duration::from_secs(3);

/// The export cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    #[error("otlp-endpoint: the HTTP client cannot be built: {0}")]
    Client(#[from] reqwest::Error),
    #[error("otlp-endpoint: the exporter cannot be built: {0}")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
}

/// The running export.
#[derive(Debug)]
pub struct TraceExport {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl TraceExport {
    /// Begins to record the traces of `ctx` and to send them.
    ///
    /// # Errors
    /// If the client cannot be built. An unreachable collector is no error.
    pub fn start(endpoint: &OtlpEndpoint, environment: &'static str, ctx: &Ctx) -> Result<Self, TracesError> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .timeout(EXPORT)
            .build()?;
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_endpoint(endpoint.as_str())
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(EXPORT)
            .with_http_client(client)
            .build()?;
        exporter.set_resource(&resource(environment, ctx));
        let (queue, sending) =
            queue::bounded(queue::MOST_WAITING, exporter, Arc::clone(&ctx.process.metrics));
        let stop = CancellationToken::new();
        let task = tokio::spawn(sending.run(stop.clone()));
        ctx.trace_to(Arc::new(queue));
        tracing::info!(endpoint = endpoint.as_str(), "sending traces");
        Ok(Self { stop, task })
    }

    /// Sends what is queued, within a bound.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if tokio::time::timeout(LAST_SPANS, &mut self.task).await.is_err() {
            self.task.abort();
            tracing::warn!("the collector of traces did not take the last spans in time: they are lost");
        }
    }
}

/// Describes this process. `OTEL_RESOURCE_ATTRIBUTES` adds to it.
fn resource(environment: &'static str, ctx: &Ctx) -> Resource {
    Resource::builder()
        .with_service_name("foretell")
        .with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", ctx.uuid().to_string()),
            KeyValue::new("deployment.environment.name", environment),
        ])
        .build()
}
