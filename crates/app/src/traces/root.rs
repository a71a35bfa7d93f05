//! The first spans of traces: those of requests and of workers' ticks.

use domain::ErrorCode;

use super::open::{OpenTrace, Root};
use super::span::{SpanKind, Value};
use super::{STATUS_CODE, fault};
use crate::metrics::RouteLabel;

/// The end of a request whose client did not wait for the answer. It is no error of the service.
const GONE: &str = "client_gone";
/// The error of a request whose handler panicked.
const PANIC: &str = "panic";

/// The trace of a request that is being answered.
#[derive(Debug)]
pub struct RequestTrace {
    /// `None` once the request was answered.
    trace: Option<OpenTrace>,
}

/// An answered request.
#[derive(Debug)]
pub struct TracedAnswer<'a> {
    pub route: RouteLabel,
    pub method: &'a str,
    pub status: u16,
    pub code: Option<ErrorCode>,
    pub request_id: String,
}

impl RequestTrace {
    pub(super) fn new(trace: OpenTrace) -> Self {
        Self { trace: Some(trace) }
    }

    /// Returns the trace, for the work that answers the request.
    pub fn open(&self) -> Option<OpenTrace> {
        self.trace.clone()
    }

    /// Ends the trace's first span.
    pub fn answered(mut self, answer: TracedAnswer<'_>) {
        let Some(trace) = self.trace.take() else { return };
        trace.end(|| {
            let method = RouteLabel::known_method(answer.method);
            let route = answer.route.template();
            let mut attributes: Vec<(&'static str, Value)> = vec![
                ("http.request.method", method.into()),
                (STATUS_CODE, i64::from(answer.status).into()),
                ("request.id", answer.request_id.into()),
            ];
            attributes.extend(route.map(|route| ("http.route", route.into())));
            attributes.extend(answer.code.map(|code| ("error.code", code.as_str().into())));
            Root {
                name: route.map_or(method.into(), |route| format!("{method} {route}").into()),
                kind: SpanKind::Server,
                attributes,
                error: fault(answer.status, answer.code).map(Into::into),
            }
        });
    }
}

impl Drop for RequestTrace {
    fn drop(&mut self) {
        let Some(trace) = self.trace.take() else { return };
        let has_panicked = std::thread::panicking();
        trace.end(|| Root {
            name: "request".into(),
            kind: SpanKind::Server,
            attributes: if has_panicked { Vec::new() } else { vec![("request.end", GONE.into())] },
            error: has_panicked.then(|| PANIC.into()),
        });
    }
}

/// The trace of a worker's tick.
#[derive(Debug)]
pub struct TickTrace(OpenTrace);

impl TickTrace {
    pub(super) const fn new(trace: OpenTrace) -> Self {
        Self(trace)
    }

    /// Returns the trace, for the work of the tick.
    pub fn open(&self) -> OpenTrace {
        self.0.clone()
    }

    /// Ends the trace's first span.
    pub fn ended(self, worker: &str, error: Option<ErrorCode>) {
        self.0.end(|| Root {
            name: "worker.tick".into(),
            kind: SpanKind::Internal,
            attributes: vec![("worker", worker.to_owned().into())],
            error: error.map(|code| code.as_str().into()),
        });
    }
}
