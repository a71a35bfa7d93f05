//! One request creates one trade, no matter how often it is sent.

use app::trades::Accepted;
use domain::ErrorCode;
use domain::key::Tier;
use domain::time::DAY_MS;
use domain::trade::{State, Status};
use futures::future::join_all;
use store::Store;
use testkit::TestApp;

use crate::scene::{Scene, assert_refused};

#[tokio::test]
async fn the_same_request_with_the_same_key_is_replayed() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let trade = key.buy(&market, 0, "25").idempotent("k").await;
    let rows = app.rows().await;
    assert_eq!(key.buy(&market, 0, "25").idempotent("k").replayed().await, trade);
    // A different spelling of the amount is the same request.
    assert_eq!(key.buy(&market, 0, "25.000000").idempotent("k").replayed().await.id, trade.id);
    assert_eq!(app.rows().await, rows);
}

#[tokio::test]
async fn another_request_with_the_same_key_is_a_conflict() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let trade = key.buy(&market, 0, "25").idempotent("k").await;
    for other in [
        key.buy(&market, 0, "25.000001"),
        key.buy(&market, 1, "25"),
        key.sell(&market, 0, "25"),
        key.buy(&market, 0, "25").in_tokens(),
        key.buy(&market, 0, "25").with(|draft| draft.max_slippage_bps = Some(100)),
        key.buy(&market, 0, "25").with(|draft| draft.market_id = Some("nonsense".to_owned())),
    ] {
        let refusal = assert_refused(&app, other.idempotent("k"), ErrorCode::IdempotencyKeyConflict).await;
        assert_eq!(refusal.extensions["tradeId"], trade.id.to_string());
    }
}

#[tokio::test]
async fn a_malformed_request_with_a_used_key_is_a_conflict() {
    let Scene { app, key, market, .. } = Scene::new().await;
    key.buy(&market, 0, "25").idempotent("k").await;
    let malformed = key.buy(&market, 0, "25.0000000").idempotent("k");
    assert_refused(&app, malformed, ErrorCode::IdempotencyKeyConflict).await;
    let malformed = key.buy(&market, 0, "25.0000000").idempotent("unused");
    assert_refused(&app, malformed, ErrorCode::ValidationFailed).await;
}

#[tokio::test]
async fn a_key_expires_after_exactly_24_hours() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let first = key.buy(&market, 0, "25").idempotent("k").await;
    app.run_workers().await;
    app.advance_ms(DAY_MS - 1).await;
    assert_eq!(key.buy(&market, 0, "25").idempotent("k").replayed().await.id, first.id);
    app.advance_ms(1).await;
    let second = key.buy(&market, 0, "30").idempotent("k").await;
    assert_ne!(first.id, second.id);
    assert_eq!(key.buy(&market, 0, "30").idempotent("k").replayed().await.id, second.id);
    assert_refused(&app, key.buy(&market, 0, "25").idempotent("k"), ErrorCode::IdempotencyKeyConflict).await;
}

#[tokio::test]
async fn idempotency_keys_belong_to_their_user() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let bob = app.user("bob").funded("100").await;
    let bobs = app.key(&bob, Tier::Mm).await;
    let one = key.buy(&market, 0, "25").idempotent("k").named("n").await;
    let other = bobs.buy(&market, 0, "25").idempotent("k").named("n").await;
    assert_ne!(one.id, other.id);
}

#[tokio::test]
async fn two_keys_of_a_user_share_their_idempotency_keys() {
    let Scene { app, ada, key, market } = Scene::new().await;
    let second = app.key(&ada, Tier::Mm).await;
    let trade = key.buy(&market, 0, "25").idempotent("k").await;
    assert_eq!(second.buy(&market, 0, "25").idempotent("k").replayed().await.id, trade.id);
}

#[tokio::test]
async fn a_client_request_id_always_finds_the_current_trade() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let trade = key.buy(&market, 0, "25").named("mine").await;
    assert_eq!(key.buy(&market, 0, "25").named("mine").found().await.state, State::Pending);
    app.run_workers().await;
    app.advance_ms(400 * DAY_MS).await;
    let found = key.buy(&market, 0, "25").named("mine").found().await;
    assert_eq!((found.id, found.state.status()), (trade.id, Status::Completed));
    assert_refused(&app, key.buy(&market, 0, "26").named("mine"), ErrorCode::IdempotencyKeyConflict).await;
}

#[tokio::test]
async fn ids_of_two_different_trades_are_a_conflict() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let one = key.buy(&market, 0, "25").idempotent("k").named("one").await;
    let two = key.buy(&market, 0, "25").named("two").await;
    assert_ne!(one.id, two.id);
    let request = key.buy(&market, 0, "25").idempotent("k").named("two");
    assert_refused(&app, request, ErrorCode::ClientRequestIdConflict).await;
    assert_eq!(key.buy(&market, 0, "25").idempotent("k").named("one").replayed().await.id, one.id);
}

#[tokio::test]
async fn a_rejected_request_does_not_use_up_its_key() {
    let app = TestApp::new().await;
    let Scene { app, ada, key, market } = Scene::with(app, "10", Tier::Mm).await;
    let request = || key.buy(&market, 0, "25").idempotent("k").named("n");
    assert_refused(&app, request(), ErrorCode::InsufficientBalance).await;
    app.mint(ada.account, "15".parse().unwrap()).await;
    let trade = request().await;
    assert_eq!(request().replayed().await.id, trade.id);
}

#[tokio::test]
async fn a_replay_succeeds_in_a_frozen_market_without_a_balance() {
    let app = TestApp::new().await;
    let Scene { app, key, market, .. } = Scene::with(app, "25", Tier::Mm).await;
    let trade = key.buy(&market, 0, "25").idempotent("k").await;
    app.run_workers().await;
    app.freeze(market).await;
    app.run_workers().await;
    assert_eq!(key.buy(&market, 0, "25").idempotent("k").replayed().await.id, trade.id);
}

store::on_each_engine! {
    async fn fifty_equal_requests_at_once_make_one_trade(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let sent = (0..50).map(|_| {
            let key = key.clone();
            tokio::spawn(async move { key.buy(&market, 0, "25").idempotent("k").send().await })
        });
        let mut created = 0;
        let mut ids = std::collections::HashSet::new();
        for outcome in join_all(sent).await {
            let trade = match outcome.unwrap().unwrap() {
                Accepted::Created(trade) => {
                    created += 1;
                    trade
                }
                Accepted::ReplayedByKey(trade) => trade,
                other => panic!("{other:?}"),
            };
            ids.insert(trade.id);
        }
        assert_eq!((created, ids.len(), app.rows().await.trades), (1, 1, 1));
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }

    async fn fifty_requests_with_one_client_request_id_make_one_trade(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let sent = (0..50).map(|_| {
            let key = key.clone();
            tokio::spawn(async move { key.buy(&market, 0, "25").named("n").send().await })
        });
        let outcomes: Vec<_> = join_all(sent).await.into_iter().map(|sent| sent.unwrap().unwrap()).collect();
        let created = outcomes.iter().filter(|outcome| matches!(outcome, Accepted::Created(_))).count();
        assert_eq!((created, app.rows().await.trades), (1, 1));
        app.run_workers().await;
        app.assert_ledger_equals_chain().await;
    }

    async fn different_requests_with_one_key_make_one_trade(store: Store) {
        let Scene { app, key, market, .. } = Scene::on(store).await;
        let sent = (1..=20).map(|usdc| {
            let key = key.clone();
            tokio::spawn(async move { key.buy(&market, 0, &usdc.to_string()).idempotent("k").send().await })
        });
        let outcomes: Vec<_> = join_all(sent).await.into_iter().map(Result::unwrap).collect();
        let refusals: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
        assert!(refusals.iter().all(|refusal| refusal.code == ErrorCode::IdempotencyKeyConflict), "{refusals:?}");
        assert_eq!((refusals.len(), app.rows().await.trades), (19, 1));
    }
}
