//! `GET /v1/portfolio`.

use domain::ErrorCode;
use domain::key::Tier;
use http_testkit::ServeHttp;
use testkit::{Fault, TestApp};

use crate::scene::{Scene, assert_refused, atomic};

#[tokio::test]
async fn a_portfolio_shows_balance_positions_and_reservations() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 0, "100")).await;
    scene.settled(scene.client.buy(scene.market, 1, "40")).await;
    scene.settled(scene.client.sell(scene.market, 0, "30")).await;
    scene.client.buy(scene.market, 0, "7").await.created();
    let answer = scene.client.get("/v1/portfolio").await;
    let body = answer.ok();
    assert_eq!(body["portfolio"], body["data"]);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn the_available_balance_is_exactly_the_largest_possible_buy() {
    let scene = Scene::with("100", Tier::Mm).await;
    scene.client.buy(scene.market, 0, "60").await.created();
    assert_eq!(scene.portfolio().await["availableUsdc"], "40000000");
    let too_much = scene.client.buy(scene.market, 0, "40.000001");
    assert_refused(&scene.app, too_much, ErrorCode::InsufficientBalance).await;
    scene.client.buy(scene.market, 0, "40").await.created();
    assert_eq!(scene.portfolio().await["availableUsdc"], "0");
}

#[tokio::test]
async fn the_summary_is_the_sum_of_the_positions() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 0, "100")).await;
    scene.settled(scene.client.buy(scene.market, 1, "40")).await;
    scene.settled(scene.client.sell_all(scene.market, 1)).await;
    let (portfolio, positions) = (scene.portfolio().await, scene.positions().await);
    let sum = |member: &str| positions.iter().map(|position| atomic(&position[member])).sum::<u128>();
    assert_eq!(positions.len(), 2);
    assert_eq!(portfolio["openPositions"], 1);
    assert_eq!(atomic(&portfolio["positionsValue"]), sum("value"));
    assert_eq!(atomic(&portfolio["costBasis"]), sum("costBasis"));
    assert_eq!(atomic(&portfolio["feesPaid"]), sum("feesPaid"));
    let total = atomic(&portfolio["usdcBalance"]) + sum("value");
    assert_eq!(atomic(&portfolio["totalValue"]), total);
    let signed = |value: &serde_json::Value| value.as_str().unwrap().parse::<i64>().unwrap();
    for member in ["realizedPnl", "unrealizedPnl"] {
        let summed: i64 = positions.iter().map(|position| signed(&position[member])).sum();
        assert_eq!(signed(&portfolio[member]), summed, "{member}");
    }
}

#[tokio::test]
async fn a_portfolio_shows_the_delegation_of_the_calling_key() {
    let scene = Scene::new().await;
    let enabled = &scene.portfolio().await["delegation"];
    assert_eq!(enabled["enabled"], true);
    assert_eq!(enabled["caps"]["perTradeUsdc"], "50000000000");
    let second = scene.http.with(&scene.app.disabled_key(&scene.ada, Tier::Mm).await);
    let disabled = &second.get("/v1/portfolio").await.ok()["portfolio"]["delegation"];
    assert_eq!((&disabled["enabled"], &disabled["expiresAt"]), (&false.into(), &serde_json::Value::Null));
}

#[tokio::test]
async fn a_portfolio_shows_the_address_of_an_account_that_is_not_yet_on_chain() {
    let app = TestApp::new().await;
    let grace = app.user("grace").funded("5").await;
    let client = app.http().with(&app.disabled_key(&grace, Tier::Mm).await);
    let portfolio = &client.get("/v1/portfolio").await.ok()["portfolio"];
    assert_eq!(portfolio["address"], grace.account.to_string().to_lowercase());
    assert_eq!(
        (&portfolio["usdcBalance"], &portfolio["delegation"]["enabled"]),
        (&"5000000".into(), &false.into())
    );
}

#[tokio::test]
async fn an_unreachable_chain_is_an_unavailable_dependency() {
    let scene = Scene::new().await;
    scene.app.faults.always("eth_call", Fault::LostRequest);
    let answer = scene.client.get("/v1/portfolio").await;
    answer.refused(ErrorCode::DependencyUnavailable);
    assert_eq!(answer.header("retry-after"), Some("1"));
}

#[tokio::test]
async fn a_lost_position_is_listed_and_is_not_open() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 1, "5")).await;
    assert_eq!(scene.portfolio().await["openPositions"], 1);
    scene.app.resolve(scene.market, 0).await;
    scene.app.run_workers().await;
    assert_eq!(scene.positions().await.len(), 1);
    assert_eq!(scene.portfolio().await["openPositions"], 0);
}
