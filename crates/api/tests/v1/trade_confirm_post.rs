//! `POST /v1/trades/{id}/confirm`.

use domain::ErrorCode;
use domain::key::{Scope, Scopes, Tier};
use futures::future::join_all;
use http_testkit::Answer;
use serde_json::{Value, json};
use testkit::key_of;

use crate::scene::{Scene, confirm, text};

#[tokio::test]
async fn a_confirmed_trade_is_pending_and_shows_both_statuses() {
    let scene = Scene::gated().await;
    let held = scene.held().await;
    scene.app.advance_ms(90_000).await;
    let answer = scene.confirm(&held).await;
    let body = answer.ok();
    assert_eq!((&body["trade"], &body["trade"]["status"]), (&body["data"], &"pending".into()));
    insta::assert_snapshot!(answer);
    scene.app.run_workers().await;
    let read = scene.client.get(&format!("/v1/trades/{}", text(&held["id"]))).await.ok();
    assert_eq!(read["trade"]["status"], "completed");
}

/// Asserts the error of a confirm, and the trade that it names.
fn refused(answer: &Answer, code: ErrorCode, submission: &str, trade: &Value) {
    let problem = answer.refused(code);
    let expected = json!({ "submission": submission, "tradeId": trade["id"] });
    assert_eq!(problem["extensions"], expected, "\n{answer}");
}

#[tokio::test]
async fn a_trade_that_was_never_held_cannot_be_confirmed() {
    let scene = Scene::gated().await;
    let plain = scene.client.buy(scene.market, 0, "1").await.created();
    let answer = confirm(&scene.client, text(&plain["id"]), json!({ "token": "ct_" })).await;
    refused(&answer, ErrorCode::TradeNotAwaitingConfirmation, "submitted", &plain);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn the_token_of_another_trade_is_invalid() {
    let scene = Scene::gated().await;
    let (held, other) = (scene.held().await, scene.held().await);
    let token = text(&other["confirmation"]["token"]);
    let answer = confirm(&scene.client, text(&held["id"]), json!({ "token": token })).await;
    refused(&answer, ErrorCode::ConfirmationTokenInvalid, "not_submitted", &held);
    assert!(!answer.text.contains(token));
    insta::assert_snapshot!(answer);
    scene.confirm(&held).await.ok();
}

#[tokio::test]
async fn a_second_confirm_with_the_same_token_is_rejected() {
    let scene = Scene::gated().await;
    let held = scene.held().await;
    scene.confirm(&held).await.ok();
    let answer = scene.confirm(&held).await;
    refused(&answer, ErrorCode::ConfirmationTokenUsed, "submitted", &held);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_late_confirm_is_rejected_even_before_the_trade_fails() {
    let scene = Scene::gated().await;
    let held = scene.held().await;
    scene.app.advance_ms(scene.app.ctx.config.confirmation_window_ms).await;
    let answer = scene.confirm(&held).await;
    refused(&answer, ErrorCode::ConfirmationExpired, "not_submitted", &held);
    scene.app.run_workers().await;
    let answer = scene.confirm(&held).await;
    refused(&answer, ErrorCode::ConfirmationExpired, "not_submitted", &held);
    insta::assert_snapshot!(answer);
    let read = scene.client.get(&format!("/v1/trades/{}", text(&held["id"]))).await.ok();
    assert_eq!(read["trade"]["errorCode"], "CONFIRMATION_EXPIRED");
}

#[tokio::test]
async fn a_paused_key_cannot_confirm() {
    let scene = Scene::gated().await;
    let held = scene.held().await;
    scene.key.pause().await;
    let answer = scene.confirm(&held).await;
    let problem = answer.refused(ErrorCode::ApiKeyPaused);
    assert_eq!(problem["extensions"], json!({ "submission": "not_submitted" }));
    let second = scene.http.with(&scene.app.disabled_key(&scene.ada, Tier::Free).await);
    let token = json!({ "token": held["confirmation"]["token"] });
    let answer = confirm(&second, text(&held["id"]), token).await;
    refused(&answer, ErrorCode::ApiKeyPaused, "not_submitted", &held);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn trades_of_others_unknown_trades_and_malformed_ids_are_not_found() {
    let scene = Scene::gated().await;
    let held = scene.held().await;
    let bob = scene.bob().await;
    let token = json!({ "token": held["confirmation"]["token"] });
    for id in [text(&held["id"]), "018f0000-0000-7000-8000-000000000001", "7", "%20", "%ff"] {
        let problem = confirm(&bob, id, token.clone()).await.refused(ErrorCode::ResourceNotFound);
        assert_eq!(problem["extensions"], json!({ "submission": "not_submitted" }), "{id}");
    }
    scene.confirm(&held).await.ok();
}

#[tokio::test]
async fn any_key_of_the_user_with_the_scope_can_confirm() {
    let scene = Scene::gated().await;
    let held = scene.held().await;
    let token = json!({ "token": held["confirmation"]["token"] });
    let key = |scope| {
        let mut wanted = key_of(&scene.ada, Tier::Free);
        wanted.scopes = Some(Scopes::of(&[scope]));
        scene.app.issue(wanted)
    };
    let reader = scene.http.with(&key(Scope::TradesRead).await.unwrap());
    confirm(&reader, text(&held["id"]), token.clone()).await.refused(ErrorCode::InsufficientScope);
    let writer = scene.http.with(&key(Scope::TradesWrite).await.unwrap());
    confirm(&writer, text(&held["id"]), token).await.ok();
}

#[tokio::test]
async fn the_body_of_a_confirm_has_only_a_token() {
    let scene = Scene::gated().await;
    let held = scene.held().await;
    let id = text(&held["id"]);
    let token = text(&held["confirmation"]["token"]);
    for (body, pointer) in [
        ("", ""),
        ("[]", ""),
        ("{}", "/token"),
        (r#"{"token": null}"#, "/token"),
        (r#"{"token": 1}"#, "/token"),
        (r#"{"token": "a\u0000"}"#, "/token"),
        (&format!(r#"{{"token": "{token}", "token": "{token}"}}"#), "/token"),
        (&format!(r#"{{"token": "{token}", "id": "{id}"}}"#), "/id"),
        (&format!(r#"{{"token": "{token}"}} {{}}"#), ""),
    ] {
        let call = scene.client.call("POST", &format!("/v1/trades/{id}/confirm")).raw_json(body.to_owned());
        assert_eq!(call.await.pointers(), [pointer], "{body}");
    }
    let path = format!("/v1/trades/{id}/confirm?token={token}");
    let call = scene.client.call("POST", &path).raw_json(json!({ "token": token }).to_string());
    assert_eq!(call.await.pointers(), ["/token"]);
    let call = scene.client.call("POST", &format!("/v1/trades/{id}/confirm"));
    call.body(json!({ "token": token }).to_string()).await.refused(ErrorCode::UnsupportedMediaType);
    scene.confirm(&held).await.ok();
}

/// The client disconnects right after its confirm was started.
#[tokio::test]
async fn a_confirm_completes_even_if_its_client_disconnects() {
    let scene = Scene::gated().await;
    let mutations = &scene.http.state.mutations;
    let held = scene.held().await;
    let mut call = Box::pin(scene.confirm(&held).send());
    loop {
        assert!(futures::poll!(call.as_mut()).is_pending(), "answered before it was begun");
        // Checked before any other task runs, because the write could already be complete after a
        // pause.
        if !mutations.is_empty() {
            break;
        }
        tokio::task::yield_now().await;
    }
    drop(call);
    mutations.close();
    mutations.wait().await;
    let read = scene.client.get(&format!("/v1/trades/{}", text(&held["id"]))).await.ok();
    assert_eq!(read["trade"]["status"], "pending");
}

#[tokio::test]
async fn one_of_several_simultaneous_confirms_is_accepted() {
    let scene = Scene::gated().await;
    let held = scene.held().await;
    let calls = (0..20).map(|_| tokio::spawn(scene.confirm(&held).send()));
    let answers: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
    for answer in answers.iter().filter(|answer| answer.status != 200) {
        refused(answer, ErrorCode::ConfirmationTokenUsed, "submitted", &held);
    }
}
