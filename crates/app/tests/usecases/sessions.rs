//! Sessions: their lifetime, step-up and end.

use app::sessions::{self, Person, SignedIn};
use app::{AppError, PersonError, people};
use domain::ErrorCode;
use domain::ids::SessionId;
use domain::passkey::{ChallengePurpose, SoftKey};
use domain::session::{IDLE_MS, LIFETIME_MS, STEP_UP_MS};
use domain::time::{DAY_MS, MINUTE_MS};
use store::Store;
use testkit::{TestApp, device, device_at, person_in};

struct Ada {
    key: SoftKey,
    signed_in: SignedIn,
    person: Person,
}

async fn ada(app: &TestApp) -> Ada {
    let mut key = app.soft_key();
    let signed_in = app.try_sign_up(&mut key).await.unwrap();
    let person = app.person(&signed_in).await;
    Ada { key, signed_in, person }
}

async fn is_live(app: &TestApp, signed_in: &SignedIn) -> bool {
    person_in(&app.ctx, signed_in).await.is_some()
}

fn is_missing(refused: &PersonError) -> bool {
    matches!(refused, PersonError::App(AppError { code: ErrorCode::ResourceNotFound, .. }))
}

store::on_each_engine! {
    async fn a_token_is_worthless_after_sign_out_in_every_process_within_half_a_second(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = ada(&app).await;
        let other = app.ctx_of_another_process();
        assert!(person_in(&other, &ada.signed_in).await.is_some());
        sessions::sign_out(&app.ctx, &ada.person).await.unwrap();
        assert!(!is_live(&app, &ada.signed_in).await);
        app.clock.advance(500);
        assert!(person_in(&other, &ada.signed_in).await.is_none());
        sessions::sign_out(&app.ctx, &ada.person).await.unwrap();
    }

    async fn a_session_expires_after_14_idle_days_and_after_90_days(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = ada(&app).await;
        let started = app.ctx.now();
        for _ in 0..8 {
            app.clock.advance(11 * DAY_MS);
            assert!(is_live(&app, &ada.signed_in).await);
        }
        let left = LIFETIME_MS - app.ctx.now().since_ms(started);
        app.clock.advance(left - 1);
        assert!(is_live(&app, &ada.signed_in).await);
        app.clock.advance(1);
        assert!(!is_live(&app, &ada.signed_in).await);
        let mut key = ada.key;
        let idle = app.try_sign_in(&mut key).await.unwrap();
        app.clock.advance(IDLE_MS - 1);
        assert!(sessions::list(&app.ctx, &ada.person).await.unwrap().iter().any(|it| it.id == idle.session.id));
        app.clock.advance(1);
        assert!(!is_live(&app, &idle).await);
        assert_eq!(sessions::list(&app.ctx, &ada.person).await.unwrap(), []);
    }

    async fn a_step_up_renews_the_session_under_a_new_token(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let mut ada = ada(&app).await;
        app.clock.advance(DAY_MS);
        let person = app.person(&ada.signed_in).await;
        assert!(matches!(person.require_step_up(app.ctx.now()), Err(PersonError::StepUpRequired)));
        let renewed = app.try_step_up(&person, &mut ada.key).await.unwrap();
        assert_eq!(renewed.session.id, person.session().id);
        assert!(!is_live(&app, &ada.signed_in).await, "the old token is invalid");
        let person = app.person(&renewed).await;
        person.require_step_up(app.ctx.now()).unwrap();
        app.clock.advance(STEP_UP_MS - 1);
        let person = app.person(&renewed).await;
        person.require_step_up(app.ctx.now()).unwrap();
        app.clock.advance(1);
        let person = app.person(&renewed).await;
        assert!(matches!(person.require_step_up(app.ctx.now()), Err(PersonError::StepUpRequired)));
        assert_eq!(sessions::list(&app.ctx, &person).await.unwrap().len(), 1);
    }

    async fn a_user_ends_one_or_all_other_sessions(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let mut ada = ada(&app).await;
        let mut others = Vec::new();
        for _ in 0..3 {
            others.push(app.try_sign_in(&mut ada.key).await.unwrap());
        }
        assert_eq!(sessions::list(&app.ctx, &ada.person).await.unwrap().len(), 4);
        sessions::end(&app.ctx, &ada.person, others[0].session.id).await.unwrap();
        assert!(!is_live(&app, &others[0]).await && is_live(&app, &others[1]).await);
        assert_eq!(sessions::end_others(&app.ctx, &ada.person).await.unwrap(), 2);
        assert!(!is_live(&app, &others[1]).await && !is_live(&app, &others[2]).await);
        assert!(is_live(&app, &ada.signed_in).await);
    }

    async fn an_ended_session_is_not_renewed(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let mut ada = ada(&app).await;
        sessions::sign_out(&app.ctx, &ada.person).await.unwrap();
        let refused = app.try_step_up(&ada.person, &mut ada.key).await.unwrap_err();
        assert!(matches!(refused, PersonError::SignedOut), "{refused:?}");
    }

    async fn the_last_use_and_its_address_are_stored_once_a_minute(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = ada(&app).await;
        let (token, moved) = (ada.signed_in.token.expose(), device_at("198.51.100.9").ip);
        let listed = async || sessions::list(&app.ctx, &ada.person).await.unwrap().remove(0);
        app.clock.advance(MINUTE_MS - 1);
        sessions::find(&app.ctx, token, moved).await.unwrap().unwrap();
        assert_eq!((listed().await.times.last_used_at, listed().await.ip), (testkit::START, device().ip));
        app.clock.advance(1);
        sessions::find(&app.ctx, token, moved).await.unwrap().unwrap();
        assert_eq!((listed().await.times.last_used_at, listed().await.ip), (app.ctx.now(), moved));
    }
}

#[tokio::test]
async fn another_users_session_is_missing() {
    let app = TestApp::new().await;
    let (ada, bob) = (ada(&app).await, ada(&app).await);
    let unknown = SessionId(app.ctx.uuid());
    for id in [bob.signed_in.session.id, unknown] {
        let refused = sessions::end(&app.ctx, &ada.person, id).await.unwrap_err();
        assert!(is_missing(&refused), "{refused:?}");
    }
    let of_bob = people::list_credentials(&app.ctx, &bob.person).await.unwrap()[0].id;
    let refused = people::remove_credential(&app.ctx, &ada.person, of_bob).await.unwrap_err();
    assert!(is_missing(&refused), "{refused:?}");
    let refused = people::rename_credential(&app.ctx, &ada.person, of_bob, "mine").await.unwrap_err();
    assert!(is_missing(&refused), "{refused:?}");
    assert!(is_live(&app, &bob.signed_in).await);
}

#[tokio::test]
async fn security_settings_need_a_step_up() {
    let app = TestApp::new().await;
    let ada = ada(&app).await;
    app.clock.advance(STEP_UP_MS);
    let person = app.person(&ada.signed_in).await;
    let new = app.register(&mut app.soft_key(), ChallengePurpose::AddKey, Some(person.user_id())).await;
    let own = people::list_credentials(&app.ctx, &person).await.unwrap()[0].id;
    for refused in [
        people::add_credential(&app.ctx, &person, &new, None).await.unwrap_err(),
        people::remove_credential(&app.ctx, &person, own).await.unwrap_err(),
        sessions::end(&app.ctx, &person, person.session().id).await.unwrap_err(),
        sessions::end_others(&app.ctx, &person).await.unwrap_err(),
    ] {
        assert!(matches!(refused, PersonError::StepUpRequired), "{refused:?}");
    }
    sessions::sign_out(&app.ctx, &person).await.unwrap();
}

#[tokio::test]
async fn an_unknown_token_is_no_session() {
    let app = TestApp::new().await;
    ada(&app).await;
    for token in ["", "x", &"A".repeat(43)] {
        assert!(sessions::find(&app.ctx, token, device().ip).await.unwrap().is_none(), "{token}");
    }
}
