//! Any web page may read the public API.

use http_testkit::ServeHttp;
use http_testkit::public_scene::{Scene, assert_headers_of_every_answer};
use testkit::TestApp;

#[tokio::test]
async fn a_preflight_request_is_allowed() {
    let client = TestApp::new().await.http().anonymous();
    for path in ["/api/threads", "/api/markets/1", "/api/nothing", "/api"] {
        let answer = client
            .call("OPTIONS", path)
            .header("origin", "https://page.test")
            .header("access-control-request-method", "GET")
            .header("access-control-request-headers", "if-none-match, last-event-id")
            .await;
        assert_headers_of_every_answer(&answer);
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (204, ""), "{path}");
        assert_eq!(answer.header("access-control-allow-methods"), Some("GET, HEAD, OPTIONS"));
        let may_send = answer.header("access-control-allow-headers").unwrap().to_lowercase();
        assert!(may_send.contains("if-none-match"), "{may_send}");
        assert!(may_send.contains("last-event-id"), "a stream cannot be resumed from a script: {may_send}");
        assert_eq!(answer.header("access-control-max-age"), Some("86400"));
        assert_eq!(answer.header("access-control-allow-credentials"), None);
    }
}

#[tokio::test]
async fn every_answer_allows_every_origin_and_does_not_vary_by_it() {
    let scene = Scene::new().await;
    for path in
        ["/api/threads", "/api/threads/1", "/api/nothing", "/api/threads?limit=0", "/api/openapi.json"]
    {
        let plain = scene.get(path).await;
        let answer = scene.client.get(path).header("origin", "https://page.test").await;
        assert_headers_of_every_answer(&answer);
        assert_eq!((answer.status, answer.header("vary")), (plain.status, plain.header("vary")), "{path}");
        assert!(!answer.header("vary").unwrap_or_default().contains("Origin"), "{path}");
    }
}
