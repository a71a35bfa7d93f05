//! The recorder of a process: makes ids, and passes the spans that are retained to the sink.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::ids::CorrelationId;
use parking_lot::Mutex;
use quick_cache::sync::Cache;

use super::retention::{Retention, is_sampled};
use super::span::{Span, SpanId, SpanSink};

/// The number of traces that are left out at a time.
const MAX_LEFT_OUT: usize = 16_384;

pub(super) struct Recorder {
    sink: Arc<dyn SpanSink>,
    seed: u64,
    made: AtomicU64,
    /// Traces that are not sampled although their ids are: their callers have used up their samples.
    left_out: Cache<u128, ()>,
    retention: Mutex<Retention>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("made", &self.made).finish_non_exhaustive()
    }
}

impl Recorder {
    pub fn new(sink: Arc<dyn SpanSink>, seed: u64) -> Self {
        Self {
            sink,
            seed,
            made: AtomicU64::new(0),
            left_out: Cache::new(MAX_LEFT_OUT),
            retention: Mutex::default(),
        }
    }

    /// Returns the next number of a sequence that begins at random and has no short period
    /// (SplitMix64). Ids of spans must differ, but are no secrets.
    fn next(&self) -> u64 {
        let count = self.made.fetch_add(1, Ordering::Relaxed);
        let mut bits = self.seed.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub fn span_id(&self) -> SpanId {
        SpanId::new(self.next()).unwrap_or_else(|| SpanId::of(uuid::Uuid::nil()))
    }

    pub fn trace_id(&self) -> CorrelationId {
        CorrelationId(u128::from(self.next()) << 64 | u128::from(self.next().max(1)))
    }

    /// Treats a trace as one that is not sampled: its spans are sent only if it fails.
    pub fn leave_out(&self, trace_id: CorrelationId) {
        self.left_out.insert(trace_id.0, ());
    }

    /// Records spans of one trace. `lives_on` says that further spans of the trace may follow.
    pub fn record(&self, trace_id: CorrelationId, spans: Vec<Span>, lives_on: bool) {
        let retained = if is_sampled(trace_id) && self.left_out.get(&trace_id.0).is_none() {
            spans
        } else {
            self.retention.lock().decide(trace_id, spans, lives_on)
        };
        if !retained.is_empty() {
            self.sink.record(retained);
        }
    }
}
