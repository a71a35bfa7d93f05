//! Spans of trades and of their webhooks.

use std::sync::Arc;

use app::traces::{Span, SpanId, SpanSink, is_sampled};
use domain::ids::CorrelationId;
use domain::key::Tier;
use domain::trade::Status;
use parking_lot::Mutex;
use store::Store;
use testkit::TestApp;

#[derive(Default)]
struct Sink(Mutex<Vec<Span>>);

impl SpanSink for Sink {
    fn record(&self, spans: Vec<Span>) {
        self.0.lock().extend(spans);
    }
}

impl Sink {
    /// Returns the spans of a trace in the order of their recording.
    fn of(&self, trace_id: CorrelationId) -> Vec<Span> {
        self.0.lock().iter().filter(|span| span.trace_id == trace_id).cloned().collect()
    }
}

store::on_each_engine! {
    async fn a_trade_that_fails_is_traced_to_its_webhook_and_others_only_if_they_are_sampled(store: Store) {
        let app = TestApp::with().on(store).default_slippage_bps(200).start().await;
        let sink = Arc::<Sink>::default();
        app.ctx.trace_to(Arc::<Sink>::clone(&sink));
        let receiver = app.receiver().await;
        let ada = app.user("ada").funded("10000").await;
        let key = app.key_to(&ada, Tier::Mm, &receiver).await;
        let market = app.market(&["Yes", "No"]).await;

        let completed = key.buy(&market, 1, "10").await;
        app.run_workers().await;
        assert_eq!(app.status(completed.id).await, Status::Completed);
        let rejected = key.buy(&market, 0, "10").await;
        app.stranger_buys(market, 0, "1000").await;
        app.run_workers().await;
        assert_eq!(app.status(rejected.id).await, Status::Rejected);

        let spans = sink.of(rejected.correlation_id);
        let names: Vec<_> = spans.iter().map(|span| span.name.as_ref()).collect();
        assert_eq!(names, ["trade.create", "trade.check", "webhook.attempt"], "{spans:?}");
        let root = SpanId::of(rejected.id.0);
        assert_eq!(spans.iter().map(|span| span.parent).collect::<Vec<_>>(), [None, Some(root), Some(root)]);
        assert_eq!((spans[0].id, spans[1].error.as_deref()), (root, Some("price_moved")));
        assert_eq!(sink.of(completed.correlation_id).is_empty(), !is_sampled(completed.correlation_id));
    }
}
