//! The form of the `Idempotency-Key` header.

use domain::ErrorCode;

use crate::scene::{Scene, assert_refused};

#[tokio::test]
async fn one_pair_of_double_quotes_is_removed_from_the_key() {
    let Scene { client, market, .. } = Scene::new().await;
    let trade = client.buy(market, 0, "10").idempotent("\"a-Z_0:9.\"").await.created();
    let replay = client.buy(market, 0, "10").idempotent("a-Z_0:9.").await.expect(201);
    assert_eq!((&replay["trade"], &replay["_meta"]["idempotent"]), (&trade, &true.into()));
}

#[tokio::test]
async fn a_key_has_at_most_255_characters() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let with = |len: usize| client.buy(market, 0, "10").idempotent(&"k".repeat(len));
    assert_refused(&app, with(256), ErrorCode::IdempotencyKeyTooLong).await;
    with(255).await.created();
}

#[tokio::test]
async fn empty_keys_and_keys_with_other_characters_are_rejected() {
    let Scene { app, client, market, .. } = Scene::new().await;
    for key in ["", "\"\"", "\"", "a b", "a,b", "a/b", "\"a", "é", "\"\"a\"\""] {
        let call = client.buy(market, 0, "10").idempotent(key);
        assert_refused(&app, call, ErrorCode::IdempotencyKeyFormatInvalid).await;
    }
    let bytes = client.buy(market, 0, "10").header("idempotency-key", b"\xff");
    assert_refused(&app, bytes, ErrorCode::IdempotencyKeyFormatInvalid).await;
}

#[tokio::test]
async fn a_key_that_is_sent_twice_is_rejected() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let twice = client.buy(market, 0, "10").idempotent("a").idempotent("a");
    assert_refused(&app, twice, ErrorCode::IdempotencyKeyFormatInvalid).await;
}
