//! People who sign up and sign in with passkeys.

use app::PersonError;
use app::admin::{self, AdminRequest, ServiceStep};
use app::audit_log::{self, Filter};
use app::limits::FailureKind;
use app::passkeys::{NewCredential, Proof, check_relying_party, issue_challenge};
use app::people::{self, Country, NewApiKey, SignUp, sign_up};
use app::sessions::{self, Person};
use app::user_log;
use domain::ErrorCode;
use domain::credential::{CredentialKind, Role};
use domain::key::{IpAllowlist, Scopes, Tier};
use domain::passkey::{Challenge, ChallengePurpose, PasskeyRefusal, RelyingParty, SoftKey};
use domain::time::{DAY_MS, HOUR_MS, MINUTE_MS};
use futures::future::join_all;
use store::Store;
use store::credentials::Credential;
use testkit::{CLIENT_IP, TestApp, device, device_at};

async fn credentials(app: &TestApp, person: &Person) -> Vec<Credential> {
    people::list_credentials(&app.ctx, person).await.unwrap()
}

async fn sign_in_with(app: &TestApp, key: &mut SoftKey) -> Result<(), PersonError> {
    app.try_sign_in(key).await.map(drop)
}

fn passkey_refusal<T: std::fmt::Debug>(refused: Result<T, PersonError>) -> PasskeyRefusal {
    match refused.unwrap_err() {
        PersonError::Passkey(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

store::on_each_engine! {
    async fn a_sign_up_makes_a_user_an_account_a_credential_a_web_key_and_a_session(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (mut key, person) = app.sign_up().await;
        let owned = app::accounts::owners(&app.ctx, person.user_id()).await.unwrap();
        let passkey = domain::credential::CredentialKey::Passkey(key.public_key());
        assert_eq!(owned.owners, [app::passkeys::owner_of(&passkey)]);
        assert!(!owned.provisioned);
        let [credential] = credentials(&app, &person).await.try_into().unwrap();
        assert_eq!((credential.key, credential.kind), (passkey, CredentialKind::Owner));
        assert_eq!((person.user().name.as_str(), person.user().role), ("ada", Role::User));
        assert_eq!(person.caller().unwrap().user_id(), person.user_id());
        // The passkey also signs for the account that it owns.
        app.enable_by_passkey(&person, &mut key, vec![]).await;
        let owned = app::accounts::owners(&app.ctx, person.user_id()).await.unwrap();
        assert!(owned.provisioned);
        sign_in_with(&app, &mut key).await.unwrap();
    }

    async fn sign_ups_are_limited_by_network_and_day(store: Store) {
        let app = TestApp::with().on(store).budgets(["sign-ups.address=2", "sign-ups.network=3"]).start().await;
        let sign_up_at = async |ip: &str| {
            let credential = app.register(&mut app.soft_key(), ChallengePurpose::SignUp, None).await;
            let device = device_at(ip);
            let country = Country::default();
            let wanted = SignUp { name: None, credential, device, country, accepted_terms: None };
            sign_up(&app.ctx, &wanted).await.map(drop)
        };
        for ip in ["192.0.2.1", "192.0.2.1"] {
            sign_up_at(ip).await.unwrap();
        }
        for (ip, detail) in [
            ("192.0.2.1", "At most 2 sign-ups of one address are allowed within 24 hours."),
            ("192.0.2.3", "At most 3 sign-ups of one network are allowed within 24 hours."),
        ] {
            let _ = sign_up_at("192.0.2.2").await;
            let Err(PersonError::App(refused)) = sign_up_at(ip).await else { panic!("{ip}") };
            assert_eq!(refused.code, ErrorCode::RateLimitExceeded);
            assert!(refused.detail.starts_with(detail), "{}", refused.detail);
        }
        sign_up_at("198.51.100.1").await.unwrap();
        app.clock.advance(DAY_MS + 2 * HOUR_MS);
        sign_up_at("192.0.2.1").await.unwrap();
    }

    async fn of_two_sign_ups_with_one_passkey_one_succeeds(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let mut key = app.soft_key();
        let mut wanted = Vec::new();
        for _ in 0..2 {
            let credential = app.register(&mut key, ChallengePurpose::SignUp, None).await;
            wanted.push(SignUp { name: None, credential, device: device(), country: Country::default(), accepted_terms: None });
        }
        let done = join_all(wanted.iter().map(|wanted| sign_up(&app.ctx, wanted))).await;
        assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 1);
        let refused = done.into_iter().find_map(Result::err).unwrap();
        assert!(matches!(refused, PersonError::CredentialTaken), "{refused:?}");
        let users = app.ctx.store.read((), |tx, ()| Box::pin(store::users::list(tx, None, 10))).await;
        assert_eq!(users.unwrap().len(), 1);
    }

    async fn of_two_uses_of_one_assertion_one_succeeds(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (mut key, _) = app.sign_up().await;
        let proof = app.assert(&mut key, ChallengePurpose::SignIn, None).await;
        let other = app.ctx_of_another_process();
        let here = device();
        let done = join_all([sessions::sign_in(&app.ctx, &proof, None, &here), sessions::sign_in(&other, &proof, None, &here)]);
        assert_eq!(done.await.iter().filter(|done| done.is_ok()).count(), 1);
        let replayed = sessions::sign_in(&app.ctx, &proof, None, &here).await.unwrap_err();
        assert!(matches!(replayed, PersonError::ChallengeUnusable), "{replayed:?}");
    }

    async fn a_sign_in_needs_an_open_challenge_of_its_purpose(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (mut key, person) = app.sign_up().await;
        let late = app.assert(&mut key, ChallengePurpose::SignIn, None).await;
        app.clock.advance(5 * MINUTE_MS);
        let step_up = app.assert(&mut key, ChallengePurpose::StepUp, Some(person.user_id())).await;
        let made_up = Challenge::new(ChallengePurpose::SignIn, [7; 32]);
        let made_up = Proof::Passkey(key.assert(&made_up.to_bytes()));
        for proof in [late, step_up, made_up] {
            let refused = sessions::sign_in(&app.ctx, &proof, None, &device()).await.unwrap_err();
            assert!(matches!(refused, PersonError::ChallengeUnusable), "{refused:?}");
        }
        let batch = Proof::Passkey(key.assert(&[7; 32]));
        let refused = sessions::sign_in(&app.ctx, &batch, None, &device()).await;
        assert_eq!(passkey_refusal(refused), PasskeyRefusal::WrongChallenge);
        sign_in_with(&app, &mut key).await.unwrap();
    }

    async fn a_counter_that_goes_back_does_not_sign_in(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (mut key, _) = app.sign_up().await;
        let mut copy = key.clone();
        sign_in_with(&app, &mut key).await.unwrap();
        assert_eq!(passkey_refusal(sign_in_with(&app, &mut copy).await), PasskeyRefusal::CounterWentBack);
        sign_in_with(&app, &mut key).await.unwrap();
    }

    async fn a_passkey_signs_in_after_the_database_was_restored_from_an_old_copy(store: Store) {
        let mut app = TestApp::with().on(store.clone()).start().await;
        let (mut key, _) = app.sign_up().await;
        let copy = store::testing::copy(&store).await;
        sign_in_with(&app, &mut key).await.unwrap();
        app.restore(copy, "two").await;
        sign_in_with(&app, &mut key).await.unwrap();
    }

    async fn another_users_passkey_does_not_step_up(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (_, ada) = app.sign_up().await;
        let (mut key, _) = app.sign_up().await;
        let refused = app.try_step_up(&ada, &mut key).await.unwrap_err();
        assert!(matches!(refused, PersonError::UnknownCredential), "{refused:?}");
    }

    async fn an_added_passkey_signs_in_but_does_not_own_the_account(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (first, person) = app.sign_up().await;
        let mut second = app.soft_key();
        let new = app.register(&mut second, ChallengePurpose::AddKey, Some(person.user_id())).await;
        let added = people::add_credential(&app.ctx, &person, &new, Some(" phone ")).await.unwrap();
        assert_eq!((added.kind, added.name.as_str()), (CredentialKind::SignIn, "phone"));
        let signed_in = app.try_sign_in(&mut second).await.unwrap();
        assert_eq!(app.person(&signed_in).await.user_id(), person.user_id());
        assert_eq!(app::accounts::stored_owners(&app.ctx, person.user_id()).await.unwrap().len(), 1);
        drop(first);
    }

    async fn removing_a_passkey_ends_its_sessions(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (_, person) = app.sign_up().await;
        let mut second = app.soft_key();
        let new = app.register(&mut second, ChallengePurpose::AddKey, Some(person.user_id())).await;
        let added = people::add_credential(&app.ctx, &person, &new, None).await.unwrap();
        let signed_in = app.try_sign_in(&mut second).await.unwrap();
        people::remove_credential(&app.ctx, &person, added.id).await.unwrap();
        assert!(testkit::person_in(&app.ctx, &signed_in).await.is_none());
        let refused = sign_in_with(&app, &mut second).await.unwrap_err();
        assert!(matches!(refused, PersonError::UnknownCredential), "{refused:?}");
        let [owner] = credentials(&app, &person).await.try_into().unwrap();
        let refused = people::remove_credential(&app.ctx, &person, owner.id).await.unwrap_err();
        assert!(matches!(refused, PersonError::CredentialOwnsAccount), "{refused:?}");
    }

    async fn a_removed_owner_no_longer_signs_in(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (mut key, person) = app.sign_up().await;
        let wallet = chain::Signer::random(app.ctx.random()).unwrap();
        app.replace_passkey(&person, &mut key, &wallet).await;
        let refused = sign_in_with(&app, &mut key).await.unwrap_err();
        assert!(matches!(refused, PersonError::UnknownCredential), "{refused:?}");
    }
}

#[tokio::test]
async fn a_misbehaving_authenticator_does_not_sign_in() {
    type Change = fn(&mut SoftKey);
    let app = TestApp::new().await;
    let (key, _) = app.sign_up().await;
    let cases: [(Change, PasskeyRefusal); 4] = [
        (|key| key.origin = "https://evil.example".into(), PasskeyRefusal::WrongOrigin),
        (|key| key.is_user_verified = false, PasskeyRefusal::UserNotVerified),
        (|key| key.is_cross_origin = true, PasskeyRefusal::CrossOrigin),
        (|key| key.rp_id = "evil.example".into(), PasskeyRefusal::WrongRelyingParty),
    ];
    for (change, refusal) in cases {
        let mut bad = key.clone();
        change(&mut bad);
        assert_eq!(passkey_refusal(sign_in_with(&app, &mut bad).await), refusal);
        assert_eq!(passkey_refusal(app.try_sign_up(&mut bad).await), refusal);
    }
    let mut high = key;
    high.has_high_s = true;
    sign_in_with(&app, &mut high).await.unwrap();
}

#[tokio::test]
async fn a_sign_in_needs_the_user_handle_of_the_registration() {
    let app = TestApp::new().await;
    let (mut key, person) = app.sign_up().await;
    let handle = key.user_handle.take();
    let without = sign_in_with(&app, &mut key).await.unwrap_err();
    assert!(matches!(without, PersonError::UnknownCredential), "{without:?}");
    // Within a session the user is known.
    app.try_step_up(&person, &mut key).await.unwrap();
    key.user_handle = Some(vec![1; 32]);
    let other = sign_in_with(&app, &mut key).await.unwrap_err();
    assert!(matches!(other, PersonError::UnknownCredential), "{other:?}");
    key.user_handle = handle;
    sign_in_with(&app, &mut key).await.unwrap();
}

/// Fails 20 times to sign in with a passkey that nobody has, and 20 times with a forged assertion.
async fn guess(app: &TestApp, key: &SoftKey) {
    for _ in 0..20 {
        let mut unknown = app.soft_key();
        unknown.user_handle = Some(vec![1; 32]);
        sign_in_with(app, &mut unknown).await.unwrap_err();
        let mut forged = key.clone();
        forged.rp_id = "evil.example".to_owned();
        sign_in_with(app, &mut forged).await.unwrap_err();
    }
}

#[tokio::test]
async fn failed_sign_ins_lock_the_address_out_but_no_valid_passkey() {
    let app = TestApp::new().await;
    let (mut key, _) = app.sign_up().await;
    guess(&app, &key).await;
    let mut unknown = app.soft_key();
    unknown.user_handle = Some(vec![1; 32]);
    let refused = sign_in_with(&app, &mut unknown).await.unwrap_err();
    assert!(matches!(refused, PersonError::LockedOut { .. }), "{refused:?}");
    // Nobody can guess a signature, so its owner is never locked out.
    sign_in_with(&app, &mut key).await.unwrap();
    // Nobody has failed at another address. There only the guessed passkey is locked out.
    let there = device_at("198.51.100.1");
    let mut forged = key.clone();
    forged.rp_id = "evil.example".to_owned();
    let proof = app.assert(&mut forged, ChallengePurpose::SignIn, None).await;
    let refused = sessions::sign_in(&app.ctx, &proof, None, &there).await.unwrap_err();
    assert!(matches!(refused, PersonError::LockedOut { .. }), "{refused:?}");
    let proof = app.assert(&mut unknown, ChallengePurpose::SignIn, None).await;
    let refused = sessions::sign_in(&app.ctx, &proof, None, &there).await.unwrap_err();
    assert!(matches!(refused, PersonError::UnknownCredential), "{refused:?}");
}

#[tokio::test]
async fn a_valid_passkey_signs_in_from_an_address_that_is_locked_out() {
    let app = TestApp::new().await;
    let (mut key, _) = app.sign_up().await;
    for _ in 0..20 {
        app.ctx.process.limits.fail(FailureKind::SignIn, device().ip, app.ctx.now()).await.unwrap();
    }
    sign_in_with(&app, &mut key).await.unwrap();
}

#[tokio::test]
async fn a_guessed_passkey_is_locked_out_at_every_address() {
    let app = TestApp::new().await;
    let (key, _) = app.sign_up().await;
    let mut forged = key.clone();
    forged.rp_id = "evil.example".to_owned();
    let mut refusals = Vec::new();
    for host in 1..=21 {
        let proof = app.assert(&mut forged, ChallengePurpose::SignIn, None).await;
        let there = device_at(&format!("198.51.{host}.1"));
        refusals.push(sessions::sign_in(&app.ctx, &proof, None, &there).await.unwrap_err());
    }
    let locked_out = refusals.iter().filter(|it| matches!(it, PersonError::LockedOut { .. })).count();
    assert!((1..=2).contains(&locked_out), "{refusals:?}");
    assert!(matches!(refusals[20], PersonError::LockedOut { .. }), "{refusals:?}");
}

#[tokio::test]
async fn failures_of_one_kind_of_credential_lock_out_no_other() {
    let app = TestApp::new().await;
    let (mut key, person) = app.sign_up().await;
    let (limits, ip) = (&app.ctx.process.limits, device().ip);
    for _ in 0..20 {
        limits.fail(FailureKind::ApiKey, ip, app.ctx.now()).await.unwrap();
    }
    // A failure says what is wrong, and not that the address is locked out.
    let mut unknown = app.soft_key();
    unknown.user_handle = Some(vec![1; 32]);
    let refused = sign_in_with(&app, &mut unknown).await.unwrap_err();
    assert!(matches!(refused, PersonError::UnknownCredential), "{refused:?}");
    guess(&app, &key).await;
    let refused = app.try_step_up(&person, &mut app.soft_key()).await.unwrap_err();
    assert!(matches!(refused, PersonError::UnknownCredential), "{refused:?}");
    let mut bad = app.soft_key();
    bad.is_user_verified = false;
    assert_eq!(passkey_refusal(app.try_sign_up(&mut bad).await), PasskeyRefusal::UserNotVerified);
    app.try_sign_up(&mut app.soft_key()).await.unwrap();
    app.try_step_up(&person, &mut key).await.unwrap();
    assert_eq!(limits.shut_out(FailureKind::StepUp, ip, app.ctx.now()).await.unwrap(), None);
}

#[tokio::test]
async fn an_admin_halts_trading_whatever_has_failed_at_the_address() {
    let app = TestApp::new().await;
    let mut key = app.soft_key();
    let signed_in = app.try_sign_up(&mut key).await.unwrap();
    let id = signed_in.session.user_id;
    people::set_role(&app.ctx, id, Role::Admin).await.unwrap();
    let admin = app.person(&signed_in).await;
    guess(&app, &key).await;
    for kind in FailureKind::ALL {
        for _ in 0..20 {
            app.ctx.process.limits.fail(kind, device().ip, app.ctx.now()).await.unwrap();
        }
    }
    let (name, reason) = (app::kill_switches::TRADING.to_owned(), "incident".to_owned());
    let halt = AdminRequest::Service(ServiceStep::Switch { name, is_off: true, reason });
    let act = admin::prepare(&app.ctx, &admin, &halt).await.unwrap();
    let mut forged = key.clone();
    forged.rp_id = "evil.example".to_owned();
    let proof = Proof::Passkey(forged.assert(&act.challenge.to_bytes()));
    let refused = admin::confirm(&app.ctx, &admin, act.id, &proof, device().ip).await.unwrap_err();
    assert!(matches!(refused, PersonError::Passkey(PasskeyRefusal::WrongRelyingParty)), "{refused:?}");
    let proof = Proof::Passkey(key.assert(&act.challenge.to_bytes()));
    admin::confirm(&app.ctx, &admin, act.id, &proof, device().ip).await.unwrap();
    assert!(app.ctx.process.switches.is_trading_halted());
}

#[tokio::test]
async fn the_first_passkey_fixes_the_relying_party() {
    let mut app = TestApp::new().await;
    let with = |app: &TestApp, url: &str| {
        let mut config = app.ctx.config.as_ref().clone();
        config.web.as_mut().unwrap().party = RelyingParty::new(url, None).unwrap();
        let app::Ctx { store, chain, clock, ids, .. } = app.ctx.clone();
        app::Ctx::new(store, chain, clock, ids.entropy(), config)
    };
    let other = "https://other.example";
    check_relying_party(&with(&app, other)).await.unwrap();
    app.sign_up().await;
    check_relying_party(&app.ctx).await.unwrap();
    let refused = check_relying_party(&with(&app, other)).await.unwrap_err().to_string();
    assert!(refused.contains("foretell.example") && refused.contains("other.example"), "{refused}");
    app.ctx = with(&app, other);
}

#[tokio::test]
async fn without_the_web_application_no_challenge_is_issued() {
    let app = TestApp::new().await;
    let mut config = app.ctx.config.as_ref().clone();
    config.web = None;
    let app::Ctx { store, chain, clock, ids, .. } = app.ctx.clone();
    let ctx = app::Ctx::new(store, chain, clock, ids.entropy(), config);
    let refused = issue_challenge(&ctx, ChallengePurpose::SignUp, None).await.unwrap_err();
    assert!(matches!(refused, PersonError::WebOff), "{refused:?}");
}

#[tokio::test]
async fn a_user_has_at_most_twenty_credentials() {
    let app = TestApp::new().await;
    let (_, person) = app.sign_up().await;
    let add = async || {
        let new = app.register(&mut app.soft_key(), ChallengePurpose::AddKey, Some(person.user_id())).await;
        people::add_credential(&app.ctx, &person, &new, None).await
    };
    for _ in 1..20 {
        add().await.unwrap();
    }
    assert!(matches!(add().await.unwrap_err(), PersonError::TooManyCredentials));
}

#[tokio::test]
async fn a_registration_for_another_user_or_purpose_is_rejected() {
    let app = TestApp::new().await;
    let (_, ada) = app.sign_up().await;
    let (_, bob) = app.sign_up().await;
    let of_bob = app.register(&mut app.soft_key(), ChallengePurpose::AddKey, Some(bob.user_id())).await;
    let to_sign_up = app.register(&mut app.soft_key(), ChallengePurpose::SignUp, None).await;
    for new in [of_bob, to_sign_up] {
        let refused = people::add_credential(&app.ctx, &ada, &new, None).await.unwrap_err();
        assert!(matches!(refused, PersonError::ChallengeUnusable), "{refused:?}");
    }
    let to_add = app.register(&mut app.soft_key(), ChallengePurpose::AddKey, Some(ada.user_id())).await;
    let wanted = SignUp {
        name: None,
        credential: to_add,
        device: device(),
        country: Country::default(),
        accepted_terms: None,
    };
    let refused = sign_up(&app.ctx, &wanted).await.unwrap_err();
    assert!(matches!(refused, PersonError::ChallengeUnusable), "{refused:?}");
}

#[tokio::test]
async fn what_a_user_changes_is_in_the_users_log_without_secrets() {
    let app = TestApp::new().await;
    let (mut key, person) = app.sign_up().await;
    people::rename(&app.ctx, &person, " Ada Lovelace ").await.unwrap();
    let signed_in = app.try_step_up(&person, &mut key).await.unwrap();
    let person = app.person(&signed_in).await;
    assert_eq!(person.user().name, "Ada Lovelace");
    sessions::end_others(&app.ctx, &person).await.unwrap();
    sessions::sign_out(&app.ctx, &person).await.unwrap();
    let entries = user_log::list(&app.ctx, person.user_id(), None, 100).await.unwrap();
    let mut actions: Vec<&str> = entries.iter().map(|entry| entry.action.as_str()).collect();
    actions.sort_unstable();
    let expected = ["session.end", "session.end-others", "session.step-up", "user.rename", "user.sign-up"];
    assert_eq!(actions, expected);
    assert!(entries.iter().all(|entry| entry.ip == CLIENT_IP && entry.subject.is_empty()), "{entries:?}");
    // The chain of administrative acts does not grow by what strangers do.
    assert_eq!(audit_log::list(&app.ctx, Filter::default(), i64::MAX, 100).await.unwrap(), []);
    let text = format!("{entries:?}");
    assert!(!text.contains(signed_in.token.expose()) && !text.contains(&signed_in.token.digest()));
    assert_eq!(
        people::rename(&app.ctx, &person, " ").await.unwrap_err().to_string().split(':').next(),
        Some("VALIDATION_FAILED")
    );
}

#[tokio::test]
async fn a_new_passkey_confirms_no_act_of_an_admin_for_a_day() {
    let app = TestApp::new().await;
    let signed_in = app.try_sign_up(&mut app.soft_key()).await.unwrap();
    let id = signed_in.session.user_id;
    people::set_role(&app.ctx, id, Role::Admin).await.unwrap();
    let admin = app.person(&signed_in).await;
    let mut added = app.soft_key();
    let new = app.register(&mut added, ChallengePurpose::AddKey, Some(id)).await;
    people::add_credential(&app.ctx, &admin, &new, None).await.unwrap();
    let mut halt = async || {
        let (name, reason) = (app::kill_switches::TRADING.to_owned(), "incident".to_owned());
        let halt = AdminRequest::Service(ServiceStep::Switch { name, is_off: true, reason });
        let act = admin::prepare(&app.ctx, &admin, &halt).await.unwrap();
        let proof = Proof::Passkey(added.assert(&act.challenge.to_bytes()));
        admin::confirm(&app.ctx, &admin, act.id, &proof, device().ip).await
    };
    let refused = halt().await.unwrap_err().to_string();
    assert!(refused.starts_with("VALIDATION_FAILED"), "{refused}");
    app.clock.advance(DAY_MS);
    halt().await.unwrap();
    assert!(app.ctx.process.switches.is_trading_halted());
}

#[tokio::test]
async fn names_have_no_control_characters() {
    let app = TestApp::new().await;
    let (_, person) = app.sign_up().await;
    let own = credentials(&app, &person).await[0].id;
    for name in ["eve\u{1b}]0;x\u{7}", "eve\r\nadmin", "eve\u{9b}31m", "eve\u{202e}nimda"] {
        let wanted = NewApiKey {
            name: name.to_owned(),
            scopes: Scopes::all(),
            expires_at: None,
            ip_allowlist: IpAllowlist::default(),
            webhook_url: None,
            is_agent: false,
        };
        for refused in [
            people::rename(&app.ctx, &person, name).await.unwrap_err().to_string(),
            people::rename_credential(&app.ctx, &person, own, name).await.unwrap_err().to_string(),
            people::issue_api_key(&app.ctx, &person, app.ctx.uuid(), wanted).await.unwrap_err().to_string(),
        ] {
            assert!(refused.starts_with("VALIDATION_FAILED"), "{name:?}: {refused}");
        }
    }
}

#[tokio::test]
async fn an_admin_must_have_a_passkey_and_the_pages_must_be_on() {
    let app = TestApp::new().await;
    let (_, person) = app.sign_up().await;
    assert!(matches!(person.require_admin(&app.ctx), Err(PersonError::AdminRequired)));
    people::set_role(&app.ctx, person.user_id(), Role::Admin).await.unwrap();
    let bob = app.user("bob").await;
    let refused = people::set_role(&app.ctx, bob.id, Role::Admin).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::ValidationFailed);
    let changed = people::set_tier(&app.ctx, person.user_id(), Tier::Developer).await.unwrap();
    assert_eq!((changed.role, changed.tier), (Role::Admin, Tier::Developer));
    let unknown = domain::ids::UserId(app.ctx.uuid());
    let refused = people::set_tier(&app.ctx, unknown, Tier::Free).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::ResourceNotFound);
}

#[tokio::test]
async fn a_page_cannot_register_a_passkey_of_another_challenge() {
    let app = TestApp::new().await;
    let mut key = app.soft_key();
    let NewCredential::Passkey(mut given) = app.register(&mut key, ChallengePurpose::SignUp, None).await
    else {
        panic!("a passkey")
    };
    let issued = issue_challenge(&app.ctx, ChallengePurpose::SignUp, None).await.unwrap();
    given.client_data_json = key.client_data("webauthn.get", &issued.challenge.to_bytes());
    let wanted = SignUp {
        name: None,
        credential: NewCredential::Passkey(given),
        device: device(),
        country: Country::default(),
        accepted_terms: None,
    };
    assert_eq!(passkey_refusal(sign_up(&app.ctx, &wanted).await), PasskeyRefusal::WrongType);
}
