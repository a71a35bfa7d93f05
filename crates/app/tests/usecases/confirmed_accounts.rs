//! Where a wallet signs in: to the accounts that it has confirmed itself, whoever else names it as an
//! owner.

use alloy_primitives::Address;
use app::accounts;
use app::owner_acts::{self, OwnerActRequest};
use app::passkeys::{NewCredential, Proof, WalletProof};
use app::people::{self, Country, SignUp, sign_up};
use app::sessions::{self, Person, SignedIn};
use app::{AccountChoice, AppError, PersonError};
use chain::{Signer, calls};
use domain::ErrorCode;
use domain::ids::CredentialId;
use domain::owner_act::OwnerActStatus;
use domain::passkey::ChallengePurpose;
use domain::session::SessionToken;
use domain::time::MINUTE_MS;
use store::Store;
use testkit::{RpcFault, TestApp, TestUser, device};

fn wallet(app: &TestApp) -> Signer {
    Signer::random(app.ctx.random()).unwrap()
}

async fn try_sign_up(app: &TestApp, wallet: &Signer) -> Result<SignedIn, PersonError> {
    let credential = NewCredential::Wallet(app.sign_text(wallet, ChallengePurpose::SignUp, None).await);
    let (device, country) = (device(), Country::default());
    sign_up(&app.ctx, &SignUp { name: None, credential, device, country, accepted_terms: None }).await
}

/// A person who signed up with a wallet.
async fn person(app: &TestApp, wallet: &Signer) -> (Person, TestUser) {
    let person = app.person(&try_sign_up(app, wallet).await.unwrap()).await;
    let account = accounts::account_of(&app.ctx, person.user_id()).await.unwrap();
    let user = TestUser {
        id: person.user_id(),
        account: account.address,
        owner: wallet.clone(),
        salt: account.salt,
    };
    (person, user)
}

async fn sign_in_to(
    app: &TestApp,
    proof: &WalletProof,
    account: Option<Address>,
) -> Result<Person, PersonError> {
    let signed_in = sessions::sign_in(&app.ctx, &Proof::Wallet(proof.clone()), account, &device()).await?;
    Ok(app.person(&signed_in).await)
}

async fn try_sign_in(app: &TestApp, wallet: &Signer) -> Result<Person, PersonError> {
    let proof = app.sign_text(wallet, ChallengePurpose::SignIn, None).await;
    sign_in_to(app, &proof, None).await
}

/// Adds the wallet to the person's sign-in keys, with its own signature.
async fn add_wallet(app: &TestApp, person: &Person, wallet: &Signer) -> CredentialId {
    let proof = app.sign_text(wallet, ChallengePurpose::AddKey, Some(person.user_id())).await;
    people::add_credential(&app.ctx, person, &NewCredential::Wallet(proof), None).await.unwrap().id
}

async fn add_owner(app: &TestApp, user: &TestUser, owner: &Signer) {
    let act = app.act(user, &OwnerActRequest::AddOwner(owner.owner())).await;
    assert_eq!(act.status, OwnerActStatus::Done, "{act:?}");
}

async fn remove_owner(app: &TestApp, user: &TestUser, owner: &Signer) {
    let act = app.act(user, &OwnerActRequest::RemoveOwner(owner.owner())).await;
    assert_eq!(act.status, OwnerActStatus::Done, "{act:?}");
}

/// An account whose second owner was removed by a batch that did not pass through the service. Returns
/// the account, the removed wallet and its open session.
async fn removed_on_chain(app: &TestApp) -> (TestUser, Signer, SignedIn) {
    let (first, lost) = (wallet(app), wallet(app));
    let (ada, user) = person(app, &first).await;
    add_wallet(app, &ada, &lost).await;
    add_owner(app, &user, &lost).await;
    accounts::owners(&app.ctx, user.id).await.unwrap();
    let proof = app.sign_text(&lost, ChallengePurpose::SignIn, None).await;
    let open = sessions::sign_in(&app.ctx, &Proof::Wallet(proof), None, &device()).await.unwrap();
    app.as_owner(&user, user.account, calls::remove_owner(&lost.owner())).await;
    (user, lost, open)
}

fn is_unknown<T>(refused: &Result<T, PersonError>) -> bool {
    matches!(refused, Err(PersonError::UnknownCredential))
}

store::on_each_engine! {
    async fn a_stranger_who_adds_a_wallet_as_an_owner_decides_nothing(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (_, eve) = person(&app, &wallet(&app)).await;
        let (ada, ben) = (wallet(&app), wallet(&app));
        for victim in [&ada, &ben] {
            add_owner(&app, &eve, victim).await;
            assert!(is_unknown(&try_sign_in(&app, victim).await), "it has no account yet");
        }
        // While the stranger's account has the wallet as an owner.
        let (signed_up, own) = person(&app, &ada).await;
        assert_ne!((own.id, own.account), (eve.id, eve.account));
        assert_eq!(try_sign_in(&app, &ada).await.unwrap().user_id(), own.id);
        let owners = accounts::owners(&app.ctx, own.id).await.unwrap().owners;
        assert_eq!(owners, [ada.owner()]);
        assert_eq!(people::count_other_owners(&app.ctx, &signed_up, &owners).await.unwrap(), 0);
        // And after the stranger has taken it off again.
        for victim in [&ada, &ben] {
            remove_owner(&app, &eve, victim).await;
        }
        assert_eq!(try_sign_in(&app, &ada).await.unwrap().user_id(), own.id);
        let (_, own) = person(&app, &ben).await;
        assert_eq!(try_sign_in(&app, &ben).await.unwrap().user_id(), own.id);
    }

    async fn a_second_owner_recovers_its_account_although_a_stranger_added_it_elsewhere(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (first, second) = (wallet(&app), wallet(&app));
        let (ada, user) = person(&app, &first).await;
        add_wallet(&app, &ada, &second).await;
        add_owner(&app, &user, &second).await;
        let (_, eve) = person(&app, &wallet(&app)).await;
        add_owner(&app, &eve, &second).await;
        assert_eq!(try_sign_in(&app, &second).await.unwrap().user_id(), user.id);
        remove_owner(&app, &eve, &second).await;
        assert_eq!(try_sign_in(&app, &second).await.unwrap().user_id(), user.id);
    }

    async fn an_owner_that_was_only_added_on_chain_signs_in_after_it_has_signed_the_account(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (first, paper, stranger) = (wallet(&app), wallet(&app), wallet(&app));
        let (ada, user) = person(&app, &first).await;
        add_owner(&app, &user, &paper).await;
        let owners = accounts::owners(&app.ctx, user.id).await.unwrap().owners;
        assert_eq!(people::count_other_owners(&app.ctx, &ada, &owners).await.unwrap(), 1);
        assert!(is_unknown(&try_sign_in(&app, &paper).await));
        // The choice of a page is no signature, and no other text is one.
        let unnamed = app.sign_text(&paper, ChallengePurpose::SignIn, None).await;
        assert!(is_unknown(&sign_in_to(&app, &unnamed, Some(user.account)).await));
        let named = WalletProof { account: Some(user.account), ..unnamed };
        let refused = sign_in_to(&app, &named, None).await.unwrap_err();
        assert!(matches!(refused, PersonError::WalletSignature), "{refused:?}");
        // Only owners confirm an account.
        let named = app.sign_text_of(&stranger, user.account).await;
        assert!(is_unknown(&sign_in_to(&app, &named, None).await));
        let named = app.sign_text_of(&paper, Address::repeat_byte(7)).await;
        assert!(is_unknown(&sign_in_to(&app, &named, None).await));

        let named = app.sign_text_of(&paper, user.account).await;
        let entered = sign_in_to(&app, &named, None).await.unwrap();
        assert_eq!(entered.user_id(), user.id);
        assert_eq!(try_sign_in(&app, &paper).await.unwrap().user_id(), user.id);
        // Who signed up knows both. To who came later, the other one may be a stranger.
        assert_eq!(people::count_other_owners(&app.ctx, &ada, &owners).await.unwrap(), 0);
        assert_eq!(people::count_other_owners(&app.ctx, &entered, &owners).await.unwrap(), 1);
        remove_owner(&app, &user, &paper).await;
        assert!(is_unknown(&try_sign_in(&app, &paper).await));
        let named = app.sign_text_of(&paper, user.account).await;
        assert!(is_unknown(&sign_in_to(&app, &named, None).await));
    }

    async fn the_sessions_of_a_removed_owner_end(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (first, lost) = (wallet(&app), wallet(&app));
        let (ada, user) = person(&app, &first).await;
        add_wallet(&app, &ada, &lost).await;
        let open = async |wallet: &Signer| {
            let proof = app.sign_text(wallet, ChallengePurpose::SignIn, None).await;
            sessions::sign_in(&app.ctx, &Proof::Wallet(proof), None, &device()).await.unwrap().token
        };
        let is_open = async |token: &SessionToken| {
            sessions::find(&app.ctx, token.expose(), device().ip).await.unwrap().is_some()
        };
        // A wallet that only signs in is no removed owner.
        let token = open(&lost).await;
        accounts::owners(&app.ctx, user.id).await.unwrap();
        assert!(is_open(&token).await);
        add_owner(&app, &user, &lost).await;
        accounts::owners(&app.ctx, user.id).await.unwrap();
        assert!(is_open(&token).await);

        remove_owner(&app, &user, &lost).await;
        let kept = open(&first).await;
        accounts::owners(&app.ctx, user.id).await.unwrap();
        assert!(!is_open(&token).await);
        assert!(is_open(&kept).await);
    }

    async fn an_owner_that_was_removed_without_this_service_is_out(store: Store) {
        let app = TestApp::with().on(store).start().await;
        // Each case is the first to read the owners after the removal.
        let (_, lost, _) = removed_on_chain(&app).await;
        assert!(is_unknown(&try_sign_in(&app, &lost).await));

        let (user, lost, open) = removed_on_chain(&app).await;
        let proof = app.sign_text(&lost, ChallengePurpose::StepUp, Some(user.id)).await;
        let person = app.person(&open).await;
        let renewed = sessions::step_up(&app.ctx, &person, &Proof::Wallet(proof), &device()).await;
        assert!(is_unknown(&renewed), "{renewed:?}");

        let (user, _, open) = removed_on_chain(&app).await;
        let person = app.person(&open).await;
        person.require_step_up(app.ctx.now()).unwrap();
        let proof = app.sign_text(&wallet(&app), ChallengePurpose::AddKey, Some(user.id)).await;
        let added = people::add_credential(&app.ctx, &person, &NewCredential::Wallet(proof), None).await;
        assert!(matches!(added, Err(PersonError::SignedOut)), "{added:?}");

        let (_, _, open) = removed_on_chain(&app).await;
        app.clock.advance(MINUTE_MS);
        let found = sessions::find(&app.ctx, open.token.expose(), device().ip).await.unwrap();
        assert!(found.is_none(), "the session ends with its next use");
    }

    async fn a_wallet_that_only_signs_in_stays_signed_in_when_the_owners_change(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (first, other) = (wallet(&app), wallet(&app));
        let (ada, user) = person(&app, &first).await;
        add_wallet(&app, &ada, &other).await;
        let proof = app.sign_text(&other, ChallengePurpose::SignIn, None).await;
        let signed_in = sessions::sign_in(&app.ctx, &Proof::Wallet(proof), None, &device()).await.unwrap();
        add_owner(&app, &user, &wallet(&app)).await;
        accounts::owners(&app.ctx, user.id).await.unwrap();
        let found = sessions::find(&app.ctx, signed_in.token.expose(), device().ip).await.unwrap();
        assert!(found.is_some());
    }

    async fn a_wallet_that_owns_nothing_confirms_no_account(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (_, user) = person(&app, &wallet(&app)).await;
        let named = app.sign_text_of(&wallet(&app), user.account).await;
        assert!(is_unknown(&sign_in_to(&app, &named, None).await));
    }

    async fn with_several_accounts_the_person_chooses(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (ada, ben, eve) = (wallet(&app), wallet(&app), wallet(&app));
        let (_, own) = person(&app, &ada).await;
        let (shared_person, shared) = person(&app, &ben).await;
        let (_, foreign) = person(&app, &eve).await;
        // The choices are listed by age.
        app.clock.advance(1_000);
        add_wallet(&app, &shared_person, &ada).await;
        let proof = app.sign_text(&ada, ChallengePurpose::SignIn, None).await;
        let refused = sign_in_to(&app, &proof, None).await.unwrap_err();
        let PersonError::SeveralAccounts { accounts } = refused else { panic!("{refused:?}") };
        let listed: Vec<Address> = accounts.iter().map(|choice| choice.account).collect();
        assert_eq!(listed, [own.account, shared.account]);
        assert!(matches!(&accounts[0], AccountChoice { name, .. } if name == "New user"));
        assert!(is_unknown(&sign_in_to(&app, &proof, Some(foreign.account)).await));
        // The same signature counts once, for the chosen account.
        let chosen = sign_in_to(&app, &proof, Some(shared.account)).await.unwrap();
        assert_eq!(chosen.user_id(), shared.id);
        let again = sign_in_to(&app, &proof, Some(own.account)).await.unwrap_err();
        assert!(matches!(again, PersonError::ChallengeUnusable), "{again:?}");
        let proof = app.sign_text(&ada, ChallengePurpose::SignIn, None).await;
        assert_eq!(sign_in_to(&app, &proof, Some(own.account)).await.unwrap().user_id(), own.id);
        // A signed name is a choice, too.
        let named = app.sign_text_of(&ada, own.account).await;
        assert_eq!(sign_in_to(&app, &named, None).await.unwrap().user_id(), own.id);
        // The wallet steps up in the account of its session.
        let step_up = Proof::Wallet(app.sign_text(&ada, ChallengePurpose::StepUp, Some(shared.id)).await);
        let renewed = sessions::step_up(&app.ctx, &chosen, &step_up, &device()).await.unwrap();
        assert_eq!(app.person(&renewed).await.user_id(), shared.id);
    }

    async fn an_account_that_the_operator_created_blocks_no_sign_up(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let created = app.user("ada").await;
        let (_, own) = person(&app, &created.owner).await;
        let proof = app.sign_text(&created.owner, ChallengePurpose::SignIn, None).await;
        let refused = sign_in_to(&app, &proof, None).await.unwrap_err();
        let PersonError::SeveralAccounts { accounts } = refused else { panic!("{refused:?}") };
        assert_eq!(accounts.len(), 2);
        for user in [&created, &own] {
            let proof = app.sign_text(&created.owner, ChallengePurpose::SignIn, None).await;
            assert_eq!(sign_in_to(&app, &proof, Some(user.account)).await.unwrap().user_id(), user.id);
        }
        // The wallet itself has signed up once: it signs in with that account.
        let again = try_sign_up(&app, &created.owner).await.unwrap_err();
        assert!(matches!(again, PersonError::CredentialTaken), "{again:?}");
    }

    async fn a_wallet_signs_up_although_the_operator_created_an_account_for_it(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let created = app.user("ada").await;
        let (_, own) = person(&app, &created.owner).await;
        assert_ne!((own.id, own.account), (created.id, created.account));
    }

    async fn of_two_sign_ups_with_one_wallet_one_succeeds(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = wallet(&app);
        let done = futures::future::join_all([try_sign_up(&app, &ada), try_sign_up(&app, &ada)]).await;
        assert_eq!(done.iter().filter(|done| done.is_ok()).count(), 1);
        let refused = done.into_iter().find_map(Result::err).unwrap();
        assert!(matches!(refused, PersonError::CredentialTaken), "{refused:?}");
    }

    async fn a_wallet_that_lost_its_account_signs_up_again(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (first, second) = (wallet(&app), wallet(&app));
        let (ada, user) = person(&app, &first).await;
        add_wallet(&app, &ada, &second).await;
        add_owner(&app, &user, &second).await;
        remove_owner(&app, &TestUser { owner: second, ..user.clone() }, &first).await;
        assert!(is_unknown(&try_sign_in(&app, &first).await));
        let (_, own) = person(&app, &first).await;
        assert_ne!(own.account, user.account);
        assert_eq!(try_sign_in(&app, &first).await.unwrap().user_id(), own.id);
    }

    async fn a_key_that_only_signs_in_removes_no_owner_from_sign_in(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (first, backup, other) = (wallet(&app), wallet(&app), wallet(&app));
        let (ada, user) = person(&app, &first).await;
        let id = add_wallet(&app, &ada, &backup).await;
        add_wallet(&app, &ada, &other).await;
        let thief = try_sign_in(&app, &other).await.unwrap();
        let remove = async || people::remove_credential(&app.ctx, &thief, id).await;
        // An act that makes it an owner is signed, and in no block yet.
        app.signed_act(&user, &OwnerActRequest::AddOwner(backup.owner())).await;
        let refused = remove().await.unwrap_err();
        assert!(matches!(refused, PersonError::OwnersChanging), "{refused:?}");
        app.workers.execute(&app.ctx).await;
        let refused = remove().await.unwrap_err();
        assert!(matches!(refused, PersonError::CredentialOwnsAccount), "{refused:?}");
        assert_eq!(try_sign_in(&app, &backup).await.unwrap().user_id(), user.id);
        remove_owner(&app, &user, &backup).await;
        remove().await.unwrap();
        assert!(is_unknown(&try_sign_in(&app, &backup).await));
    }

    async fn a_key_is_not_removed_while_a_signed_act_changes_the_owners(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (ada, user) = person(&app, &wallet(&app)).await;
        let backup = wallet(&app);
        let id = add_wallet(&app, &ada, &backup).await;
        app.signed_act(&user, &OwnerActRequest::AddOwner(backup.owner())).await;
        let refused = people::remove_credential(&app.ctx, &ada, id).await.unwrap_err();
        assert!(matches!(refused, PersonError::OwnersChanging), "{refused:?}");
    }

    async fn the_last_credential_is_not_removed(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (first, paper, key) = (wallet(&app), wallet(&app), wallet(&app));
        let (ada, user) = person(&app, &first).await;
        let id = add_wallet(&app, &ada, &key).await;
        add_owner(&app, &user, &paper).await;
        remove_owner(&app, &user, &first).await;
        let entered = try_sign_in(&app, &key).await.unwrap();
        let refused = people::remove_credential(&app.ctx, &entered, id).await.unwrap_err();
        assert!(matches!(refused, PersonError::LastCredential), "{refused:?}");
    }
}

#[tokio::test]
async fn while_no_node_answers_an_owner_signs_in_and_adds_no_key() {
    let app = TestApp::with().nodes(1).start().await;
    let ada = wallet(&app);
    let (signed_up, _) = person(&app, &ada).await;
    app.proxies[0].set(RpcFault::Refused).await;
    let entered = try_sign_in(&app, &ada).await.unwrap();
    assert!(matches!(entered.require_step_up(app.ctx.now()), Err(PersonError::StepUpRequired)));
    people::pause_trading(&app.ctx, &entered).await.unwrap();
    let proof = app.sign_text(&ada, ChallengePurpose::StepUp, Some(entered.user_id())).await;
    let renewed = sessions::step_up(&app.ctx, &entered, &Proof::Wallet(proof), &device()).await;
    let new = app.sign_text(&wallet(&app), ChallengePurpose::AddKey, Some(entered.user_id())).await;
    let added = people::add_credential(&app.ctx, &signed_up, &NewCredential::Wallet(new), None).await;
    for refused in [renewed.map(drop), added.map(drop)] {
        let Err(PersonError::App(AppError { code, .. })) = &refused else { panic!("{refused:?}") };
        assert_eq!(*code, ErrorCode::DependencyUnavailable);
    }
}

#[tokio::test]
async fn a_credential_is_not_removed_while_nobody_can_ask_the_chain_who_owns_the_account() {
    let app = TestApp::with().nodes(1).start().await;
    let (ada, _) = person(&app, &wallet(&app)).await;
    let id = add_wallet(&app, &ada, &wallet(&app)).await;
    app.proxies[0].set(RpcFault::Refused).await;
    let refused = people::remove_credential(&app.ctx, &ada, id).await.unwrap_err();
    let PersonError::App(AppError { code, .. }) = &refused else { panic!("{refused:?}") };
    assert_eq!(*code, ErrorCode::DependencyUnavailable, "{refused}");
    assert_eq!(people::list_credentials(&app.ctx, &ada).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_removed_key_is_no_longer_the_second_owner() {
    let app = TestApp::new().await;
    let second = wallet(&app);
    let (ada, user) = person(&app, &wallet(&app)).await;
    let id = add_wallet(&app, &ada, &second).await;
    owner_acts::choose_second_owner(&app.ctx, &ada, Some(second.owner())).await.unwrap();
    people::remove_credential(&app.ctx, &ada, id).await.unwrap();
    assert_eq!(owner_acts::find_second_owner(&app.ctx, user.id).await.unwrap(), None);
}

#[tokio::test]
async fn only_a_passkey_that_signs_in_becomes_an_owner() {
    let app = TestApp::new().await;
    let (ada, user) = person(&app, &wallet(&app)).await;
    let foreign = domain::credential::CredentialKey::Passkey(app.soft_key().public_key());
    let foreign = app::passkeys::owner_of(&foreign);
    let chosen = owner_acts::choose_second_owner(&app.ctx, &ada, Some(foreign)).await.unwrap_err();
    let request = OwnerActRequest::AddOwner(foreign);
    let prepared = people::prepare_act(&app.ctx, &ada, Country::default(), &request).await.unwrap_err();
    for refused in [chosen, prepared] {
        let PersonError::App(AppError { code, .. }) = &refused else { panic!("{refused:?}") };
        assert_eq!(*code, ErrorCode::ValidationFailed, "{refused}");
    }
    let mut key = app.soft_key();
    let new = app.register(&mut key, ChallengePurpose::AddKey, Some(user.id)).await;
    let added = people::add_credential(&app.ctx, &ada, &new, None).await.unwrap();
    let own = app::passkeys::owner_of(&added.key);
    owner_acts::choose_second_owner(&app.ctx, &ada, Some(own)).await.unwrap();
}
