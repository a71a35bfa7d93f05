//! The queue of spans and the task that empties it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use app::metrics::{Metrics, SpanOutcome};
use app::traces::{Span, SpanSink};
use opentelemetry_sdk::trace::SpanExporter;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::convert::to_otlp;

/// The number of spans that may wait: about 5 MB.
pub const MOST_WAITING: usize = 8_192;
/// The number of spans of one export.
const MOST_AT_ONCE: usize = 512;
/// The time in which an export gathers spans.
const GATHER: Duration = Duration::from_secs(1);

/// The end of the queue that spans are appended to.
pub struct SpanQueue {
    spans: mpsc::Sender<Span>,
    metrics: Arc<Metrics>,
    left_out: Arc<AtomicU64>,
}

/// The end of the queue that sends spans.
pub struct Sending<E> {
    spans: mpsc::Receiver<Span>,
    metrics: Arc<Metrics>,
    /// The number of spans without a place in the queue since the last look.
    left_out: Arc<AtomicU64>,
    exporter: E,
}

/// Creates a queue of at most `capacity` spans.
pub fn bounded<E: SpanExporter>(
    capacity: usize,
    exporter: E,
    metrics: Arc<Metrics>,
) -> (SpanQueue, Sending<E>) {
    let (sender, receiver) = mpsc::channel(capacity);
    let left_out = Arc::<AtomicU64>::default();
    let queue = SpanQueue { spans: sender, metrics: Arc::clone(&metrics), left_out: Arc::clone(&left_out) };
    (queue, Sending { spans: receiver, metrics, left_out, exporter })
}

impl SpanSink for SpanQueue {
    fn record(&self, spans: Vec<Span>) {
        let refused = spans.into_iter().filter_map(|span| self.spans.try_send(span).err()).count() as u64;
        if refused > 0 {
            self.metrics.trace_spans(SpanOutcome::QueueFull, refused);
            // Logged by the task that sends, so that a flood of spans is no flood of lines.
            self.left_out.fetch_add(refused, Ordering::Relaxed);
        }
    }
}

impl<E: SpanExporter> Sending<E> {
    /// Sends spans until `stop`, and then those that are queued.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut spans = Vec::with_capacity(MOST_AT_ONCE);
        loop {
            tokio::select! {
                received = self.spans.recv_many(&mut spans, MOST_AT_ONCE) => {
                    if received == 0 {
                        return;
                    }
                }
                () = stop.cancelled() => break,
            }
            tokio::select! {
                () = self.gather(&mut spans) => {}
                () = stop.cancelled() => {}
            }
            self.send(&mut spans).await;
        }
        self.spans.close();
        while self.spans.recv_many(&mut spans, MOST_AT_ONCE).await > 0 {
            self.send(&mut spans).await;
        }
    }

    /// Receives further spans until there are enough for an export or its time is over.
    async fn gather(&mut self, spans: &mut Vec<Span>) {
        let gathered = async {
            loop {
                let room = MOST_AT_ONCE.saturating_sub(spans.len());
                if room == 0 || self.spans.recv_many(spans, room).await == 0 {
                    return;
                }
            }
        };
        drop(timeout(GATHER, gathered).await);
    }

    /// Sends these spans once. The exporter itself repeats what the collector asks it to repeat.
    async fn send(&self, spans: &mut Vec<Span>) {
        let count = spans.len() as u64;
        let batch = spans.drain(..).map(to_otlp).collect();
        match self.exporter.export(batch).await {
            Ok(()) => self.metrics.trace_spans(SpanOutcome::Sent, count),
            Err(error) => {
                self.metrics.trace_spans(SpanOutcome::Failed, count);
                tracing::warn!(%error, spans = count, "the collector of traces did not take spans: they are lost");
            }
        }
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        if left_out > 0 {
            let cause = "the queue is full";
            tracing::warn!(cause, spans = left_out, "spans were not sent to the collector of traces");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::traces::{Micros, SpanId, SpanKind};
    use domain::ids::CorrelationId;
    use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
    use opentelemetry_sdk::trace::SpanData;
    use parking_lot::Mutex;
    use tokio::sync::Notify;

    /// A collector that takes, refuses or ignores spans.
    #[derive(Debug, Clone, Default)]
    struct Collector {
        came: Arc<Mutex<Vec<SpanData>>>,
        refuses: bool,
        hangs: bool,
        began: Arc<Notify>,
    }

    impl SpanExporter for Collector {
        async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
            if self.hangs {
                self.began.notify_one();
                std::future::pending::<()>().await;
            }
            if self.refuses {
                return Err(OTelSdkError::InternalFailure("refused".to_owned()));
            }
            self.came.lock().extend(batch);
            Ok(())
        }
    }

    fn spans(count: u64) -> Vec<Span> {
        let span = |number| Span {
            trace_id: CorrelationId(1),
            id: SpanId::new(number).unwrap(),
            parent: None,
            is_parent_remote: false,
            link: None,
            name: "GET /v1/markets".into(),
            kind: SpanKind::Server,
            began_at: Micros(1),
            ended_at: Micros(2),
            attributes: Vec::new(),
            error: None,
        };
        (1..=count).map(span).collect()
    }

    fn counted(metrics: &Metrics, outcome: &str, count: u64) -> bool {
        metrics.text().contains(&format!("foretell_trace_spans_total{{outcome=\"{outcome}\"}} {count}\n"))
    }

    #[tokio::test]
    async fn what_is_queued_at_the_stop_is_sent() {
        let (collector, metrics) = (Collector::default(), Arc::<Metrics>::default());
        let (queue, sending) = bounded(2_000, collector.clone(), Arc::clone(&metrics));
        queue.record(spans(1_200));
        let stop = CancellationToken::new();
        stop.cancel();
        sending.run(stop).await;
        assert_eq!(collector.came.lock().len(), 1_200);
        assert!(counted(&metrics, "sent", 1_200), "{}", metrics.text());
    }

    #[tokio::test]
    async fn spans_that_the_collector_refuses_are_counted() {
        let metrics = Arc::<Metrics>::default();
        let refusing = Collector { refuses: true, ..Collector::default() };
        let (queue, sending) = bounded(8, refusing, Arc::clone(&metrics));
        queue.record(spans(3));
        let stop = CancellationToken::new();
        stop.cancel();
        sending.run(stop).await;
        assert!(counted(&metrics, "failed", 3), "{}", metrics.text());
    }

    #[tokio::test(start_paused = true)]
    async fn a_collector_that_never_answers_costs_spans_and_no_time() {
        let metrics = Arc::<Metrics>::default();
        let hanging = Collector { hangs: true, ..Collector::default() };
        let (queue, sending) = bounded(4, hanging.clone(), Arc::clone(&metrics));
        let task = tokio::spawn(sending.run(CancellationToken::new()));
        queue.record(spans(1));
        // The paused clock moves on while all tasks wait, so the time to gather spans is over at once.
        hanging.began.notified().await;
        queue.record(spans(10));
        assert!(counted(&metrics, "queue_full", 6), "{}", metrics.text());
        task.abort();
    }
}
