//! Sessions: their lifetime, step-up and end.

use alloy_primitives::Address;
use app::owner_acts::{self, OwnerActRequest, OwnerOrder};
use app::people::{Country, KeyEnd, NewApiKey, SignUp};
use app::sessions::{self, Person, SignedIn};
use app::trades::NewTrade;
use app::{AppError, PersonError, people, portfolio};
use chain::AccountOwner;
use domain::ids::{KeyId, SessionId, TradeId};
use domain::key::{ChosenCaps, IpAllowlist, Scopes};
use domain::passkey::{ChallengePurpose, SoftKey};
use domain::session::{IDLE_MS, LIFETIME_MS, STEP_UP_MS};
use domain::time::{DAY_MS, MINUTE_MS};
use domain::trade::Draft;
use domain::{ErrorCode, Usdc, Wad};
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
async fn whatever_gives_a_thief_more_than_the_session_needs_a_step_up() {
    let app = TestApp::new().await;
    let ada = ada(&app).await;
    let ctx = &app.ctx;
    let key = issue(&app, &ada.person).await.unwrap();
    app.clock.advance(STEP_UP_MS);
    let person = app.person(&ada.signed_in).await;
    let new = app.register(&mut app.soft_key(), ChallengePurpose::AddKey, Some(person.user_id())).await;
    let own = people::list_credentials(ctx, &person).await.unwrap()[0].id;
    let owner = Some(AccountOwner::Eoa(Address::repeat_byte(0x42)));
    let (country, trade) = (Country::default(), TradeId(ctx.uuid()));
    let (access, now) = ((IpAllowlist::default(), KeyEnd::Kept), ctx.now());
    for refused in [
        people::add_credential(ctx, &person, &new, None).await.map(drop),
        people::remove_credential(ctx, &person, own).await,
        owner_acts::choose_second_owner(ctx, &person, owner).await,
        people::resume_trading(ctx, &person).await,
        issue(&app, &person).await.map(drop),
        people::set_api_key_access(ctx, &person, key, access).await.map(drop),
        people::resume_api_key(ctx, &person, key).await.map(drop),
        people::set_api_key_webhook(ctx, &person, key, None).await.map(drop),
        people::rotate_api_key_secret(ctx, &person, key).await.map(drop),
        people::confirm_trade(ctx, &person, country, trade).await,
        portfolio::export_trades(ctx, &person, (now, now), 1).await.map(drop),
        sessions::end(ctx, &person, person.session().id).await,
        sessions::end_others(ctx, &person).await.map(drop),
    ] {
        assert!(matches!(refused, Err(PersonError::StepUpRequired)), "{refused:?}");
    }
    // What only restricts does not.
    people::pause_trading(ctx, &person).await.unwrap();
    sessions::sign_out(ctx, &person).await.unwrap();
}

#[tokio::test]
async fn another_persons_key_is_missing() {
    let app = TestApp::new().await;
    let (ada, bob) = (ada(&app).await, ada(&app).await);
    let (ctx, id) = (&app.ctx, issue(&app, &bob.person).await.unwrap());
    let (person, access) = (&ada.person, (IpAllowlist::default(), KeyEnd::Kept));
    for refused in [
        people::set_api_key_access(ctx, person, id, access).await.map(drop),
        people::lower_api_key_caps(ctx, person, id, ChosenCaps::default()).await.map(drop),
        people::pause_api_key(ctx, person, id).await.map(drop),
        people::resume_api_key(ctx, person, id).await.map(drop),
        people::revoke_api_key(ctx, person, id).await.map(drop),
        people::mark_api_key_as_agent(ctx, person, id).await.map(drop),
        people::set_api_key_webhook(ctx, person, id, None).await.map(drop),
        people::rotate_api_key_secret(ctx, person, id).await.map(drop),
        people::send_api_key_test(ctx, person, id).await.map(drop),
    ] {
        assert!(is_missing(&refused.unwrap_err()));
    }
    people::resume_api_key(ctx, &bob.person, id).await.unwrap();
}

/// Issues an API key as the person.
async fn issue(app: &TestApp, person: &Person) -> Result<KeyId, PersonError> {
    let wanted = NewApiKey {
        name: "bot".to_owned(),
        scopes: Scopes::all(),
        expires_at: None,
        ip_allowlist: IpAllowlist::default(),
        webhook_url: None,
        is_agent: false,
    };
    Ok(people::issue_api_key(&app.ctx, person, app.ctx.uuid(), wanted).await?.key.id)
}

#[tokio::test]
async fn nobody_buys_or_signs_up_from_a_refused_country_and_everybody_may_leave() {
    let app = TestApp::new().await;
    let Ada { person, .. } = ada(&app).await;
    let (ctx, country) = (&app.ctx, Country { is_refused: true });
    let is_refused = |done: Result<(), PersonError>| matches!(done, Err(PersonError::CountryRefused));
    let credential = app.register(&mut app.soft_key(), ChallengePurpose::SignUp, None).await;
    let wanted = SignUp { name: None, credential, device: device(), country, accepted_terms: None };
    assert!(is_refused(people::sign_up(ctx, &wanted).await.map(drop)));
    let market_id = app.market(&["Yes", "No"]).await.id;
    let trade = async |side: &str| {
        let draft =
            Draft { market_id: Some(market_id.to_string()), side: Some(side.to_owned()), ..Draft::default() };
        let new = NewTrade { draft, idempotency_key: None, dry_run: false, correlation_id: None };
        people::create_trade(ctx, &person, country, new).await.map(drop)
    };
    assert!(is_refused(trade("buy").await) && is_refused(trade("").await));
    assert!(matches!(trade("sell").await, Err(PersonError::App(_))));
    let act = async |order| {
        let request = OwnerActRequest::Trade { market_id, outcome_index: 0, order };
        people::prepare_act(ctx, &person, country, &request).await.map(drop)
    };
    let (usdc, tokens) = (Usdc::from_whole(1), Wad::ONE);
    assert!(is_refused(act(OwnerOrder::Buy { usdc, min_tokens: tokens }).await));
    let sale = act(OwnerOrder::Sell { tokens, min_usdc: usdc }).await;
    assert!(matches!(sale, Err(PersonError::App(_))), "{sale:?}");
}

#[tokio::test]
async fn an_unknown_token_is_no_session() {
    let app = TestApp::new().await;
    ada(&app).await;
    for token in ["", "x", &"A".repeat(43)] {
        assert!(sessions::find(&app.ctx, token, device().ip).await.unwrap().is_none(), "{token}");
    }
}

#[tokio::test]
async fn no_purchase_from_a_refused_country_is_prepared_for_a_signature() {
    let app = TestApp::new().await;
    let Ada { person, .. } = ada(&app).await;
    let market_id = app.market(&["Yes", "No"]).await.id;
    let order = OwnerOrder::Buy { usdc: Usdc::from_whole(1), min_tokens: Wad::ONE };
    let request = OwnerActRequest::Trade { market_id, outcome_index: 0, order };
    let country = Country { is_refused: true };
    let refused = people::prepare_act(&app.ctx, &person, country, &request).await.map(drop);
    assert!(matches!(refused, Err(PersonError::CountryRefused)), "{refused:?}");
}

#[tokio::test]
async fn nobody_signs_up_from_a_refused_country() {
    let app = TestApp::new().await;
    let credential = app.register(&mut app.soft_key(), ChallengePurpose::SignUp, None).await;
    let country = Country { is_refused: true };
    let wanted = SignUp { name: None, credential, device: device(), country, accepted_terms: None };
    let refused = people::sign_up(&app.ctx, &wanted).await.map(drop);
    assert!(matches!(refused, Err(PersonError::CountryRefused)), "{refused:?}");
}

#[tokio::test]
async fn no_purchase_from_a_refused_country_is_created() {
    let app = TestApp::new().await;
    let Ada { person, .. } = ada(&app).await;
    let market_id = Some(app.market(&["Yes", "No"]).await.id.to_string());
    let draft = Draft { market_id, side: Some("buy".to_owned()), ..Draft::default() };
    let new = NewTrade { draft, idempotency_key: None, dry_run: false, correlation_id: None };
    let country = Country { is_refused: true };
    let refused = people::create_trade(&app.ctx, &person, country, new).await.map(drop);
    assert!(matches!(refused, Err(PersonError::CountryRefused)), "{refused:?}");
}
