//! Retention of events: those without a URL, those of revoked keys, replays, and the cleaner's
//! deletions.

use app::cleanup::Cleaner;
use app::feed::{FeedStart, read};
use app::worker::Worker;
use app::{PersonError, people, webhooks};
use domain::ErrorCode;
use domain::event::EventKind;
use domain::key::Tier;
use domain::time::DAY_MS;
use domain::webhook::DeliveryStatus;
use store::events::FeedRange;
use store::webhooks::Redelivered;
use store::{Store, StoreError};
use testkit::{Reply, TestApp};

use crate::webhooks::WebhookScene;

async fn extent(scene: &WebhookScene) -> FeedRange {
    let found =
        scene.app.ctx.store.read(scene.ada.id, |tx, id| Box::pin(store::events::extent(tx, *id))).await;
    found.unwrap()
}

async fn count(scene: &WebhookScene, sql: &'static str) -> i64 {
    let found: Result<Option<i64>, StoreError> =
        scene.app.ctx.store.read(sql, |tx, sql| Box::pin(tx.find(sql, &[], |row| row.only::<i64>()))).await;
    found.unwrap().unwrap()
}

store::on_each_engine! {
    async fn an_event_without_a_url_is_stored_and_never_delivered(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.exec("UPDATE keys SET name = webhook_url, webhook_url = NULL").await;
        scene.traded().await;
        assert_eq!((scene.dispatch().await, scene.delivery().await.status), (0, DeliveryStatus::None));
        scene.exec("UPDATE keys SET webhook_url = name").await;
        assert_eq!(scene.dispatch().await, 0);
        scene.traded().await;
        assert_eq!(scene.dispatch().await, 1);
        assert_eq!(scene.receiver.take().len(), 1);
        assert!(matches!(scene.redeliver(&scene.deliveries().await[0]).await, Redelivered::Queued(_)));
        scene.dispatch().await;
        assert_eq!(scene.receiver.one().id(), scene.deliveries().await[0].event_id.to_string());
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn a_revoked_key_still_gets_its_events(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.key.buy(&scene.market, 0, "1").await;
        scene.exec("UPDATE keys SET revoked_at_ms = 1").await;
        scene.app.run_workers().await;
        assert_eq!(scene.receiver.take().len(), 1);
    }

    async fn an_event_of_a_revoked_key_is_not_sent_again(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.traded().await;
        scene.dispatch().await;
        scene.receiver.take();
        let (ctx, delivery) = (&scene.app.ctx, scene.delivery().await);
        let other = scene.app.disabled_key(&scene.ada, Tier::Mm).await;
        let person = scene.app.person_of(&scene.ada).await;
        people::revoke_api_key(ctx, &person, delivery.key_id).await.unwrap();
        let by_key = webhooks::redeliver(ctx, &other.caller, delivery.event_id).await.unwrap_err();
        assert_eq!(by_key.code, ErrorCode::WebhookNotConfigured);
        assert!(by_key.detail.contains("revoked"), "{by_key}");
        let by_person = people::redeliver_event(ctx, &person, delivery.event_id).await.unwrap_err();
        let PersonError::App(by_person) = by_person else { panic!("{by_person:?}") };
        assert_eq!((by_person.code, by_person.detail), (by_key.code, by_key.detail));
        let test = webhooks::send_test(ctx, &scene.key.caller).await.unwrap_err();
        assert_eq!(test.code, ErrorCode::WebhookNotConfigured);
        assert_eq!((scene.dispatch().await, scene.receiver.take().len()), (0, 0));
    }

    async fn a_replay_is_queued_last_and_has_its_own_attempts(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.receiver.next([Reply::Status(400), Reply::Status(500)]);
        scene.traded().await;
        scene.traded().await;
        scene.dispatch().await;
        let [given_up, retrying] = <[_; 2]>::try_from(scene.deliveries().await).unwrap();
        assert_eq!((given_up.status, retrying.status), (DeliveryStatus::Failed, DeliveryStatus::Retrying));
        scene.redeliver(&given_up).await;
        scene.receiver.take();
        scene.next_attempt().await;
        let came: Vec<_> = scene.receiver.take().iter().map(testkit::Delivered::id).collect();
        assert_eq!(came, [retrying.event_id.to_string(), given_up.event_id.to_string()]);
        let [replayed, _] = <[_; 2]>::try_from(scene.deliveries().await).unwrap();
        assert_eq!((replayed.status, replayed.attempts, replayed.replays), (DeliveryStatus::Delivered, 2, 1));
        assert_eq!(replayed.terminal_failure_at, None);
        let attempts: Vec<_> = scene.attempts(&replayed).await.iter().map(|attempt| attempt.replay).collect();
        assert_eq!(attempts, [0, 1]);
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn a_sixth_replay_is_rejected_and_leaves_no_due_queue(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.traded().await;
        scene.dispatch().await;
        let delivery = scene.delivery().await;
        for _ in 0..5 {
            assert!(matches!(scene.redeliver(&delivery).await, Redelivered::Queued(_)));
        }
        assert_eq!(scene.redeliver(&delivery).await, Redelivered::LimitReached);
        scene.dispatch().await;
        assert_eq!(scene.receiver.take().len(), 6);
        assert_eq!(scene.redeliver(&delivery).await, Redelivered::LimitReached);
        assert_eq!(count(&scene, "SELECT COUNT(*) FROM webhook_endpoints WHERE due_at_ms IS NOT NULL").await, 0);
        assert_eq!(scene.dispatch().await, 0);
        scene.app.assert_ledger_equals_chain().await;
    }

    async fn only_failed_deliveries_are_archived_after_30_days(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.receiver.next([Reply::Status(200), Reply::Status(400)]);
        scene.traded().await;
        scene.traded().await;
        scene.dispatch().await;
        let cleaner = Cleaner;
        scene.later(30 * DAY_MS);
        cleaner.tick(&scene.app.ctx).await.unwrap();
        assert_eq!((scene.deliveries().await.len(), extent(&scene).await.pruned), (2, 0));
        scene.later(1);
        cleaner.tick(&scene.app.ctx).await.unwrap();
        assert_eq!(scene.delivery().await.status, DeliveryStatus::Delivered);
        assert_eq!(count(&scene, "SELECT COUNT(*) FROM archived_events WHERE body LIKE '%trade.completed%'").await, 1);
        assert_eq!(count(&scene, "SELECT COUNT(*) FROM delivery_attempts").await, 1);
        assert_eq!(extent(&scene).await.pruned, extent(&scene).await.last);
        scene.app.assert_events_tell_what_happened().await;
    }

    async fn test_events_are_deleted_with_their_deliveries_after_31_days(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.receiver.next([Reply::Status(200), Reply::Status(400)]);
        for _ in 0..2 {
            webhooks::send_test(&scene.app.ctx, &scene.key.caller).await.unwrap();
        }
        scene.traded().await;
        scene.dispatch().await;
        let tests = "SELECT COUNT(*) FROM events WHERE kind = 'webhook.test'";
        let attempts = "SELECT COUNT(*) FROM delivery_attempts";
        // The trade's event is a millisecond younger than the tests.
        scene.later(31 * DAY_MS - 1);
        Cleaner.tick(&scene.app.ctx).await.unwrap();
        assert_eq!((count(&scene, tests).await, count(&scene, attempts).await), (2, 3));
        scene.later(1);
        Cleaner.tick(&scene.app.ctx).await.unwrap();
        assert_eq!((count(&scene, tests).await, count(&scene, attempts).await), (0, 1));
        assert_eq!(count(&scene, "SELECT COUNT(*) FROM archived_events").await, 0);
        assert_eq!(scene.delivery().await.status, DeliveryStatus::Delivered);
        assert!(extent(&scene).await.pruned >= 2);
    }

    async fn a_test_event_that_is_sent_again_is_not_deleted(store: Store) {
        let scene = WebhookScene::on(store).await;
        webhooks::send_test(&scene.app.ctx, &scene.key.caller).await.unwrap();
        scene.dispatch().await;
        scene.later(31 * DAY_MS + 1);
        assert!(matches!(scene.redeliver(&scene.delivery().await).await, Redelivered::Queued(_)));
        Cleaner.tick(&scene.app.ctx).await.unwrap();
        scene.dispatch().await;
        assert_eq!((scene.delivery().await.replays, scene.receiver.take().len()), (1, 2));
        Cleaner.tick(&scene.app.ctx).await.unwrap();
        assert!(scene.deliveries().await.is_empty());
    }

    async fn a_free_user_sends_a_limited_number_of_test_events_a_day(store: Store) {
        let app = TestApp::with().on(store).budgets(["webhook-tests.user=2"]).start().await;
        let receiver = app.receiver().await;
        let ada = app.user("ada").await;
        let (free, paid) =
            (app.key_to(&ada, Tier::Free, &receiver).await, app.key_to(&ada, Tier::Mm, &receiver).await);
        for _ in 0..2 {
            webhooks::send_test(&app.ctx, &free.caller).await.unwrap();
        }
        // The page's button and the API use the same number.
        let person = app.person_of(&ada).await;
        let refused = people::send_api_key_test(&app.ctx, &person, free.caller.key.id).await.unwrap_err();
        let PersonError::App(refused) = refused else { panic!("{refused:?}") };
        assert_eq!(refused.code, ErrorCode::RateLimitExceeded);
        webhooks::send_test(&app.ctx, &paid.caller).await.unwrap();
        app.clock.advance(2 * DAY_MS);
        people::send_api_key_test(&app.ctx, &person, free.caller.key.id).await.unwrap();
    }

    async fn reading_from_the_oldest_event_survives_pruning(store: Store) {
        let scene = WebhookScene::on(store).await;
        for _ in 0..3 {
            scene.traded().await;
        }
        scene.dispatch().await;
        scene.app.advance_ms(31 * DAY_MS + 1).await;
        Cleaner.tick(&scene.app.ctx).await.unwrap();
        let market = scene.app.market(&["Yes", "No"]).await;
        for _ in 0..2 {
            scene.key.buy(&market, 0, "1").await;
            scene.app.run_workers().await;
        }
        let FeedRange { pruned, last, .. } = extent(&scene).await;
        assert!(0 < pruned && pruned + 4 < last, "{pruned} of {last}");
        let (mut place, mut walked) = (FeedStart::Oldest, Vec::new());
        loop {
            let part = read(&scene.app.ctx, scene.ada.id, place, EventKind::ALL, 2).await.unwrap();
            walked.extend(part.events.iter().map(|event| event.seq));
            place = FeedStart::Behind(part.position);
            if !part.has_more {
                break;
            }
        }
        assert_eq!(walked, (pruned + 1..=last).collect::<Vec<_>>());
    }

    async fn events_that_are_never_posted_leave_the_feed_after_31_days(store: Store) {
        let scene = WebhookScene::on(store).await;
        scene.traded().await;
        scene.dispatch().await;
        let cleaner = Cleaner;
        let changes = "SELECT COUNT(*) FROM events WHERE kind = 'trade.status-changed'";
        assert!(count(&scene, changes).await > 0);
        scene.later(31 * DAY_MS);
        cleaner.tick(&scene.app.ctx).await.unwrap();
        assert!(count(&scene, changes).await > 0);
        scene.later(1);
        cleaner.tick(&scene.app.ctx).await.unwrap();
        assert_eq!(count(&scene, changes).await, 0);
        assert_eq!(count(&scene, "SELECT COUNT(*) FROM events").await, 1, "the delivered event is kept");
        let extent = extent(&scene).await;
        assert_eq!(extent.pruned, extent.last - 1);
        scene.app.assert_events_tell_what_happened().await;
    }
}
