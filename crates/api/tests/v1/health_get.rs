//! `GET /v1/health`.

use http_testkit::ServeHttp;
use testkit::TestApp;

#[tokio::test]
async fn health_shows_the_start_time_of_the_service() {
    let app = TestApp::new().await;
    let http = app.http();
    app.advance_ms(90_999).await;
    let answer = http.anonymous().get("/v1/health").await;
    assert_eq!(answer.ok()["version"], env!("CARGO_PKG_VERSION"));
    insta::assert_snapshot!(answer.to_string().replace(env!("CARGO_PKG_VERSION"), "<version>"));
}

#[tokio::test]
async fn health_uses_neither_database_nor_chain() {
    let app = TestApp::new().await;
    let http = app.http();
    app.faults.always("eth_getBlockByNumber", testkit::Fault::LostRequest);
    app.ctx.store.close().await;
    assert_eq!(http.anonymous().get("/v1/health").await.ok()["status"], "ok");
}

#[tokio::test]
async fn a_head_request_has_the_headers_of_a_get_and_no_body() {
    let app = TestApp::new().await;
    let head = app.http().anonymous().call("HEAD", "/v1/health").await;
    assert_eq!((head.status.as_u16(), head.text.as_str()), (200, ""));
    assert_eq!(head.header("content-type"), Some("application/json"));
    assert!(head.header("x-request-id").is_some());
}
