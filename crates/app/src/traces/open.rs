//! A trace that this process works on: a request that is being answered, or a worker's running tick.
//!
//! The task that does the work knows its trace, so calls of the database and of nodes do not pass it.
//! The spans are collected until the end, because only then is known whether they are retained, and
//! for a request without a caller's trace, to which trade it belongs.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::Timestamp;
use domain::ids::CorrelationId;
use futures::FutureExt;
use futures::future::Either;
use parking_lot::Mutex;
use tokio::task::futures::TaskLocalFuture;
use tokio::task_local;

use super::recorder::Recorder;
use super::retention::is_sampled;
use super::span::{Micros, Span, SpanId, SpanKind, TraceParent, Value};

task_local! {
    static CURRENT: OpenTrace;
}

/// The number of spans that are collected. Further ones are only counted.
const MOST_SPANS: usize = 128;

/// A future that knows its trace, if it has one.
pub type Within<F> = Either<TaskLocalFuture<OpenTrace, F>, F>;

/// Runs `work` as a part of `trace`. Without one, `work` is returned as it is.
pub fn within<F: Future>(trace: Option<OpenTrace>, work: F) -> Within<F> {
    match trace {
        Some(trace) => CURRENT.scope(trace, work).left_future(),
        None => work.right_future(),
    }
}

/// Returns the trace of the running task.
pub(super) fn current() -> Option<OpenTrace> {
    CURRENT.try_with(OpenTrace::clone).ok()
}

/// A trace with its first span still open.
#[derive(Debug, Clone)]
pub struct OpenTrace(Arc<Open>);

#[derive(Debug)]
struct Open {
    recorder: Arc<Recorder>,
    began_at: Micros,
    began: Instant,
    root: SpanId,
    /// The caller's span, which the request names.
    caller: Option<TraceParent>,
    collected: Mutex<Collected>,
}

#[derive(Debug)]
struct Collected {
    trace_id: CorrelationId,
    /// The caller's span, once the caller has joined.
    parent: Option<SpanId>,
    /// True if the trace is the caller's or a trade's, so that it does not change any more.
    is_settled: bool,
    /// True if a trade was created, whose spans follow later.
    lives_on: bool,
    spans: Vec<Span>,
    left_out: i64,
    /// True once the first span has ended. Work that goes on then records its spans on its own.
    is_over: bool,
}

/// The first span of a trace, as far as its end decides about it.
pub(super) struct Root {
    pub name: Cow<'static, str>,
    pub kind: SpanKind,
    pub attributes: Vec<(&'static str, Value)>,
    pub error: Option<Cow<'static, str>>,
}

impl OpenTrace {
    pub(super) fn begin(recorder: &Arc<Recorder>, caller: Option<TraceParent>, at: Timestamp) -> Self {
        let collected = Collected {
            // Ours until the caller is known: whether a trace is sampled depends on its id.
            trace_id: recorder.trace_id(),
            parent: None,
            is_settled: false,
            lives_on: false,
            spans: Vec::new(),
            left_out: 0,
            is_over: false,
        };
        Self(Arc::new(Open {
            root: recorder.span_id(),
            recorder: Arc::clone(recorder),
            began_at: at.into(),
            began: Instant::now(),
            caller,
            collected: Mutex::new(collected),
        }))
    }

    /// Continues the caller's trace, if the request names one. `may_sample` is asked if its id is one
    /// of those that are sampled. Returns whether the trace is the caller's now.
    pub(super) fn join_caller(&self, may_sample: impl FnOnce() -> bool) -> bool {
        let Some(caller) = self.0.caller else { return false };
        if is_sampled(caller.trace_id) && !may_sample() {
            // The caller's trade has the same id. Its later spans must not be sampled either.
            self.0.recorder.leave_out(caller.trace_id);
            return false;
        }
        let mut collected = self.0.collected.lock();
        collected.trace_id = caller.trace_id;
        collected.parent = Some(caller.span_id);
        collected.is_settled = true;
        true
    }

    /// Returns the time of `instant`. All spans of an open trace are timed by one clock.
    fn time_of(&self, instant: Instant) -> Micros {
        let since = micros(instant.saturating_duration_since(self.0.began));
        Micros(self.0.began_at.0.saturating_add(since))
    }

    /// Records a part of the work that has just ended.
    pub(super) fn child(
        &self,
        name: &'static str,
        kind: SpanKind,
        began: Instant,
        attributes: Vec<(&'static str, Value)>,
        error: Option<&'static str>,
    ) {
        let mut collected = self.0.collected.lock();
        let span = Span {
            trace_id: collected.trace_id,
            id: self.0.recorder.span_id(),
            parent: Some(self.0.root),
            is_parent_remote: false,
            link: None,
            name: name.into(),
            kind,
            began_at: self.time_of(began),
            ended_at: self.time_of(Instant::now()),
            attributes,
            error: error.map(Into::into),
        };
        self.collect(&mut collected, span);
    }

    /// Records the span of a new trade, under which the spans of its later life are. A request without
    /// a caller's trace joins the trace of its first trade.
    pub(super) fn creation(
        &self,
        trade: TraceParent,
        name: &'static str,
        began: Instant,
        attributes: Vec<(&'static str, Value)>,
    ) {
        let mut collected = self.0.collected.lock();
        if !collected.is_settled && !collected.is_over {
            collected.is_settled = true;
            collected.trace_id = trade.trace_id;
        }
        collected.lives_on = true;
        let is_same = collected.trace_id == trade.trace_id;
        let request = TraceParent { trace_id: collected.trace_id, span_id: self.0.root };
        let span = Span {
            trace_id: trade.trace_id,
            id: trade.span_id,
            parent: is_same.then_some(self.0.root),
            is_parent_remote: false,
            // Further trades of a request without a trace have traces of their own.
            link: (!is_same).then_some(request),
            name: name.into(),
            kind: SpanKind::Internal,
            began_at: self.time_of(began),
            ended_at: self.time_of(Instant::now()),
            attributes,
            error: None,
        };
        if is_same {
            self.collect(&mut collected, span);
        } else {
            drop(collected);
            self.0.recorder.record(trade.trace_id, vec![span], true);
        }
    }

    fn collect(&self, collected: &mut Collected, span: Span) {
        if collected.is_over {
            self.0.recorder.record(span.trace_id, vec![span], collected.lives_on);
        } else if collected.spans.len() < MOST_SPANS {
            collected.spans.push(span);
        } else {
            collected.left_out += 1;
        }
    }

    /// Ends the first span, and records all spans. Its attributes are built by `root`, which knows
    /// the result.
    pub(super) fn end(&self, root: impl FnOnce() -> Root) {
        let ended_at = self.time_of(Instant::now());
        let Root { name, kind, mut attributes, error } = root();
        let (trace_id, parent, mut spans, lives_on, left_out) = {
            let mut collected = self.0.collected.lock();
            collected.is_over = true;
            let spans = std::mem::take(&mut collected.spans);
            (collected.trace_id, collected.parent, spans, collected.lives_on, collected.left_out)
        };
        // Spans before the caller joined or a trade was created were collected under another id.
        spans.iter_mut().for_each(|span| span.trace_id = trace_id);
        if left_out > 0 {
            attributes.push(("foretell.spans_left_out", left_out.into()));
        }
        // A stranger's trace is only linked.
        let link = self.0.caller.filter(|_| parent.is_none());
        let (id, began_at) = (self.0.root, self.0.began_at);
        let is_parent_remote = parent.is_some();
        let root = Span {
            trace_id,
            id,
            parent,
            is_parent_remote,
            link,
            name,
            kind,
            began_at,
            ended_at,
            attributes,
            error,
        };
        spans.push(root);
        self.0.recorder.record(trace_id, spans, lives_on);
    }
}

pub(super) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
