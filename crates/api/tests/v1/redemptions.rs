//! `POST /v1/redemptions`, `GET /v1/redemptions` and `GET /v1/redemptions/{id}`.

use domain::key::{Scope, Scopes, Tier};
use domain::{ErrorCode, Usdc};
use http_testkit::{Answer, ServeHttp};
use serde_json::{Value, json};
use testkit::{TestApp, key_of};

use crate::scene::{Scene, assert_invalid, assert_refused, atomic, ids, rows, text};

/// Creates a scene in which Ada holds both outcomes of a market, and the first one has won.
async fn won() -> Scene {
    let scene = Scene::new().await;
    scene.client.buy(scene.market, 0, "100").await.created();
    scene.client.buy(scene.market, 1, "40").await.created();
    scene.app.run_workers().await;
    scene.app.resolve(scene.market, 0).await;
    scene.app.run_workers().await;
    scene
}

async fn claim(scene: &Scene, id: &str) -> Value {
    scene.client.get(&format!("/v1/redemptions/{id}")).await.ok()["redemption"].take()
}

#[tokio::test]
async fn a_first_claim_is_created_pending_with_its_expected_payout() {
    let scene = won().await;
    let answer = scene.client.redeem(scene.market, 0).await;
    let body = answer.expect(201);
    assert_eq!(body["redemption"], body["data"]);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_completed_claim_shows_its_payout_and_the_portfolio_includes_it() {
    let scene = won().await;
    let before = scene.portfolio().await;
    let created = scene.client.redeem(scene.market, 0).await.expect(201)["redemption"].take();
    assert_eq!(before["claimableUsdc"], created["amount"]);
    scene.app.advance_ms(2_000).await;
    scene.app.run_workers().await;
    let answer = scene.client.get(&format!("/v1/redemptions/{}", text(&created["id"]))).await;
    let completed = answer.ok()["redemption"].take();
    assert_eq!((&completed["status"], &completed["amount"]), (&"completed".into(), &created["amount"]));
    let after = scene.portfolio().await;
    let paid = atomic(&after["usdcBalance"]) - atomic(&before["usdcBalance"]);
    assert_eq!(paid, atomic(&completed["amount"]));
    assert_eq!(after["claimableUsdc"], "0");
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_repeated_claim_returns_the_current_claim() {
    let scene = won().await;
    let first = scene.client.redeem(scene.market, 0).await.expect(201)["redemption"].take();
    let repeated = scene.client.redeem(scene.market, 0).await.ok();
    assert_eq!(repeated["redemption"], first);
    scene.app.run_workers().await;
    let repeated = scene.client.redeem(scene.market, 0).await.ok();
    assert_eq!(repeated["redemption"], claim(&scene, text(&first["id"])).await);
    assert_eq!(repeated["redemption"]["status"], "completed");
    // A repeated request does not access the chain.
    scene.app.faults.always("eth_call", testkit::Fault::LostRequest);
    scene.client.redeem(scene.market, 0).await.ok();
}

#[tokio::test]
async fn a_claim_has_the_trace_of_the_caller() {
    let scene = won().await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    let claim = scene.client.redeem(scene.market, 0).header("traceparent", parent).await.expect(201);
    assert_eq!(claim["redemption"]["correlationId"], trace);
}

#[tokio::test]
async fn a_losing_position_is_rejected_with_the_reason() {
    let scene = won().await;
    let answer = scene.client.redeem(scene.market, 1).await;
    let body = answer.refused(ErrorCode::PositionNotClaimable);
    assert_eq!(body["extensions"]["reason"], "losing_outcome");
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn every_rejected_claim_leaves_nothing_behind() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let open = assert_refused(&app, client.redeem(market, 0), ErrorCode::PositionNotClaimable).await;
    assert_eq!(open["reason"], "market_open");
    assert_refused(&app, client.redeem(market, 2), ErrorCode::OutcomeIndexInvalid).await;
    assert_refused(&app, client.redeem(market, 0).with("outcomeIndex", -1), ErrorCode::OutcomeIndexInvalid)
        .await;
    for id in ["", "7", "018f0000-0000-7000-8000-000000000001"] {
        let unknown = client.redeem(market, 0).with("marketId", id);
        assert_refused(&app, unknown, ErrorCode::MarketNotFound).await;
    }
}

#[tokio::test]
async fn a_claim_has_only_a_market_and_an_outcome() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let post = |body: Value| client.call("POST", "/v1/redemptions").raw_json(body.to_string());
    assert_invalid(&app, post(json!({})), &["/marketId", "/outcomeIndex"]).await;
    assert_invalid(&app, client.redeem(market, 0).with("outcomeIndex", Value::Null), &["/outcomeIndex"])
        .await;
    assert_invalid(&app, client.redeem(market, 0).with("outcomeIndex", "0"), &["/outcomeIndex"]).await;
    assert_invalid(&app, client.redeem(market, 0).with("marketId", 7), &["/marketId"]).await;
    assert_invalid(&app, client.redeem(market, 0).with("amount", "1"), &["/amount"]).await;
    let parameter = client.call("POST", "/v1/redemptions?dryRun=true").raw_json("{}");
    assert_invalid(&app, parameter, &["/dryRun"]).await;
}

#[tokio::test]
async fn an_unreachable_chain_leaves_nothing_claimed() {
    let scene = won().await;
    scene.app.faults.always("eth_call", testkit::Fault::LostRequest);
    assert_refused(&scene.app, scene.client.redeem(scene.market, 0), ErrorCode::DependencyUnavailable).await;
}

#[tokio::test]
async fn claims_are_listed_newest_first_by_page_status_and_market() {
    let scene = Scene::new().await;
    let other = scene.app.market(&["Yes", "No"]).await;
    for market in [scene.market, other] {
        for outcome in [0, 1] {
            scene.client.buy(market, outcome, "20").await.created();
        }
        scene.app.run_workers().await;
        scene.app.cancel(market).await;
    }
    scene.app.run_workers().await;
    let mut claimed = Vec::new();
    for (market, outcome) in [(scene.market, 0), (scene.market, 1), (other, 0), (other, 1)] {
        if market == other && outcome == 0 {
            scene.app.run_workers().await;
        }
        let claim = scene.client.redeem(market, outcome).await.expect(201);
        claimed.insert(0, text(&claim["redemption"]["id"]).to_owned());
        scene.app.clock.advance(1_000);
    }
    let list = async |query: &str| scene.client.get(&format!("/v1/redemptions{query}")).await.ok();
    let whole = list("").await;
    assert_eq!((ids(&whole), &whole["pagination"]["limit"]), (claimed.clone(), &20.into()));
    assert_eq!(ids(&list("?status=pending").await), claimed[..2]);
    assert_eq!(ids(&list("?status=completed,failed").await), claimed[2..]);
    assert_eq!(ids(&list(&format!("?marketId={}", scene.market.id)).await), claimed[2..]);
    let first = list("?limit=3").await;
    assert_eq!((ids(&first), &first["pagination"]["hasMore"]), (claimed[..3].to_vec(), &true.into()));
    let rest = list(&format!("?limit=3&cursor={}", text(&first["pagination"]["cursor"]))).await;
    assert_eq!(ids(&rest), claimed[3..]);
    assert_eq!(scene.client.get("/v1/redemptions?status=done").await.pointers(), ["/status"]);
    assert_eq!(scene.client.get("/v1/redemptions?outcomeIndex=0").await.pointers(), ["/outcomeIndex"]);
}

#[tokio::test]
async fn another_users_claim_is_not_found() {
    let scene = won().await;
    let claim = scene.client.redeem(scene.market, 0).await.expect(201)["redemption"].take();
    let bob = scene.bob().await;
    let refusal = |answer: Answer| answer.refused(ErrorCode::ResourceNotFound)["detail"].clone();
    let theirs = refusal(bob.get(&format!("/v1/redemptions/{}", text(&claim["id"]))).await);
    for id in ["018f0000-0000-7000-8000-000000000001", "7"] {
        assert_eq!(refusal(bob.get(&format!("/v1/redemptions/{id}")).await), theirs);
    }
    assert!(rows(&bob.get("/v1/redemptions").await.ok()).is_empty());
    let refused = bob.redeem(scene.market, 0).await.refused(ErrorCode::PositionNotClaimable);
    assert_eq!(refused["extensions"]["reason"], "no_tokens");
}

#[tokio::test]
async fn claiming_needs_the_write_scope_and_reading_the_read_scope() {
    let scene = won().await;
    let with = async |scope: Scope| {
        let mut wanted = key_of(&scene.ada, Tier::Mm);
        wanted.scopes = Some(Scopes::of(&[scope]));
        scene.http.with(&scene.app.issue(wanted).await.unwrap())
    };
    let (reader, writer) = (with(Scope::TradesRead).await, with(Scope::TradesWrite).await);
    assert_refused(&scene.app, reader.redeem(scene.market, 0), ErrorCode::InsufficientScope).await;
    writer.get("/v1/redemptions").await.refused(ErrorCode::InsufficientScope);
    // The account itself is the claimant, so the key needs no delegation.
    let claim = writer.redeem(scene.market, 0).await.expect(201)["redemption"].take();
    assert_eq!(rows(&reader.get("/v1/redemptions").await.ok()), [claim]);
}

#[tokio::test]
async fn automatic_payouts_are_listed_and_cannot_be_claimed() {
    let app = TestApp::with().automatic_redemptions().start().await;
    let ada = app.user("ada").funded("1000").await;
    let client = app.http().with(&app.key(&ada, Tier::Mm).await);
    let market = app.market(&["Yes", "No"]).await;
    client.buy(market, 0, "100").await.created();
    app.run_workers().await;
    app.resolve(market, 0).await;
    app.run_workers().await;
    assert_refused(&app, client.redeem(market, 0), ErrorCode::RedemptionsNotEnabled).await;
    let malformed = client.call("POST", "/v1/redemptions").raw_json("{");
    assert_refused(&app, malformed, ErrorCode::RedemptionsNotEnabled).await;
    app.run_workers().await;
    app.run_workers().await;
    let [paid] = rows(&client.get("/v1/redemptions").await.ok()).try_into().unwrap();
    assert_eq!((&paid["status"], &paid["outcomeIndex"]), (&"completed".into(), &0.into()));
    client.get(&format!("/v1/redemptions/{}", text(&paid["id"]))).await.ok();
}

#[tokio::test]
async fn a_payout_below_the_automatic_minimum_can_be_claimed() {
    let cent = Usdc::from_atomic(10_000);
    let app = TestApp::with().minimum(cent).automatic_redemptions().start().await;
    let ada = app.user("ada").funded("1000").await;
    let client = app.http().with(&app.key(&ada, Tier::Mm).await);
    let market = app.market(&["Yes", "No"]).await;
    client.buy(market, 0, "0.01").await.created();
    app.run_workers().await;
    app.resolve_in_parts(market, &[10, 90]).await;
    app.run_workers().await;
    client.redeem(market, 0).await.expect(201);
}
