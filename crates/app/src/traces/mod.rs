//! The traces of this process: spans of requests, of the lives of trades, of webhook attempts and of
//! workers' ticks. Everything that is traced has its name and its attributes here; the rest of the
//! code only calls the recording methods. Without a sink, nothing is recorded.
//!
//! Attributes never contain keys, headers, bodies, URLs or texts of errors.

mod open;
mod recorder;
mod retention;
mod root;
mod span;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use domain::ids::{BatchId, CorrelationId, EventId, KeyId, TradeId};
use domain::trade::Status;
use domain::{ErrorCode, Timestamp};
use store::TradeMove;

pub use open::{OpenTrace, Within, within};
pub use retention::is_sampled;
pub use root::{RequestTrace, TickTrace, TracedAnswer};
pub use span::{Micros, Span, SpanId, SpanKind, SpanSink, TraceParent, Value};

use open::{current, micros};
use recorder::Recorder;

/// The code of a request to a node without a usable answer.
const NO_ANSWER: &str = "NO_USABLE_ANSWER";

/// The traces, once there is a sink for them.
#[derive(Debug, Default)]
pub struct Traces(OnceLock<Arc<Recorder>>);

/// A new trade and the request that created it.
#[derive(Debug, Clone, Copy)]
pub struct CreatedTrade {
    pub trade_id: TradeId,
    pub correlation_id: CorrelationId,
    pub lane: u16,
    pub created_at: Timestamp,
    /// The time at which its creation began.
    pub began: Instant,
}

/// An attempt to deliver an event.
#[derive(Debug, Clone, Copy)]
pub struct TracedAttempt<'a> {
    pub correlation_id: CorrelationId,
    /// The trade that the event reports, if any.
    pub trade_id: Option<TradeId>,
    pub key_id: KeyId,
    pub event_id: EventId,
    pub event: &'static str,
    /// The number of this attempt, from 1.
    pub number: u32,
    pub at: Timestamp,
    pub duration_ms: u32,
    pub status: Option<u16>,
    /// `None` if the event was delivered.
    pub failure: Option<&'a str>,
}

impl Traces {
    /// Begins to record. `seed` makes the ids of spans differ from those of other processes.
    pub fn start(&self, sink: Arc<dyn SpanSink>, seed: [u8; 8]) {
        // The first sink wins.
        drop(self.0.set(Arc::new(Recorder::new(sink, u64::from_be_bytes(seed)))));
    }

    /// Returns whether spans are recorded.
    pub fn is_on(&self) -> bool {
        self.0.get().is_some()
    }

    /// Returns the trace of the running task, for work that it gives to another one.
    pub fn current(&self) -> Option<OpenTrace> {
        self.0.get().and_then(|_| current())
    }

    /// Begins the trace of a request. If it names a trace of its `caller`, it continues that one once
    /// the caller has [joined](Self::join_caller).
    pub fn request(&self, caller: Option<TraceParent>, at: Timestamp) -> Option<RequestTrace> {
        self.0.get().map(|recorder| RequestTrace::new(OpenTrace::begin(recorder, caller, at)))
    }

    /// Continues the trace that the running request names, now that its caller is authenticated.
    /// `may_sample` takes one of the caller's samples; it is asked only if the trace's id would have
    /// it sampled. Returns whether the request's trace is the caller's, which nobody minds if nothing
    /// is recorded.
    pub fn join_caller(&self, may_sample: impl FnOnce() -> bool) -> bool {
        self.0.get().is_none() || current().is_some_and(|trace| trace.join_caller(may_sample))
    }

    /// Begins the trace of a worker's tick.
    pub fn tick(&self, at: Timestamp) -> Option<TickTrace> {
        self.0.get().map(|recorder| TickTrace::new(OpenTrace::begin(recorder, None, at)))
    }

    /// Records a unit of work in the database.
    pub fn unit(&self, unit: &'static str, took: Duration) {
        if let Some(trace) = self.current() {
            trace.child("store", SpanKind::Client, ago(took), vec![("store.unit", unit.into())], None);
        }
    }

    /// Records a request to a node.
    pub fn rpc(&self, method: &'static str, took: Duration, is_usable: bool) {
        if let Some(trace) = self.current() {
            let error = (!is_usable).then_some(NO_ANSWER);
            let attributes = vec![("rpc.system", "jsonrpc".into()), ("rpc.method", method.into())];
            trace.child("rpc", SpanKind::Client, ago(took), attributes, error);
        }
    }

    /// Records that a batch was signed, stored and sent, in the executor's tick.
    pub fn batch(&self, batch_id: BatchId, lane: u16, trades: u64, began: Instant) {
        if let Some(trace) = self.current() {
            let attributes = vec![
                ("batch.id", batch_id.to_string().into()),
                ("lane", i64::from(lane).into()),
                ("batch.trades", i64::try_from(trades).unwrap_or(i64::MAX).into()),
            ];
            trace.child("batch.send", SpanKind::Internal, began, attributes, None);
        }
    }

    /// Records the creation of a trade. All later spans of the trade are below this one.
    pub fn trade_created(&self, created: &CreatedTrade) {
        let Some(recorder) = self.0.get() else { return };
        let CreatedTrade { trade_id, correlation_id, lane, created_at, began } = *created;
        let id = SpanId::of(trade_id.0);
        let attributes = vec![("trade.id", trade_id.to_string().into()), ("lane", i64::from(lane).into())];
        if let Some(trace) = current() {
            let trade = TraceParent { trace_id: correlation_id, span_id: id };
            return trace.creation(trade, "trade.create", began, attributes);
        }
        let began_at = Micros::from(created_at);
        let ended_at = Micros(began_at.0.saturating_add(micros(began.elapsed())));
        let span = Life { id, parent: None, correlation_id, name: "trade.create", began_at, ended_at };
        recorder.record(correlation_id, vec![span.with(SpanKind::Internal, attributes, None)], true);
    }

    /// Records the part of a trade's life that its new state ends.
    pub fn trade_moved(&self, moved: &TradeMove) {
        let Some(recorder) = self.0.get() else { return };
        let since_creation = if moved.was_held { moved.since } else { moved.created_at };
        let (name, began_at) = match moved.to {
            // Held until the client's confirmation.
            Status::Pending if moved.at > moved.created_at => ("trade.hold", moved.created_at),
            // From the queue to the signed batch.
            Status::Executing => ("trade.sign", since_creation),
            // From the signed batch to the final block.
            Status::Completed => ("trade.settle", moved.since),
            Status::Failed if moved.batch_id.is_some() => ("trade.settle", moved.since),
            Status::Failed if moved.was_held && moved.since == moved.created_at => {
                ("trade.hold", moved.created_at)
            }
            Status::Rejected | Status::Failed => ("trade.check", since_creation),
            _ => return,
        };
        let id = recorder.span_id();
        let (began_at, ended_at) = (began_at.min(moved.at).into(), moved.at.into());
        let correlation_id = moved.correlation_id;
        let parent = Some(SpanId::of(moved.trade_id.0));
        let mut attributes =
            vec![("trade.id", moved.trade_id.to_string().into()), ("trade.status", moved.to.as_str().into())];
        attributes.extend(moved.batch_id.map(|id| ("batch.id", id.to_string().into())));
        let span = Life { id, parent, correlation_id, name, began_at, ended_at };
        let span = span.with(SpanKind::Internal, attributes, moved.error.map(str::to_owned));
        recorder.record(correlation_id, vec![span], true);
    }

    /// Records an attempt to deliver an event.
    pub fn webhook_attempt(&self, attempt: &TracedAttempt<'_>) {
        let Some(recorder) = self.0.get() else { return };
        let correlation_id = attempt.correlation_id;
        let began_at = Micros::from(attempt.at);
        let ended_at = Micros(began_at.0.saturating_add(i64::from(attempt.duration_ms) * 1_000));
        let parent = attempt.trade_id.map(|id| SpanId::of(id.0));
        let mut attributes = vec![
            ("event.id", attempt.event_id.to_string().into()),
            ("event.type", attempt.event.into()),
            ("key.id", attempt.key_id.to_string().into()),
            ("webhook.attempt", i64::from(attempt.number).into()),
        ];
        attributes.extend(attempt.trade_id.map(|id| ("trade.id", id.to_string().into())));
        attributes.extend(attempt.status.map(|status| (STATUS_CODE, i64::from(status).into())));
        let id = recorder.span_id();
        let span = Life { id, parent, correlation_id, name: "webhook.attempt", began_at, ended_at };
        let span = span.with(SpanKind::Client, attributes, attempt.failure.map(str::to_owned));
        recorder.record(correlation_id, vec![span], true);
    }
}

const STATUS_CODE: &str = "http.response.status_code";

/// A part of the life of a trade, which no task of this process has open.
struct Life {
    id: SpanId,
    parent: Option<SpanId>,
    correlation_id: CorrelationId,
    name: &'static str,
    began_at: Micros,
    ended_at: Micros,
}

impl Life {
    fn with(self, kind: SpanKind, attributes: Vec<(&'static str, Value)>, error: Option<String>) -> Span {
        Span {
            trace_id: self.correlation_id,
            id: self.id,
            parent: self.parent,
            // The process that recorded the parent may be another one, but it is the same service.
            is_parent_remote: false,
            link: None,
            name: self.name.into(),
            kind,
            began_at: self.began_at,
            ended_at: self.ended_at,
            attributes,
            error: error.map(Into::into),
        }
    }
}

/// Returns the instant at which something began that has just ended.
fn ago(took: Duration) -> Instant {
    let now = Instant::now();
    now.checked_sub(took).unwrap_or(now)
}

/// The code of a request's error, if it counts as an error of the service.
fn fault(status: u16, code: Option<ErrorCode>) -> Option<&'static str> {
    (status >= 500).then(|| code.map_or("INTERNAL_ERROR", ErrorCode::as_str))
}
