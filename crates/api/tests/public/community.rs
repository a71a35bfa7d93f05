//! `GET /api/leaderboard` and `GET /api/transactions/{hash}`.

use http_testkit::ServeHttp;
use http_testkit::public_scene::{Scene, ok};
use serde_json::Value;

async fn prediction(scene: &Scene) -> (String, String) {
    let user = scene.app.user("bob").funded("1000").await;
    let client = scene.app.http().with(&scene.app.key(&user, domain::key::Tier::Mm).await);
    let id = client.buy(scene.rain, 0, "10").await.created()["id"].as_str().unwrap().to_owned();
    scene.app.run_workers().await;
    let trade = client.get(&format!("/v1/trades/{id}")).await.ok()["trade"].take();
    (trade["txHash"].as_str().unwrap().to_owned(), format!("{:#x}", user.account))
}

#[tokio::test]
async fn a_transaction_shows_its_movements_and_its_trader() {
    let scene = Scene::new().await;
    let (hash, account) = prediction(&scene).await;
    let answer = scene.get(&format!("/api/transactions/{hash}")).await;
    let transaction = ok(&answer)["transaction"].take();
    assert_eq!(transaction["movements"][0]["account"], account);
    assert_eq!(transaction["movements"][0]["marketId"], scene.rain.id.to_string());
    insta::assert_snapshot!(answer);
    let shouted = format!("/api/transactions/0x{}", hash[2..].to_uppercase());
    assert_eq!(scene.ok(&shouted).await["transaction"], transaction);
}

#[tokio::test]
async fn an_unknown_or_malformed_transaction_is_not_found() {
    let scene = Scene::new().await;
    let nothing = format!("0x{}", "0".repeat(64));
    for hash in [nothing.as_str(), "0x", "1", "%ff", &nothing[..65], &format!("{nothing}0"), &"g".repeat(66)]
    {
        scene.refused(&format!("/api/transactions/{hash}"), 404, "TRANSACTION_NOT_FOUND").await;
    }
}

#[tokio::test]
async fn the_leaderboard_ranks_accounts_within_the_timeframe() {
    let scene = Scene::new().await;
    let answer = scene.get("/api/leaderboard?sortBy=volume").await;
    let body = ok(&answer);
    let volumes: Vec<_> = rows(&body).iter().map(|row| row["totalVolume"].as_u64().unwrap()).collect();
    assert_eq!(volumes, [10_000, 7_000]);
    insta::assert_snapshot!(answer);
    for (query, expected) in
        [("", "all"), ("timeframe=24h", "24h"), ("timeframe=7d", "7d"), ("timeframe=30d", "30d")]
    {
        let body = scene.ok(&format!("/api/leaderboard?{query}")).await;
        assert_eq!((body["timeframe"].as_str(), rows(&body).len()), (Some(expected), 2), "{query}");
    }
    for (query, same) in
        [("", "sort=total"), ("sort=total", "sortBy=profit"), ("sort=volume", "sortBy=volume")]
    {
        let leaders = async |query| scene.ok(&format!("/api/leaderboard?{query}")).await["leaders"].take();
        assert_eq!(leaders(query).await, leaders(same).await, "{query}");
    }
    for row in rows(&scene.ok("/api/leaderboard?sort=realized").await) {
        let cents = |name: &str| row[name].as_i64().unwrap();
        let parts = cents("realizedProfit") + cents("unrealizedProfit");
        assert!((0..=1).contains(&(cents("totalProfit") - parts)), "{row}");
    }
    scene.refused("/api/leaderboard?sort=total&sortBy=profit", 400, "INVALID_REQUEST").await;
    let second = scene.ok("/api/leaderboard?sortBy=volume&limit=1&offset=1").await;
    assert_eq!(rows(&second)[0]["rank"], 2);
    scene.app.advance_ms(2 * domain::time::DAY_MS).await;
    assert!(rows(&scene.ok("/api/leaderboard?timeframe=24h").await).is_empty());
}

fn rows(body: &Value) -> Vec<Value> {
    body["leaders"].as_array().unwrap().clone()
}
