//! People who sign up and sign in with wallets.

use alloy_primitives::{Bytes, eip191_hash_message};
use app::passkeys::{NewCredential, Proof, WalletProof, issue_challenge, wallet_text};
use app::people::{self, Country, SignUp, sign_up};
use app::sessions::{self, Person, SignedIn};
use app::{Ctx, PersonError};
use chain::Signer;
use domain::ids::UserId;
use domain::passkey::ChallengePurpose;
use domain::time::MINUTE_MS;
use store::Store;
use testkit::{TestApp, device};

fn wallet(app: &TestApp) -> Signer {
    Signer::random(app.ctx.random()).unwrap()
}

async fn try_sign_up(app: &TestApp, wallet: &Signer) -> Result<SignedIn, PersonError> {
    let proof = app.sign_text(wallet, ChallengePurpose::SignUp, None).await;
    let credential = NewCredential::Wallet(proof);
    sign_up(
        &app.ctx,
        &SignUp {
            name: None,
            credential,
            device: device(),
            country: Country::default(),
            accepted_terms: None,
        },
    )
    .await
}

async fn sign_in_with(ctx: &Ctx, proof: WalletProof) -> Result<SignedIn, PersonError> {
    sessions::sign_in(ctx, &Proof::Wallet(proof), None, &device()).await
}

async fn step_up(
    app: &TestApp,
    person: &Person,
    wallet: &Signer,
    user_id: UserId,
) -> Result<SignedIn, PersonError> {
    let proof = app.sign_text(wallet, ChallengePurpose::StepUp, Some(user_id)).await;
    sessions::step_up(&app.ctx, person, &Proof::Wallet(proof), &device()).await
}

store::on_each_engine! {
    async fn a_wallet_signs_up_and_in_and_owns_the_account(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let wallet = wallet(&app);
        let signed_up = try_sign_up(&app, &wallet).await.unwrap();
        let person = app.person(&signed_up).await;
        assert_eq!(person.user().name, "New user");
        let owners = app::accounts::owners(&app.ctx, person.user_id()).await.unwrap().owners;
        assert_eq!(owners, [wallet.owner()]);
        let proof = app.sign_text(&wallet, ChallengePurpose::SignIn, None).await;
        let signed_in = sign_in_with(&app.ctx, proof.clone()).await.unwrap();
        assert_eq!(app.person(&signed_in).await.user_id(), person.user_id());
        let replayed = sign_in_with(&app.ctx, proof).await.unwrap_err();
        assert!(matches!(replayed, PersonError::ChallengeUnusable), "{replayed:?}");
        let taken = try_sign_up(&app, &wallet).await.unwrap_err();
        assert!(matches!(taken, PersonError::CredentialTaken), "{taken:?}");
    }

    async fn the_owner_of_an_account_that_the_operator_created_signs_in(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let ada = app.user("ada").await;
        for _ in 0..2 {
            let proof = app.sign_text(&ada.owner, ChallengePurpose::SignIn, None).await;
            let signed_in = sign_in_with(&app.ctx, proof).await.unwrap();
            let person = app.person(&signed_in).await;
            assert_eq!(person.user_id(), ada.id);
            assert!(person.caller().is_ok(), "the first sign-in makes the web key");
        }
        let person = {
            let proof = app.sign_text(&ada.owner, ChallengePurpose::SignIn, None).await;
            app.person(&sign_in_with(&app.ctx, proof).await.unwrap()).await
        };
        assert_eq!(people::list_credentials(&app.ctx, &person).await.unwrap().len(), 1);
    }

    async fn a_wallet_that_signs_in_confirms_nothing_if_the_user_has_a_passkey(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (mut key, person) = app.sign_up().await;
        let (user_id, wallet) = (person.user_id(), wallet(&app));
        let proof = app.sign_text(&wallet, ChallengePurpose::AddKey, Some(user_id)).await;
        people::add_credential(&app.ctx, &person, &NewCredential::Wallet(proof), None).await.unwrap();
        let proof = app.sign_text(&wallet, ChallengePurpose::SignIn, None).await;
        let signed_in = sign_in_with(&app.ctx, proof).await.unwrap();
        let entered = app.person(&signed_in).await;
        assert_eq!((entered.user_id(), &entered.session().times), (user_id, &signed_in.session.times));
        let add = async |person: &Person| {
            let new = app.register(&mut app.soft_key(), ChallengePurpose::AddKey, Some(user_id)).await;
            people::add_credential(&app.ctx, person, &new, None).await
        };
        let refused = add(&entered).await.unwrap_err();
        assert!(matches!(refused, PersonError::StepUpRequired), "{refused:?}");
        let refused = step_up(&app, &entered, &wallet, user_id).await.unwrap_err();
        assert!(matches!(refused, PersonError::PasskeyRequired), "{refused:?}");
        let renewed = app.try_step_up(&entered, &mut key).await.unwrap();
        add(&app.person(&renewed).await).await.unwrap();
    }

    async fn a_passkey_that_no_longer_signs_in_keeps_no_wallet_from_stepping_up(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let (mut key, person) = app.sign_up().await;
        let (user_id, wallet) = (person.user_id(), wallet(&app));
        let proof = app.sign_text(&wallet, ChallengePurpose::AddKey, Some(user_id)).await;
        people::add_credential(&app.ctx, &person, &NewCredential::Wallet(proof), None).await.unwrap();
        app.replace_passkey(&person, &mut key, &wallet).await;
        let proof = app.sign_text(&wallet, ChallengePurpose::SignIn, None).await;
        let entered = app.person(&sign_in_with(&app.ctx, proof).await.unwrap()).await;
        entered.require_step_up(app.ctx.now()).unwrap();
        step_up(&app, &entered, &wallet, user_id).await.unwrap();
    }
}

#[tokio::test]
async fn only_the_text_that_the_service_wrote_signs_in() {
    let app = TestApp::new().await;
    let ada = wallet(&app);
    try_sign_up(&app, &ada).await.unwrap();
    let refused = async |proof| sign_in_with(&app.ctx, proof).await.unwrap_err();
    // Another text, with a valid signature over it.
    let issued = issue_challenge(&app.ctx, ChallengePurpose::SignIn, None).await.unwrap();
    let text = wallet_text(&app.ctx, &issued, ada.address(), None).await.unwrap();
    let (challenge, address) = (issued.challenge, ada.address());
    let sign = |signer: &Signer, text: &str| WalletProof {
        challenge,
        address,
        account: None,
        signature: signer.sign_digest(eip191_hash_message(text)).unwrap(),
    };
    let eve = wallet(&app);
    let other_text = sign(&ada, &text.replace("https://", "http://"));
    let truncated = sign(&ada, text.trim_end_matches('Z'));
    let other_signer = sign(&eve, &text);
    let whole = sign(&ada, &text);
    let empty = WalletProof { signature: Bytes::new(), ..whole.clone() };
    let as_passkey = WalletProof { signature: vec![7; 200].into(), ..whole.clone() };
    let other_address = WalletProof { address: eve.address(), ..whole.clone() };
    for proof in [other_text, other_signer, truncated, empty, as_passkey, other_address] {
        let error = refused(proof.clone()).await;
        assert!(matches!(error, PersonError::WalletSignature), "{error:?} {proof:?}");
    }
    sign_in_with(&app.ctx, whole).await.unwrap();
    let to_step_up = app.sign_text(&ada, ChallengePurpose::SignUp, None).await;
    assert!(matches!(refused(to_step_up).await, PersonError::ChallengeUnusable));
    let late = app.sign_text(&ada, ChallengePurpose::SignIn, None).await;
    app.clock.advance(5 * MINUTE_MS);
    assert!(matches!(refused(late).await, PersonError::ChallengeUnusable));
    let stranger = app.sign_text(&eve, ChallengePurpose::SignIn, None).await;
    assert!(matches!(refused(stranger).await, PersonError::UnknownCredential));
}

#[tokio::test]
async fn a_wallet_steps_up_unless_the_user_has_a_passkey() {
    let app = TestApp::new().await;
    let wallet = wallet(&app);
    let person = app.person(&try_sign_up(&app, &wallet).await.unwrap()).await;
    let user_id = person.user_id();
    let person = app.person(&step_up(&app, &person, &wallet, user_id).await.unwrap()).await;
    let mut key = app.soft_key();
    let new = app.register(&mut key, ChallengePurpose::AddKey, Some(user_id)).await;
    people::add_credential(&app.ctx, &person, &new, None).await.unwrap();
    let refused = step_up(&app, &person, &wallet, user_id).await.unwrap_err();
    assert!(matches!(refused, PersonError::PasskeyRequired), "{refused:?}");
    app.try_step_up(&person, &mut key).await.unwrap();
}

#[tokio::test]
async fn a_wallet_is_added_only_by_its_own_signature() {
    let app = TestApp::new().await;
    let (_, person) = app.sign_up().await;
    let (own, others) = (wallet(&app), wallet(&app));
    let purpose = ChallengePurpose::AddKey;
    let forged = WalletProof {
        address: others.address(),
        ..app.sign_text(&own, purpose, Some(person.user_id())).await
    };
    let refused = people::add_credential(&app.ctx, &person, &NewCredential::Wallet(forged), None).await;
    assert!(matches!(refused.unwrap_err(), PersonError::WalletSignature));
    let proof = app.sign_text(&own, purpose, Some(person.user_id())).await;
    people::add_credential(&app.ctx, &person, &NewCredential::Wallet(proof), None).await.unwrap();
    let proof = app.sign_text(&own, ChallengePurpose::SignIn, None).await;
    let signed_in = sign_in_with(&app.ctx, proof).await.unwrap();
    assert_eq!(app.person(&signed_in).await.user_id(), person.user_id());
}
