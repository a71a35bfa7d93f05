//! The log of what users do with their own accounts: bounded, kept for a while, and beside the chain
//! of administrative acts.

use app::cleanup::Cleaner;
use app::limits::budget::Budget;
use app::people::{self, KeyEnd, set_tier};
use app::sessions::{self, Person};
use app::user_log::{self, UserLogEntry};
use app::worker::Worker;
use app::{audit_log, keys, webhooks};
use domain::key::{ChosenCaps, IpAllowlist, Tier};
use domain::rate::Scope;
use domain::time::{DAY_MS, MINUTE_MS};
use domain::{Timestamp, Usdc};
use serde_json::Value;
use store::Store;
use testkit::TestApp;

use crate::audit_log::{entries, operator, told};
use crate::scene::Scene;

async fn log(app: &TestApp, person: &Person) -> Vec<UserLogEntry> {
    user_log::list(&app.ctx, person.user_id(), None, 1_000).await.unwrap()
}

async fn count(app: &TestApp, person: &Person, action: &str) -> (usize, u64) {
    let entries = log(app, person).await;
    let of_action = entries.iter().filter(|entry| entry.action == action);
    of_action.fold((0, 0), |(kept, more), entry| (kept + 1, more + entry.more))
}

store::on_each_engine! {
    async fn every_change_of_a_key_is_in_the_log_of_its_user_whoever_makes_it(store: Store) {
        let Scene { app, ada, key, .. } = Scene::on(store).await;
        let (ctx, id) = (&app.ctx, key.caller.key.id);
        let person = app.person_of(&ada).await;
        let before = (entries(ctx).await.len(), log(&app, &person).await.len());
        let holder = key.caller.clone();
        for _ in 0..2 {
            // A second pause changes nothing.
            keys::pause(ctx, &holder).await.unwrap();
            app.clock.advance(MINUTE_MS);
        }
        webhooks::rotate_secret(ctx, &holder).await.unwrap();
        app.clock.advance(MINUTE_MS);
        people::resume_api_key(ctx, &person, id).await.unwrap();
        people::pause_api_key(ctx, &person, id).await.unwrap();
        let caps = ChosenCaps { daily: Some(Usdc::from_whole(1)), per_trade: Some(Usdc::from_whole(1)) };
        people::lower_api_key_caps(ctx, &person, id, caps).await.unwrap();
        people::set_api_key_access(ctx, &person, id, (IpAllowlist::default(), KeyEnd::Kept)).await.unwrap();
        people::set_api_key_webhook(ctx, &person, id, None).await.unwrap();
        people::rotate_api_key_secret(ctx, &person, id).await.unwrap();
        people::mark_api_key_as_agent(ctx, &person, id).await.unwrap();
        people::revoke_api_key(ctx, &person, id).await.unwrap();
        // Nothing that a stranger can do without end is in the chain of the audit log.
        assert_eq!(entries(ctx).await.len(), before.0);
        let mut logged = log(&app, &person).await;
        logged.reverse();
        let entries = &logged[before.1..];
        let of_key = format!("key:{id}");
        let by_key = |entry: &UserLogEntry| {
            let detail: Value = entry.detail.as_deref().map(serde_json::from_str).transpose().unwrap().unwrap_or_default();
            detail["by"] == of_key.as_str()
        };
        let found: Vec<_> = entries.iter().map(|entry| (entry.action.as_str(), by_key(entry))).collect();
        assert_eq!(found, [
            ("key.pause", true),
            ("key.webhook-secret", true),
            ("key.resume", false),
            ("key.pause", false),
            ("key.caps", false),
            ("key.access", false),
            ("key.webhook", false),
            ("key.webhook-secret", false),
            ("key.agent", false),
            ("key.revoke", false),
        ]);
        assert!(entries.iter().all(|entry| entry.subject == of_key));
    }

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
        let accepted = app.ctx.store.acting_as_user(person.user_id(), testkit::CLIENT_IP, None, 20, app.ctx.clock.clone());
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
