//! Decides which spans are retained: all spans of one trace in a hundred, and those of traces with an
//! error.
//!
//! The one in a hundred is chosen by the trace id, so that all processes, and callers with the same
//! rule, choose the same traces. An error is known only at its end. The spans of trades are therefore
//! remembered for a while: if the trade fails later, its earlier spans are sent too.

use std::collections::{HashMap, VecDeque};

use domain::ids::CorrelationId;

use super::span::Span;

/// One trace in this many is retained without an error.
const ONE_IN: u64 = 100;
/// The bits of a trace id that are random by the W3C recommendation.
const RANDOM_BITS: u64 = (1 << 56) - 1;
/// The rule of OpenTelemetry's consistent sampling: traces with random bits from here on are sampled.
const THRESHOLD: u64 = RANDOM_BITS - RANDOM_BITS / ONE_IN;

/// The number of spans that are remembered: about 20 MB.
const MOST_SPANS: usize = 32_768;
/// The number of traces that are remembered.
const MOST_TRACES: usize = 16_384;
/// The number of spans that are remembered of one trace. A caller may use one trace for many trades.
const MOST_SPANS_OF_TRACE: usize = 256;

/// Returns whether all spans of a trace are retained.
pub const fn is_sampled(id: CorrelationId) -> bool {
    (id.0 as u64) & RANDOM_BITS >= THRESHOLD
}

/// The traces whose spans were not sent, or were sent because of an error.
#[derive(Debug, Default)]
pub(super) struct Retention {
    traces: HashMap<u128, Remembered>,
    /// In the order of their first span.
    order: VecDeque<u128>,
    spans: usize,
}

#[derive(Debug)]
enum Remembered {
    Undecided(Vec<Span>),
    Failed,
}

impl Retention {
    /// Returns the spans to send now that these have ended: all or none of them, and earlier ones if
    /// these contain the first error of their trace. `lives_on` says that further spans of the trace
    /// may follow.
    pub fn decide(&mut self, trace_id: CorrelationId, mut spans: Vec<Span>, lives_on: bool) -> Vec<Span> {
        let has_error = spans.iter().any(|span| span.error.is_some());
        match self.traces.get_mut(&trace_id.0) {
            Some(Remembered::Failed) => spans,
            Some(Remembered::Undecided(earlier)) if has_error => {
                self.spans -= earlier.len();
                let mut all = std::mem::take(earlier);
                all.append(&mut spans);
                self.traces.insert(trace_id.0, Remembered::Failed);
                all
            }
            Some(Remembered::Undecided(earlier)) => {
                spans.truncate(MOST_SPANS_OF_TRACE.saturating_sub(earlier.len()));
                self.spans += spans.len();
                earlier.append(&mut spans);
                self.forget_oldest();
                Vec::new()
            }
            None if has_error => {
                // Failing ticks of an outage must not push out trades.
                if lives_on {
                    self.remember(trace_id, Remembered::Failed, 0);
                }
                spans
            }
            None if lives_on => {
                spans.truncate(MOST_SPANS_OF_TRACE);
                let count = spans.len();
                self.remember(trace_id, Remembered::Undecided(spans), count);
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    fn remember(&mut self, trace_id: CorrelationId, trace: Remembered, spans: usize) {
        self.traces.insert(trace_id.0, trace);
        self.order.push_back(trace_id.0);
        self.spans += spans;
        self.forget_oldest();
    }

    fn forget_oldest(&mut self) {
        while self.spans > MOST_SPANS || self.order.len() > MOST_TRACES {
            let Some(oldest) = self.order.pop_front() else { return };
            if let Some(Remembered::Undecided(spans)) = self.traces.remove(&oldest) {
                self.spans -= spans.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::span::{Micros, SpanId, SpanKind};
    use super::*;

    fn span(trace: u128, error: Option<&'static str>) -> Span {
        Span {
            trace_id: CorrelationId(trace),
            id: SpanId::new(1).unwrap(),
            parent: None,
            is_parent_remote: false,
            link: None,
            name: "trade.sign".into(),
            kind: SpanKind::Internal,
            began_at: Micros(0),
            ended_at: Micros(1),
            attributes: Vec::new(),
            error: error.map(Into::into),
        }
    }

    fn decide(retention: &mut Retention, trace: u128, error: Option<&'static str>, lives_on: bool) -> usize {
        retention.decide(CorrelationId(trace), vec![span(trace, error)], lives_on).len()
    }

    #[test]
    fn one_trace_in_a_hundred_is_sampled_by_its_random_bits() {
        let step = RANDOM_BITS / 10_000;
        let sampled = (0..10_000u64).filter(|n| is_sampled(CorrelationId(u128::from(n * step)))).count();
        assert_eq!(sampled, 99, "without the last value of the range");
        assert!(is_sampled(CorrelationId(u128::MAX)) && !is_sampled(CorrelationId(1)));
        // The first eight bits of the lower half need not be random.
        assert!(!is_sampled(CorrelationId(0xff << 56)) && is_sampled(CorrelationId(0x00ff_ffff_ffff_ffff)));
    }

    #[test]
    fn an_error_sends_the_earlier_spans_of_its_trade_and_all_later_ones() {
        let mut retention = Retention::default();
        assert_eq!(decide(&mut retention, 1, None, true), 0);
        assert_eq!(decide(&mut retention, 2, None, true), 0);
        assert_eq!(decide(&mut retention, 1, Some("SLIPPAGE"), true), 2);
        assert_eq!(decide(&mut retention, 1, None, true), 1, "the webhook of the failure");
        assert_eq!(decide(&mut retention, 2, None, true), 0);
    }

    #[test]
    fn a_trace_that_is_over_is_not_remembered() {
        let mut retention = Retention::default();
        assert_eq!(decide(&mut retention, 1, None, false), 0);
        assert_eq!(decide(&mut retention, 1, Some("INTERNAL_ERROR"), false), 1);
        assert!(retention.traces.is_empty() && retention.order.is_empty());
    }

    #[test]
    fn the_oldest_traces_are_forgotten_first() {
        let mut retention = Retention::default();
        for trace in 0..=MOST_TRACES as u128 {
            decide(&mut retention, trace, None, true);
        }
        assert_eq!((retention.traces.len(), retention.spans), (MOST_TRACES, MOST_TRACES));
        assert_eq!(decide(&mut retention, 0, Some("X"), true), 1, "its earlier span is gone");
        assert_eq!(decide(&mut retention, MOST_TRACES as u128, Some("X"), true), 2);
    }

    #[test]
    fn a_trace_of_many_trades_is_bounded() {
        let mut retention = Retention::default();
        for _ in 0..2 * MOST_SPANS_OF_TRACE {
            decide(&mut retention, 1, None, true);
        }
        assert_eq!(retention.spans, MOST_SPANS_OF_TRACE);
        assert_eq!(decide(&mut retention, 1, Some("X"), true), MOST_SPANS_OF_TRACE + 1);
        assert_eq!(retention.spans, 0);
    }
}
