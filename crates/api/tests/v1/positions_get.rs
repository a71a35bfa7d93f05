//! `GET /v1/portfolio/positions`.

use crate::scene::{Scene, rows, text};

#[tokio::test]
async fn positions_show_their_cost_and_value() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 0, "100")).await;
    scene.settled(scene.client.sell(scene.market, 0, "30")).await;
    let answer = scene.client.get("/v1/portfolio/positions").await;
    assert!(answer.ok().get("pagination").is_none());
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn positions_are_filtered_by_market() {
    let scene = Scene::new().await;
    let other = scene.app.market(&["A", "B", "C"]).await;
    scene.settled(scene.client.buy(scene.market, 0, "10")).await;
    scene.settled(scene.client.buy(other, 2, "10")).await;
    scene.settled(scene.client.buy(other, 1, "10")).await;
    let of = async |query: &str| {
        let body = scene.client.get(&format!("/v1/portfolio/positions{query}")).await.ok();
        rows(&body)
            .iter()
            .map(|row| (text(&row["marketId"]).to_owned(), row["outcomeIndex"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("").await.len(), 3);
    let id = other.id.to_string();
    assert_eq!(of(&format!("?marketId={id}")).await, [(id.clone(), 1.into()), (id.clone(), 2.into())]);
    let unknown = domain::ids::MarketId(scene.app.ctx.uuid());
    assert_eq!(of(&format!("?marketId={unknown}")).await, []);
}

#[tokio::test]
async fn invalid_parameters_are_rejected() {
    let client = Scene::new().await.client;
    for (query, pointer) in [("marketId=1", "/marketId"), ("limit=5", "/limit"), ("cursor=x", "/cursor")] {
        let answer = client.get(&format!("/v1/portfolio/positions?{query}")).await;
        assert_eq!(answer.pointers(), [pointer], "{query}");
    }
}

#[tokio::test]
async fn a_user_sees_only_their_own_positions() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 0, "10")).await;
    let bob = scene.bob().await;
    assert_eq!(rows(&bob.get("/v1/portfolio/positions").await.ok()), [] as [serde_json::Value; 0]);
}
