//! Trades of high value: the 202 response and its replays.

use domain::key::Tier;
use domain::{ErrorCode, Usdc};
use futures::future::join_all;
use http_testkit::Answer;
use serde_json::Value;

use crate::scene::{Scene, assert_refused, text};

/// Returns a response's trade, and whether it is marked as a replay.
fn trade(answer: &Answer, status: u16) -> (Value, bool) {
    let mut body = answer.expect(status);
    assert_eq!(body["trade"], body["data"], "\n{answer}");
    let replayed = answer.header("idempotent-replayed") == Some("true");
    assert_eq!(body["_meta"]["idempotent"], replayed, "\n{answer}");
    (body["trade"].take(), replayed)
}

#[tokio::test]
async fn a_trade_of_high_value_is_held_with_its_confirmation_token() {
    let scene = Scene::gated().await;
    let answer = scene.client.buy(scene.market, 0, "100.00").with("clientRequestId", "mine:1").await;
    let (held, replayed) = trade(&answer, 202);
    assert!(!replayed);
    assert_eq!(held["status"], "pending_confirmation");
    assert!(text(&held["confirmation"]["token"]).starts_with("ct_"));
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_trade_at_the_threshold_is_held_and_one_above_the_cap_is_rejected() {
    let Scene { app, client, .. } = Scene::with("100000", Tier::Enterprise).await;
    let market = app.market_with(&["Yes", "No"], |new| new.liquidity = Usdc::from_whole(50_000)).await;
    assert_refused(&app, client.buy(market, 0, "25000.000001"), ErrorCode::SpendingLimitExceeded).await;
    trade(&client.buy(market, 0, "25000").await, 202);
    client.buy(market, 0, "24999.999999").await.created();
}

#[tokio::test]
async fn a_replay_of_a_held_trade_repeats_the_first_answer() {
    let scene = Scene::gated().await;
    let Scene { app, client, market, .. } = &scene;
    let call = || client.buy(*market, 0, "100").idempotent("k").with("clientRequestId", "n");
    let (held, _) = trade(&call().await, 202);
    app.advance_ms(app.ctx.config.confirmation_window_ms - 1).await;
    app.run_workers().await;
    let rows = app.rows().await;
    assert_eq!(trade(&call().await, 202), (held.clone(), true));
    // A repeat without the idempotency key finds the trade by its clientRequestId.
    let by_name = client.buy(*market, 0, "100").with("clientRequestId", "n").await;
    assert_eq!(trade(&by_name, 202), (held, true));
    assert_eq!(app.rows().await, rows);
}

#[tokio::test]
async fn simultaneous_equal_requests_hold_one_trade_and_all_get_its_token() {
    let scene = Scene::gated().await;
    let calls = (0..20).map(|_| scene.client.buy(scene.market, 0, "100").idempotent("k").send());
    let answers = join_all(calls.map(tokio::spawn)).await;
    let trades: Vec<_> = answers.into_iter().map(|answer| trade(&answer.unwrap(), 202)).collect();
    assert_eq!(trades.iter().filter(|(_, replayed)| !replayed).count(), 1);
    assert!(trades.iter().all(|(held, _)| *held == trades[0].0));
    assert_eq!(scene.app.rows().await.trades, 1);
}

#[tokio::test]
async fn a_replay_after_the_confirm_shows_the_current_trade() {
    let scene = Scene::gated().await;
    let Scene { app, client, market, .. } = &scene;
    let call = || client.buy(*market, 0, "100").idempotent("k").with("clientRequestId", "n");
    let (held, _) = trade(&call().await, 202);
    let confirmed = scene.confirm(&held).await.ok()["trade"].take();
    assert_eq!(trade(&call().await, 200), (confirmed, true));
    app.run_workers().await;
    let (now, _) = trade(&call().await, 200);
    assert_eq!((&now["status"], now.get("confirmation")), (&"completed".into(), None));
    let by_name = client.buy(*market, 0, "100").with("clientRequestId", "n").await;
    assert_eq!(trade(&by_name, 200), (now, true));
}

#[tokio::test]
async fn a_replay_after_the_window_shows_no_token() {
    let scene = Scene::gated().await;
    let Scene { app, client, market, .. } = &scene;
    let call = || client.buy(*market, 0, "100").idempotent("k");
    trade(&call().await, 202);
    app.advance_ms(app.ctx.config.confirmation_window_ms).await;
    let (late, _) = trade(&call().await, 200);
    assert_eq!((&late["status"], late.get("confirmation")), (&"pending_confirmation".into(), None));
    app.run_workers().await;
    let (failed, replayed) = trade(&call().await, 200);
    assert!(replayed);
    assert_eq!((&failed["status"], &failed["errorCode"]), (&"failed".into(), &"CONFIRMATION_EXPIRED".into()));
}

#[tokio::test]
async fn another_request_with_the_key_of_a_held_trade_is_a_conflict() {
    let scene = Scene::gated().await;
    let Scene { app, client, market, .. } = &scene;
    let (held, _) = trade(&client.buy(*market, 0, "100").idempotent("k").await, 202);
    let other = client.buy(*market, 0, "101").idempotent("k");
    let extensions = assert_refused(app, other, ErrorCode::IdempotencyKeyConflict).await;
    assert_eq!(extensions["tradeId"], held["id"]);
}

#[tokio::test]
async fn a_dry_run_shows_if_the_trade_would_be_held() {
    let Scene { client, market, .. } = Scene::gated().await;
    let held = async |usdc| {
        let body = client.buy(market, 0, usdc).with("dryRun", true).await.ok();
        body["dryRun"]["requiresConfirmation"].clone()
    };
    assert_eq!((held("99.999999").await, held("100").await), (false.into(), true.into()));
}

#[tokio::test]
async fn reads_never_show_a_confirmation_token() {
    let scene = Scene::gated().await;
    let held = scene.held().await;
    let mut answers = vec![scene.client.get(&format!("/v1/trades/{}", text(&held["id"]))).await];
    answers.push(scene.client.get("/v1/trades").await);
    answers.push(scene.client.get(&format!("/v1/traces/{}", text(&held["correlationId"]))).await);
    for answer in answers {
        answer.ok();
        assert!(!answer.text.contains("ct_") && !answer.text.contains("\"confirmation\""), "{answer}");
    }
}
