//! Retention of events: those without a URL, those of revoked keys, replays, and the cleaner's
//! deletions.

use app::cleanup::Cleaner;
use app::feed::{FeedStart, read};
use app::worker::Worker;
use domain::event::EventKind;
use domain::time::DAY_MS;
use domain::webhook::DeliveryStatus;
use store::events::FeedRange;
use store::webhooks::Redelivered;
use store::{Store, StoreError};
use testkit::Reply;

use crate::webhooks::Told;

async fn extent(told: &Told) -> FeedRange {
    let found = told.app.ctx.store.read(told.ada.id, |tx, id| Box::pin(store::events::extent(tx, *id))).await;
    found.unwrap()
}

async fn count(told: &Told, sql: &'static str) -> i64 {
    let found: Result<Option<i64>, StoreError> =
        told.app.ctx.store.read(sql, |tx, sql| Box::pin(tx.find(sql, &[], |row| row.only::<i64>()))).await;
    found.unwrap().unwrap()
}

store::on_each_engine! {
    async fn an_event_without_a_url_is_stored_and_never_delivered(store: Store) {
        let told = Told::on(store).await;
        told.exec("UPDATE keys SET name = webhook_url, webhook_url = NULL").await;
        told.traded().await;
        assert_eq!((told.dispatch().await, told.delivery().await.status), (0, DeliveryStatus::None));
        told.exec("UPDATE keys SET webhook_url = name").await;
        assert_eq!(told.dispatch().await, 0);
        told.traded().await;
        assert_eq!(told.dispatch().await, 1);
        assert_eq!(told.receiver.take().len(), 1);
        assert!(matches!(told.redeliver(&told.deliveries().await[0]).await, Redelivered::Queued(_)));
        told.dispatch().await;
        assert_eq!(told.receiver.one().id(), told.deliveries().await[0].event_id.to_string());
        told.app.assert_ledger_equals_chain().await;
    }

    async fn a_revoked_key_still_gets_its_events(store: Store) {
        let told = Told::on(store).await;
        told.key.buy(&told.market, 0, "1").await;
        told.exec("UPDATE keys SET revoked_at_ms = 1").await;
        told.app.run_workers().await;
        assert_eq!(told.receiver.take().len(), 1);
    }

    async fn a_replay_is_queued_last_and_has_its_own_attempts(store: Store) {
        let told = Told::on(store).await;
        told.receiver.next([Reply::Status(400), Reply::Status(500)]);
        told.traded().await;
        told.traded().await;
        told.dispatch().await;
        let [given_up, retrying] = <[_; 2]>::try_from(told.deliveries().await).unwrap();
        assert_eq!((given_up.status, retrying.status), (DeliveryStatus::Failed, DeliveryStatus::Retrying));
        told.redeliver(&given_up).await;
        told.receiver.take();
        told.next_attempt().await;
        let came: Vec<_> = told.receiver.take().iter().map(testkit::Delivered::id).collect();
        assert_eq!(came, [retrying.event_id.to_string(), given_up.event_id.to_string()]);
        let [replayed, _] = <[_; 2]>::try_from(told.deliveries().await).unwrap();
        assert_eq!((replayed.status, replayed.attempts, replayed.replays), (DeliveryStatus::Delivered, 2, 1));
        assert_eq!(replayed.terminal_failure_at, None);
        let attempts: Vec<_> = told.attempts(&replayed).await.iter().map(|attempt| attempt.replay).collect();
        assert_eq!(attempts, [0, 1]);
        told.app.assert_ledger_equals_chain().await;
    }

    async fn a_sixth_replay_is_rejected_and_leaves_no_due_queue(store: Store) {
        let told = Told::on(store).await;
        told.traded().await;
        told.dispatch().await;
        let delivery = told.delivery().await;
        for _ in 0..5 {
            assert!(matches!(told.redeliver(&delivery).await, Redelivered::Queued(_)));
        }
        assert_eq!(told.redeliver(&delivery).await, Redelivered::LimitReached);
        told.dispatch().await;
        assert_eq!(told.receiver.take().len(), 6);
        assert_eq!(told.redeliver(&delivery).await, Redelivered::LimitReached);
        assert_eq!(count(&told, "SELECT COUNT(*) FROM webhook_endpoints WHERE due_at_ms IS NOT NULL").await, 0);
        assert_eq!(told.dispatch().await, 0);
        told.app.assert_ledger_equals_chain().await;
    }

    async fn only_failed_deliveries_are_archived_after_30_days(store: Store) {
        let told = Told::on(store).await;
        told.receiver.next([Reply::Status(200), Reply::Status(400)]);
        told.traded().await;
        told.traded().await;
        told.dispatch().await;
        let cleaner = Cleaner;
        told.later(30 * DAY_MS);
        cleaner.tick(&told.app.ctx).await.unwrap();
        assert_eq!((told.deliveries().await.len(), extent(&told).await.pruned), (2, 0));
        told.later(1);
        cleaner.tick(&told.app.ctx).await.unwrap();
        assert_eq!(told.delivery().await.status, DeliveryStatus::Delivered);
        assert_eq!(count(&told, "SELECT COUNT(*) FROM archived_events WHERE body LIKE '%trade.completed%'").await, 1);
        assert_eq!(count(&told, "SELECT COUNT(*) FROM delivery_attempts").await, 1);
        assert_eq!(extent(&told).await.pruned, extent(&told).await.last);
        told.app.assert_events_tell_what_happened().await;
    }

    async fn reading_from_the_oldest_event_survives_pruning(store: Store) {
        let told = Told::on(store).await;
        for _ in 0..3 {
            told.traded().await;
        }
        told.dispatch().await;
        told.app.advance_ms(31 * DAY_MS + 1).await;
        Cleaner.tick(&told.app.ctx).await.unwrap();
        let market = told.app.market(&["Yes", "No"]).await;
        for _ in 0..2 {
            told.key.buy(&market, 0, "1").await;
            told.app.run_workers().await;
        }
        let FeedRange { pruned, last, .. } = extent(&told).await;
        assert!(0 < pruned && pruned + 4 < last, "{pruned} of {last}");
        let (mut place, mut walked) = (FeedStart::Oldest, Vec::new());
        loop {
            let part = read(&told.app.ctx, told.ada.id, place, EventKind::ALL, 2).await.unwrap();
            walked.extend(part.events.iter().map(|event| event.seq));
            place = FeedStart::Behind(part.position);
            if !part.has_more {
                break;
            }
        }
        assert_eq!(walked, (pruned + 1..=last).collect::<Vec<_>>());
    }

    async fn events_that_are_never_posted_leave_the_feed_after_31_days(store: Store) {
        let told = Told::on(store).await;
        told.traded().await;
        told.dispatch().await;
        let cleaner = Cleaner;
        let changes = "SELECT COUNT(*) FROM events WHERE kind = 'trade.status-changed'";
        assert!(count(&told, changes).await > 0);
        told.later(31 * DAY_MS);
        cleaner.tick(&told.app.ctx).await.unwrap();
        assert!(count(&told, changes).await > 0);
        told.later(1);
        cleaner.tick(&told.app.ctx).await.unwrap();
        assert_eq!(count(&told, changes).await, 0);
        assert_eq!(count(&told, "SELECT COUNT(*) FROM events").await, 1, "the delivered event is kept");
        let extent = extent(&told).await;
        assert_eq!(extent.pruned, extent.last - 1);
        told.app.assert_events_tell_what_happened().await;
    }
}
