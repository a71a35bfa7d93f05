use super::*;
use crate::metrics::RouteLabel;
use futures::FutureExt;
use parking_lot::Mutex;
use uuid::Uuid;

/// A trace that is retained, and one that is not.
const SAMPLED: CorrelationId = CorrelationId(u128::MAX);
const OTHER: CorrelationId = CorrelationId(0x7000_8000_0000_0000_0002);
const NOW: Timestamp = Timestamp::from_ms(1_777_464_000_000);

#[derive(Default)]
struct Sink(Mutex<Vec<Span>>);

impl SpanSink for Sink {
    fn record(&self, spans: Vec<Span>) {
        self.0.lock().extend(spans);
    }
}

fn recording() -> (Traces, Arc<Sink>) {
    let (traces, sink) = (Traces::default(), Arc::<Sink>::default());
    traces.start(Arc::<Sink>::clone(&sink), [7; 8]);
    (traces, sink)
}

fn caller(trace_id: CorrelationId) -> TraceParent {
    TraceParent { trace_id, span_id: SpanId::new(0xca11).unwrap() }
}

fn answer(status: u16, code: Option<ErrorCode>) -> TracedAnswer<'static> {
    let route = RouteLabel::of("/v1/trades");
    TracedAnswer { route, method: "POST", status, code, request_id: "req_1".to_owned() }
}

fn created(trade_id: u128, correlation_id: CorrelationId) -> CreatedTrade {
    let trade_id = TradeId(Uuid::from_u128(trade_id));
    CreatedTrade { trade_id, correlation_id, lane: 0, created_at: NOW, began: Instant::now() }
}

/// Begins the trace of a request whose caller, who names this trace, is authenticated.
fn joined(traces: &Traces, trace_id: CorrelationId) -> RequestTrace {
    let request = traces.request(Some(caller(trace_id)), NOW).unwrap();
    let join = within(request.open(), async { traces.join_caller(|| true) });
    assert_eq!(join.now_or_never(), Some(true));
    request
}

fn names(sink: &Sink) -> Vec<String> {
    sink.0.lock().iter().map(|span| span.name.to_string()).collect()
}

#[test]
fn without_a_sink_nothing_is_recorded() {
    let traces = Traces::default();
    assert!(traces.request(Some(caller(SAMPLED)), NOW).is_none() && traces.tick(NOW).is_none());
    traces.trade_created(&created(1, SAMPLED));
    assert!(!traces.is_on() && traces.current().is_none());
}

#[tokio::test]
async fn the_work_of_a_request_is_below_its_span_and_the_request_below_the_callers() {
    let (traces, sink) = recording();
    let request = joined(&traces, SAMPLED);
    within(request.open(), async {
        traces.unit("app::markets", Duration::from_micros(5));
        // Work that is given to another task.
        let given = within(traces.current(), async { current().is_some() });
        assert!(tokio::spawn(given).await.unwrap());
        assert!(!tokio::spawn(async { current().is_some() }).await.unwrap());
    })
    .await;
    request.answered(answer(200, None));
    let spans = sink.0.lock();
    let [unit, root] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!((unit.name.as_ref(), root.name.as_ref()), ("store", "POST /v1/trades"));
    assert_eq!((unit.parent, root.parent), (Some(root.id), Some(caller(SAMPLED).span_id)));
    assert!(spans.iter().all(|span| span.trace_id == SAMPLED && span.began_at <= span.ended_at));
    assert!(root.is_parent_remote && !unit.is_parent_remote && root.error.is_none());
}

#[test]
fn a_stranger_does_not_choose_to_be_sampled() {
    let (traces, sink) = recording();
    // Ids of our own would be sampled once in a hundred times.
    for _ in 0..1_000 {
        traces.request(Some(caller(SAMPLED)), NOW).unwrap().answered(answer(401, None));
    }
    let spans = sink.0.lock();
    assert!(spans.len() < 50, "{} of 1,000 requests were sampled", spans.len());
    let link = caller(SAMPLED);
    assert!(spans.iter().all(|span| span.trace_id != SAMPLED && span.parent.is_none()));
    assert!(spans.iter().all(|span| span.link == Some(link)), "the caller's trace can still be found");
}

#[tokio::test]
async fn a_caller_without_samples_left_is_sampled_like_everybody() {
    let (traces, sink) = recording();
    let request = traces.request(Some(caller(SAMPLED)), NOW).unwrap();
    within(request.open(), async {
        assert!(!traces.join_caller(|| false));
        traces.trade_created(&created(SAMPLED.0, SAMPLED));
    })
    .await;
    request.answered(answer(201, None));
    traces.trade_moved(&TradeMove { correlation_id: SAMPLED, ..moved(Status::Executing, 40, 50, None) });
    assert_eq!(names(&sink), [""; 0]);
    // An error is sent, with what came before it.
    let failure = moved(Status::Failed, 50, 90, Some("SLIPPAGE_EXCEEDED"));
    traces.trade_moved(&TradeMove { correlation_id: SAMPLED, ..failure });
    assert_eq!(names(&sink), ["trade.create", "POST /v1/trades", "trade.sign", "trade.settle"]);
}

#[test]
fn a_trace_that_is_not_sampled_costs_no_sample() {
    let (traces, _) = recording();
    let request = traces.request(Some(caller(OTHER)), NOW).unwrap();
    let join = within(request.open(), async { traces.join_caller(|| panic!("no sample is needed")) });
    assert_eq!(join.now_or_never(), Some(true));
}

#[test]
fn only_faults_of_the_service_are_errors() {
    let (traces, sink) = recording();
    for (status, code) in
        [(200, None), (404, Some(ErrorCode::ResourceNotFound)), (503, Some(ErrorCode::DependencyUnavailable))]
    {
        joined(&traces, OTHER).answered(answer(status, code));
    }
    let spans = sink.0.lock();
    let [span] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!(span.error.as_deref(), Some(ErrorCode::DependencyUnavailable.as_str()));
}

#[tokio::test]
async fn a_request_without_a_trace_joins_that_of_its_first_trade() {
    let (traces, sink) = recording();
    let request = traces.request(None, NOW).unwrap();
    within(request.open(), async {
        traces.unit("app::keys", Duration::ZERO);
        traces.trade_created(&created(SAMPLED.0, SAMPLED));
        traces.trade_created(&created(SAMPLED.0 - 1, CorrelationId(SAMPLED.0 - 1)));
    })
    .await;
    request.answered(answer(201, None));
    let spans = sink.0.lock();
    let root = spans.iter().find(|span| span.name == "POST /v1/trades").unwrap();
    assert_eq!((root.trace_id, root.parent), (SAMPLED, None));
    let of_trades: Vec<_> = spans.iter().filter(|span| span.name == "trade.create").collect();
    let [second, first] = of_trades.as_slice() else { panic!("{spans:?}") };
    assert_eq!((first.trace_id, first.parent, first.link), (SAMPLED, Some(root.id), None));
    let link = TraceParent { trace_id: SAMPLED, span_id: root.id };
    assert_eq!((second.parent, second.link), (None, Some(link)), "a trace of its own, with a link");
    let unit = spans.iter().find(|span| span.name == "store").unwrap();
    assert_eq!((unit.trace_id, unit.parent), (SAMPLED, Some(root.id)));
}

#[tokio::test]
async fn work_that_outlives_its_request_is_still_recorded() {
    let (traces, sink) = recording();
    let request = joined(&traces, SAMPLED);
    let open = request.open();
    // The client hangs up.
    drop(request);
    within(open, async { traces.trade_created(&created(5, SAMPLED)) }).await;
    let spans = sink.0.lock();
    let [root, trade] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!((root.name.as_ref(), root.error.as_deref()), ("request", None));
    assert_eq!((trade.name.as_ref(), trade.parent), ("trade.create", Some(root.id)));
}

fn moved(to: Status, since_ms: i64, at_ms: i64, error: Option<&'static str>) -> TradeMove {
    TradeMove {
        trade_id: TradeId(Uuid::from_u128(OTHER.0)),
        to,
        created_at: NOW,
        since: NOW.plus_ms(since_ms),
        at: NOW.plus_ms(at_ms),
        correlation_id: OTHER,
        error,
        batch_id: (to != Status::Rejected).then_some(BatchId(Uuid::from_u128(9))),
        was_held: false,
    }
}

#[test]
fn a_failure_sends_the_whole_life_of_its_trade() {
    let (traces, sink) = recording();
    traces.trade_created(&created(OTHER.0, OTHER));
    traces.trade_moved(&moved(Status::Pending, 0, 0, None));
    traces.trade_moved(&moved(Status::Executing, 40, 50, None));
    assert_eq!(names(&sink), [""; 0]);
    traces.trade_moved(&moved(Status::Failed, 50, 90, Some("SLIPPAGE_EXCEEDED")));
    assert_eq!(names(&sink), ["trade.create", "trade.sign", "trade.settle"]);
    let spans = sink.0.lock();
    let times: Vec<_> = spans.iter().skip(1).map(|span| (span.began_at, span.ended_at)).collect();
    let at = |ms| Micros::from(NOW.plus_ms(ms));
    assert_eq!(times, [(at(0), at(50)), (at(50), at(90))]);
    let parents: Vec<_> = spans.iter().map(|span| span.parent).collect();
    assert_eq!(parents, [None, Some(spans[0].id), Some(spans[0].id)]);
}

#[test]
fn the_attempts_of_a_failed_trades_webhook_are_sent_too() {
    let (traces, sink) = recording();
    let event_id = EventId(Uuid::from_u128(3));
    let attempt = TracedAttempt {
        correlation_id: OTHER,
        trade_id: Some(TradeId(Uuid::from_u128(OTHER.0))),
        key_id: KeyId(Uuid::from_u128(4)),
        event_id,
        event: "trade.rejected",
        number: 1,
        at: NOW,
        duration_ms: 3,
        status: Some(200),
        failure: None,
    };
    traces.webhook_attempt(&attempt);
    assert_eq!(names(&sink), [""; 0]);
    traces.trade_moved(&moved(Status::Rejected, 0, 5, Some("price_moved")));
    traces.webhook_attempt(&attempt);
    assert_eq!(names(&sink), ["webhook.attempt", "trade.check", "webhook.attempt"]);
}

#[tokio::test]
async fn a_tick_with_an_error_is_sent_with_its_requests_to_nodes() {
    let (traces, sink) = recording();
    let tick = traces.tick(NOW).unwrap();
    within(Some(tick.open()), async { traces.rpc("eth_call", Duration::ZERO, true) }).await;
    tick.ended("sync", Some(ErrorCode::DependencyUnavailable));
    assert_eq!(names(&sink), ["rpc", "worker.tick"]);
    let tick = traces.tick(NOW).unwrap();
    within(Some(tick.open()), async { traces.rpc("eth_call", Duration::ZERO, false) }).await;
    tick.ended("sync", None);
    assert_eq!(sink.0.lock()[2].error.as_deref(), Some(NO_ANSWER));
}
