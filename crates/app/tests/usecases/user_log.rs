//! The log of what users do with their own accounts: bounded, kept for a while, and beside the chain
//! of administrative acts.

use app::cleanup::Cleaner;
use app::limits::budget::Budget;
use app::people::{self, set_tier};
use app::sessions::{self, Person};
use app::user_log::{self, UserLogEntry};
use app::worker::Worker;
use app::{audit_log, keys};
use domain::Timestamp;
use domain::key::Tier;
use domain::rate::Scope;
use domain::time::{DAY_MS, MINUTE_MS};
use store::Store;
use testkit::TestApp;

use crate::audit_log::{entries, operator, told};

async fn log(app: &TestApp, person: &Person) -> Vec<UserLogEntry> {
    user_log::list(&app.ctx, person.user_id(), None, 1_000).await.unwrap()
}

async fn count(app: &TestApp, person: &Person, action: &str) -> (usize, u64) {
    let entries = log(app, person).await;
    let of_action = entries.iter().filter(|entry| entry.action == action);
    of_action.fold((0, 0), |(kept, more), entry| (kept + 1, more + entry.more))
}

store::on_each_engine! {
    async fn a_flood_of_one_action_is_counted_and_hides_no_other(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (mut key, person) = app.sign_up().await;
        for n in 0..50 {
            app.clock.advance(1_000);
            people::rename(&app.ctx, &person, &format!("Ada {n}")).await.unwrap();
        }
        let kept = Budget::LogEntries.default_share(Scope::User).limit().unwrap();
        assert_eq!(kept, 20);
        assert_eq!(count(&app, &person, "user.rename").await, (20, 30));
        let last = log(&app, &person).await.into_iter().find(|entry| entry.more > 0).unwrap();
        assert_eq!(last.last_at, app.ctx.now());
        // What follows the flood is visible, and is never refused.
        let signed_in = app.try_step_up(&person, &mut key).await.unwrap();
        let person = app.person(&signed_in).await;
        sessions::end_others(&app.ctx, &person).await.unwrap();
        assert_eq!(count(&app, &person, "session.step-up").await, (1, 0));
        assert_eq!(count(&app, &person, "session.end-others").await, (1, 0));
        app.clock.advance(DAY_MS + MINUTE_MS);
        people::rename(&app.ctx, &person, "Ada").await.unwrap();
        assert_eq!(count(&app, &person, "user.rename").await, (21, 30));
    }

    async fn entries_are_deleted_after_400_days_except_accepted_terms(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (_, person) = app.sign_up().await;
        let accepted = app.ctx.store.acting_as_user(person.user_id(), testkit::CLIENT_IP, 20, app.ctx.clock.clone());
        accepted
            .write(person.user_id(), |tx, id| {
                Box::pin(async move {
                    let act = audit_log::Act::new("terms.accept", format!("user:{id}"));
                    store::audit_log::note(tx, act);
                    Ok(())
                })
            })
            .await
            .unwrap();
        assert_eq!(log(&app, &person).await.len(), 2);
        app.clock.advance(399 * DAY_MS);
        Cleaner.tick(&app.ctx).await.unwrap();
        assert_eq!(log(&app, &person).await.len(), 2);
        app.clock.advance(2 * DAY_MS);
        Cleaner.tick(&app.ctx).await.unwrap();
        let left = log(&app, &person).await;
        assert_eq!(left.iter().map(|entry| entry.action.as_str()).collect::<Vec<_>>(), ["terms.accept"]);
    }

    async fn what_an_operator_does_with_a_user_stays_in_the_audit_log(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (_, person) = app.sign_up().await;
        let ctx = operator(&app.ctx);
        set_tier(&ctx, person.user_id(), Tier::Developer).await.unwrap();
        keys::revoke(&ctx, person.caller().unwrap().key.id).await.unwrap();
        let logged = entries(&ctx).await;
        assert_eq!(logged.len(), 2, "{:?}", told(&logged));
        assert_eq!(log(&app, &person).await.len(), 1);
        assert_eq!(audit_log::verify(&ctx).await.unwrap().broken_at, None);
    }

    async fn a_sign_up_writes_one_small_entry(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (_, person) = app.sign_up().await;
        let [entry] = log(&app, &person).await.try_into().unwrap();
        assert_eq!((entry.action.as_str(), entry.at <= app.ctx.now()), ("user.sign-up", true));
        let bytes = entry.detail.as_ref().map_or(0, String::len) + entry.action.len() + entry.ip.to_string().len();
        assert!(bytes < 200, "{entry:?}");
        assert_eq!(entry.last_at, Timestamp::from_ms(entry.at.ms()));
    }
}
