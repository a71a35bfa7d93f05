//! The log of rejected requests and writes, and usage over time.

use app::cleanup::Cleaner;
use app::request_log::{KEEP_MS, flush, search};
use app::usage::{self, history};
use app::worker::Worker;
use domain::ErrorCode;
use domain::ids::{KeyId, TradeId};
use domain::page::Page;
use domain::time::HOUR_MS;
use domain::usage::GraphRange;
use store::Store;
use store::requests::{LoggedRequest, RequestFilter};
use testkit::TestApp;
use uuid::Uuid;

use crate::scene::Scene;

fn request(app: &TestApp, id: &str, key_id: KeyId, trade_id: Option<TradeId>) -> LoggedRequest {
    LoggedRequest {
        id: id.to_owned(),
        key_id,
        at: app.ctx.now(),
        route: "POST /v1/trades".to_owned(),
        status: if trade_id.is_some() { 201 } else { 409 },
        code: trade_id.is_none().then_some(ErrorCode::MarketNotTradeable),
        latency_ms: 12,
        trade_id,
    }
}

store::on_each_engine! {
    async fn a_user_finds_only_their_own_requests_until_they_are_deleted(store: Store) {
        let Scene { app, ada, key, .. } = Scene::on(store).await;
        let (key_id, bob) = (key.caller.key.id, app.user("bob").await);
        let trade = TradeId(Uuid::from_u128(7));
        let log = &app.ctx.process.requests;
        for (id, trade) in [("req_1", None), ("req_2", Some(trade))] {
            log.add(request(&app, id, key_id, trade));
            app.clock.advance(1);
        }
        flush(&app.ctx).await.unwrap();
        // The same row again, as after a write whose result was lost.
        log.add(request(&app, "req_1", key_id, None));
        flush(&app.ctx).await.unwrap();
        let list = async |user_id, filter: RequestFilter| {
            let page = Page { limit: 10, after: None };
            let read = app.ctx.store.read((user_id, filter, page), |tx, (user_id, filter, page)| {
                Box::pin(store::requests::list(tx, *user_id, filter, page))
            });
            let rows: Vec<LoggedRequest> = read.await.unwrap();
            rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
        };
        for (filter, ids) in [
            (RequestFilter::All, vec!["req_2", "req_1"]),
            (RequestFilter::OfKey(key_id), vec!["req_2", "req_1"]),
            (RequestFilter::OfTrade(trade), vec!["req_2"]),
            (RequestFilter::WithId("req_1".to_owned()), vec!["req_1"]),
        ] {
            assert_eq!(list(ada.id, filter.clone()).await, ids, "{filter:?}");
            assert_eq!(list(bob.id, filter.clone()).await, Vec::<String>::new(), "{filter:?}");
        }
        let rejected = &search(&app.ctx, ada.id, " req_1 ").await.unwrap().requests[0];
        assert_eq!((rejected.code, rejected.status, rejected.latency_ms), (Some(ErrorCode::MarketNotTradeable), 409, 12));
        assert_eq!(search(&app.ctx, ada.id, &key_id.to_string()).await.unwrap().requests.len(), 2);
        assert_eq!(search(&app.ctx, bob.id, &key_id.to_string()).await.unwrap().requests, []);

        app.clock.advance(KEEP_MS - 1);
        Cleaner.tick(&app.ctx).await.unwrap();
        assert_eq!(list(ada.id, RequestFilter::All).await, ["req_2"]);
        app.clock.advance(2);
        Cleaner.tick(&app.ctx).await.unwrap();
        assert_eq!(list(ada.id, RequestFilter::All).await, Vec::<String>::new());
    }

    async fn usage_over_time_counts_each_request_once_and_only_for_its_user(store: Store) {
        let Scene { app, ada, key, .. } = Scene::on(store).await;
        let (key_id, bob) = (key.caller.key.id, app.user("bob").await);
        let record = |code| app.ctx.process.usage.record(key_id, code, 5, app.ctx.now());
        record(None);
        record(Some(ErrorCode::InsufficientScope));
        usage::flush(&app.ctx).await.unwrap();
        app.clock.advance(HOUR_MS);
        // This one is still in memory.
        record(None);
        let of = async |user_id, range| {
            let points = history(&app.ctx, user_id, range).await.unwrap();
            let last = points.iter().rev().take(2).map(|it| (it.requests, it.rejected)).collect::<Vec<_>>();
            (last, points.iter().map(|point| point.requests).sum::<u64>())
        };
        assert_eq!(of(ada.id, GraphRange::Day).await, (vec![(1, 0), (1, 1)], 2));
        usage::flush(&app.ctx).await.unwrap();
        assert_eq!(of(ada.id, GraphRange::Day).await, (vec![(1, 0), (1, 1)], 2));
        assert_eq!(of(ada.id, GraphRange::Month).await, (vec![(2, 1), (0, 0)], 2));
        assert_eq!(of(bob.id, GraphRange::Day).await, (vec![(0, 0), (0, 0)], 0));
    }
}
