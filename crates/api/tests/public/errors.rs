//! Errors of the public API: they have one format, contain no internals, and are not cached.

use http_testkit::ServeHttp;
use http_testkit::public_scene::{Scene, refused};
use testkit::TestApp;

#[tokio::test]
async fn an_unknown_path_below_api_gets_a_public_api_error() {
    let client = TestApp::new().await.http().anonymous();
    for path in [
        "/api",
        "/api/",
        "/api/nothing",
        "/api/threads/",
        "/api/threads/1/nothing",
        "/api//threads",
        "/api/Threads",
    ] {
        refused(&client.get(path).await, 404, "NOT_FOUND");
    }
    insta::assert_snapshot!(client.get("/api/nothing").await);
    // Paths outside `/api/` belong to the trading API.
    client.get("/apis").await.refused(domain::ErrorCode::ResourceNotFound);
}

#[tokio::test]
async fn another_method_is_rejected_with_the_allowed_ones() {
    let client = TestApp::new().await.http().anonymous();
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let answer = client.call(method, "/api/threads").await;
        refused(&answer, 405, "METHOD_NOT_ALLOWED");
        assert_eq!(answer.header("allow"), Some("GET, HEAD, OPTIONS"), "{method}");
    }
}

#[tokio::test]
async fn errors_of_the_database_and_chain_reveal_no_internals() {
    let scene = Scene::new().await;
    scene.app.faults.always("eth_call", testkit::Fault::LostRequest);
    let quote = format!("/api/markets/{}/quote?outcomeIndex=0&action=buy&amount=1", scene.rain.id);
    scene.refused(&quote, 503, "DEPENDENCY_UNAVAILABLE").await;
    scene.app.ctx.store.close().await;
    for path in ["/api/threads", "/api/markets", "/api/markets/trending", "/api/leaderboard"] {
        let answer = scene.get(path).await;
        assert_eq!(refused(&answer, 503, "DEPENDENCY_UNAVAILABLE")["retryAfter"], 1);
        let text = answer.text.to_lowercase();
        assert!(!text.contains("sqlite") && !text.contains("closed") && !text.contains("pool"), "{answer}");
    }
}

#[tokio::test]
async fn a_disabled_route_reports_that_it_is_disabled() {
    let scene = Scene::new().await;
    let name = "GET /api/markets/{id}";
    let set = async |setting| {
        app::kill_switches::set(&scene.app.ctx, name, setting, "operator", None).await.unwrap();
        app::kill_switches::refresh(&scene.app.ctx).await.unwrap();
    };
    let path = format!("/api/markets/{}", scene.rain.id);
    set(app::kill_switches::Setting::Off).await;
    scene.refused(&path, 503, "ROUTE_DISABLED").await;
    scene.ok("/api/markets").await;
    set(app::kill_switches::Setting::On).await;
    scene.ok(&path).await;
}

#[tokio::test]
async fn a_trading_api_key_changes_no_public_answer() {
    let scene = Scene::new().await;
    for key in ["x", "service_test_00000000000000000000000000000000"] {
        let answer = scene.client.get("/api/markets").header("x-api-key", key).await;
        assert_eq!(http_testkit::public_scene::ok(&answer)["pagination"]["total"], 3);
    }
}
