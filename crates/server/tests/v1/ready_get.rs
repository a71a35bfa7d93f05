//! `GET /v1/ready`.

use testkit::{Fault, TestApp};

#[tokio::test]
async fn a_service_whose_database_and_chain_answer_is_ready() {
    let app = TestApp::new().await;
    insta::assert_snapshot!(app.http().anonymous().get("/v1/ready").await);
}

#[tokio::test]
async fn a_service_without_its_chain_is_not_ready() {
    let app = TestApp::new().await;
    let http = app.http();
    app.faults.always("eth_getBlockByNumber", Fault::LostRequest);
    insta::assert_snapshot!(http.anonymous().get("/v1/ready").await);
    app.faults.heal();
    assert_eq!(http.anonymous().get("/v1/ready").await.ok()["status"], "ready");
}

#[tokio::test]
async fn a_service_without_its_database_is_not_ready() {
    let app = TestApp::new().await;
    let http = app.http();
    app.ctx.store.close().await;
    let body = http.anonymous().get("/v1/ready").await.expect(503);
    assert_eq!(
        (&body["status"], &body["checks"]["database"]["status"]),
        (&"unavailable".into(), &"failing".into())
    );
    assert_eq!(body["checks"]["chain"]["status"], "ok");
}
