//! `GET /v1/account/readiness`: every stage from a new user to the first trade.

use app::keys::IssueKey;
use domain::ids::UserId;
use domain::key::Tier;
use domain::time::DAY_MS;
use domain::{ErrorCode, Usdc};
use http_testkit::{Client, Keyed, ServeHttp};
use serde_json::Value;
use store::users::User;
use testkit::{Fault, TestApp, key_of};

use crate::scene::{Scene, assert_refused, text};

const PATH: &str = "/v1/account/readiness";

async fn readiness(client: &Client<Keyed>) -> Value {
    client.get(PATH).await.ok()["readiness"].take()
}

/// Returns whether account, delegation and funds are ready, and the next steps. `ready` must be all
/// three.
async fn stage(client: &Client<Keyed>) -> ([bool; 3], Vec<String>) {
    let readiness = readiness(client).await;
    let parts =
        ["provisioned", "delegated", "funded"].map(|part| readiness[part]["ready"].as_bool().unwrap());
    assert_eq!(readiness["ready"], parts == [true; 3], "{readiness}");
    let steps = readiness["nextSteps"].as_array().unwrap().iter();
    assert!(steps.clone().all(|step| text(&step["detail"]).ends_with('.')), "{readiness}");
    (parts, steps.map(|step| text(&step["code"]).to_owned()).collect())
}

const NO_ACCOUNT: &str = "SMART_ACCOUNT_NOT_PROVISIONED";
const NO_DELEGATION: &str = "WALLET_DELEGATION_NOT_ENABLED";
const NO_MONEY: &str = "INSUFFICIENT_BALANCE";

#[tokio::test]
async fn a_user_without_an_account_gets_the_account_as_the_first_step() {
    let app = TestApp::new().await;
    let mut wanted = key_of(&app.user("ada").await, Tier::Mm);
    wanted.user_id = UserId(app.ctx.uuid());
    let user = User {
        id: wanted.user_id,
        name: "eve".to_owned(),
        role: domain::credential::Role::User,
        tier: Tier::Free,
        created_at: app.ctx.now(),
    };
    let added = app.ctx.store.write(user, |tx, user| Box::pin(store::users::insert(tx, user))).await;
    added.unwrap();
    let client = app.http().with(&app.issue(wanted).await.unwrap());
    client.get("/v1/portfolio").await.refused(ErrorCode::SmartAccountNotProvisioned);
    insta::assert_snapshot!(client.get(PATH).await);
}

#[tokio::test]
async fn readiness_follows_each_setup_step_and_the_last_allows_trades() {
    let Scene { app, http, market, .. } = Scene::new().await;
    let bob = app.user("bob").await;
    let key = app.disabled_key(&bob, Tier::Mm).await;
    let client = http.with(&key);
    let buy = || client.buy(market, 0, "40");
    assert_eq!(
        stage(&client).await,
        ([false; 3], [NO_ACCOUNT, NO_DELEGATION, NO_MONEY].map(String::from).into())
    );
    assert_refused(&app, buy(), ErrorCode::SmartAccountNotProvisioned).await;
    // The address is known before the account exists, and can already receive funds.
    let address = bob.account.to_string().to_lowercase();
    assert_eq!(readiness(&client).await["provisioned"]["address"], address);
    app.mint(bob.account, Usdc::from_whole(40)).await;
    assert_eq!(
        stage(&client).await,
        ([false, false, true], [NO_ACCOUNT, NO_DELEGATION].map(String::from).into())
    );
    // Enabling another key deploys the account, but does not enable this key.
    app.key(&bob, Tier::Mm).await;
    assert_eq!(stage(&client).await, ([true, false, true], [NO_DELEGATION].map(String::from).into()));
    assert_refused(&app, buy(), ErrorCode::WalletDelegationNotEnabled).await;
    app.enable(&bob, &key).await;
    assert_eq!(stage(&client).await, ([true; 3], vec![]));
    insta::assert_snapshot!(client.get(PATH).await);
    buy().await.created();
    // The whole balance is reserved now.
    assert_eq!(stage(&client).await, ([true, true, false], [NO_MONEY].map(String::from).into()));
    assert_refused(&app, client.buy(market, 0, "0.01"), ErrorCode::InsufficientBalance).await;
}

#[tokio::test]
async fn an_expired_delegation_is_missing_again() {
    let scene = Scene::new().await;
    let expires_at = Some(scene.app.ctx.now().plus_ms(400 * DAY_MS));
    let wanted = IssueKey { expires_at, ..key_of(&scene.ada, Tier::Mm) };
    let key = scene.app.issue(wanted).await.unwrap();
    scene.app.enable(&scene.ada, &key).await;
    let client = scene.http.with(&key);
    assert_eq!(stage(&client).await.0, [true; 3]);
    // A delegation lasts at most a year.
    scene.app.advance_ms(366 * DAY_MS).await;
    assert_eq!(stage(&client).await, ([true, false, true], [NO_DELEGATION].map(String::from).into()));
}

#[tokio::test]
async fn an_unreachable_chain_is_an_unavailable_dependency() {
    let scene = Scene::new().await;
    scene.app.faults.always("eth_call", Fault::LostRequest);
    scene.client.get(PATH).await.refused(ErrorCode::DependencyUnavailable);
}
