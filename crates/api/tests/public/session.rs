//! Requests with a session of the web application.

use http_testkit::Answer;
use http_testkit::public_scene::Scene;
use testkit::SoftKey;

/// A visitor who has signed up, and trades.
struct Member {
    scene: Scene,
    cookie: String,
}

impl Member {
    async fn new() -> Self {
        let scene = Scene::new().await;
        let mut key: SoftKey = scene.app.soft_key();
        let signed_in = scene.app.try_sign_up(&mut key).await.unwrap();
        let cookie = format!("__Host-session={}", signed_in.token.expose());
        let person = scene.app.person(&signed_in).await;
        let account = app::accounts::account_of(&scene.app.ctx, person.user_id()).await.unwrap();
        scene.app.mint(account.address, domain::Usdc::from_whole(100)).await;
        Self { scene, cookie }
    }

    async fn get(&self, path: &str) -> Answer {
        self.scene.client.get(path).header("cookie", &self.cookie).send().await
    }
}

#[tokio::test]
async fn a_response_to_a_session_says_so_and_is_for_nobody_else() {
    let member = Member::new().await;
    for path in ["/api/markets", "/api/threads", "/api/leaderboard", "/api/portfolio/analytics"] {
        let answer = member.get(path).await;
        assert_eq!(answer.status.as_u16(), 200, "{answer}");
        assert_eq!(answer.json()["_meta"]["authenticated"], true, "{answer}");
        assert_eq!(answer.header("cache-control"), Some("private, no-store"), "{answer}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{answer}");
        assert_eq!(answer.header("etag"), None, "{answer}");
    }
    // The caches of anonymous responses are not affected.
    assert_eq!(member.scene.ok("/api/markets").await["_meta"]["authenticated"], false);
    let unknown = member.scene.client.get("/api/markets").header("cookie", "__Host-session=x").send().await;
    assert_eq!(unknown.json()["_meta"]["authenticated"], false, "{unknown}");
}

#[tokio::test]
async fn the_portfolio_over_time_ends_with_the_present() {
    let member = Member::new().await;
    for (query, timeframe) in [("", "30d"), ("?timeframe=24h", "24h"), ("?timeframe=all", "all")] {
        let body = member.get(&format!("/api/portfolio/analytics{query}")).await.json();
        assert_eq!(body["timeframe"], timeframe);
        let last = body["points"].as_array().unwrap().last().unwrap().clone();
        assert_eq!((&last["cash"], &last["value"]), (&10_000.into(), &10_000.into()), "{body}");
        assert_eq!((&last["deposited"], &last["profit"]), (&10_000.into(), &0.into()), "{body}");
    }
    let answer = member.get("/api/portfolio/analytics?timeframe=1y").await;
    assert_eq!(answer.status.as_u16(), 400, "{answer}");
}

#[tokio::test]
async fn a_person_who_has_not_traded_gets_no_markets() {
    let member = Member::new().await;
    let body = member.get("/api/markets/for-you").await.json();
    assert_eq!((&body["_meta"]["count"], body["markets"].as_array().unwrap().len()), (&0.into(), 0));
}
