//! `GET /v1/ready`.

use alloy_primitives::U256;
use app::health::{Degradation, Reason};
use domain::key::Tier;
use http_testkit::ServeHttp;
use serde_json::{Value, json};
use testkit::{Fault, TestApp};

#[tokio::test]
async fn a_service_is_ready_if_its_database_and_chain_respond() {
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

/// Runs the health monitor and returns the reported degradations. Asserts the response's status.
async fn degraded(app: &TestApp, status: u16) -> Vec<Value> {
    app.workers.monitor(&app.ctx).await;
    let body = app.http().anonymous().get("/v1/ready").await.expect(status);
    assert_eq!(body["status"], if status == 200 { "ready" } else { "unavailable" });
    assert_eq!(body["checks"]["chain"]["status"], if status == 200 { "ok" } else { "failing" });
    body["degraded"].as_array().cloned().unwrap_or_default()
}

/// Runs the executors, which hold the leases of their lanes, and the health monitor.
async fn executors_run(app: &TestApp) {
    app.workers.execute(&app.ctx).await;
    app.workers.monitor(&app.ctx).await;
}

/// Leaves a lane's executor only enough balance for a transfer.
async fn empty(app: &TestApp, lane: usize) {
    let executor = &app.roles.executors[lane];
    let balance = app.ctx.chain.native_balance(executor.address()).await.unwrap();
    let left = U256::from(500_000_000_000_000u64);
    app.ctx.chain.send_native(executor, app.roles.treasury.address(), balance - left).await.unwrap();
    app.workers.synchronise(&app.ctx).await;
}

#[tokio::test]
async fn a_healthy_service_lists_no_degradation() {
    let app = TestApp::new().await;
    app.run_workers().await;
    app.workers.monitor(&app.ctx).await;
    let body = app.http().anonymous().get("/v1/ready").await.ok();
    assert_eq!(body.as_object().unwrap().len(), 2, "{body}");
}

#[tokio::test]
async fn one_lane_without_gas_degrades_the_service_and_all_lanes_without_gas_stop_it() {
    let app = TestApp::with().lanes(2).start().await;
    app.run_workers().await;
    empty(&app, 1).await;
    let detail = "1 of 2 executors cannot pay for a transaction. Lanes: 1.";
    let one = json!({ "reason": "lane_without_gas", "detail": detail, "stopsTrading": false });
    assert_eq!(degraded(&app, 200).await, [one]);

    empty(&app, 0).await;
    let both = degraded(&app, 503).await;
    assert_eq!((both.len(), &both[0]["stopsTrading"]), (1, &json!(true)));

    let (stranger, executor) = (&app.roles.stranger, app.roles.executors[0].address());
    app.ctx.chain.send_native(stranger, executor, U256::from(5_000_000_000_000_000u64)).await.unwrap();
    app.workers.synchronise(&app.ctx).await;
    let found = degraded(&app, 200).await;
    let reasons: Vec<_> = found.iter().map(|found| found["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["lane_without_gas", "lane_low_on_gas"]);
}

#[tokio::test]
async fn a_sync_that_reads_nothing_for_a_minute_stops_the_service_until_it_reads() {
    let app = TestApp::new().await;
    app.run_workers().await;
    assert_eq!(degraded(&app, 200).await, Vec::<Value>::new());
    app.advance_ms(61_000).await;
    let late = json!({
        "reason": "sync_behind", "detail": "The sync is 1 blocks and 61 s behind the newest block.", "stopsTrading": false,
    });
    assert_eq!(degraded(&app, 200).await, [late]);
    for _ in 0..10 {
        executors_run(&app).await;
    }
    let stopped = degraded(&app, 503).await;
    assert_eq!((&stopped[1]["reason"], &stopped[1]["stopsTrading"]), (&json!("sync_stopped"), &json!(true)));
    app.workers.synchronise(&app.ctx).await;
    assert_eq!(degraded(&app, 200).await, Vec::<Value>::new());
}

#[tokio::test]
async fn lanes_that_no_process_runs_stop_the_service_until_one_does() {
    let app = TestApp::with().lanes(2).start().await;
    app.run_workers().await;
    app.clock.advance(16_000);
    for _ in 0..2 {
        assert_eq!(degraded(&app, 200).await, Vec::<Value>::new());
    }
    let detail = "No process runs these parts: lane 0, lane 1.";
    let unled = json!({ "reason": "part_without_process", "detail": detail, "stopsTrading": true });
    assert_eq!(degraded(&app, 503).await, [unled]);
    executors_run(&app).await;
    assert_eq!(degraded(&app, 200).await, Vec::<Value>::new());
}

#[tokio::test]
async fn an_event_that_no_process_dispatches_makes_the_service_unready() {
    let app = TestApp::new().await;
    let (ada, receiver) = (app.user("ada").funded("100").await, app.receiver().await);
    let key = app.key_to(&ada, Tier::Mm, &receiver).await;
    let market = app.market(&["Yes", "No"]).await;
    key.buy(&market, 0, "1").await;
    // The trade's end is an event.
    app.workers.execute(&app.ctx).await;
    app.workers.synchronise(&app.ctx).await;
    let webhooks = async |status| {
        let body = app.http().anonymous().get("/v1/ready").await.expect(status);
        body["checks"]["webhooks"]["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(webhooks(200).await, "ok");
    app.clock.advance(10_001);
    assert_eq!(webhooks(503).await, "failing");
    // A dispatcher of another process.
    let (store, until) = (&app.ctx.store, app.ctx.now().plus_ms(15_000));
    let announced =
        store.write(until, |tx, until| Box::pin(store::leases::announce(tx, "dispatcher", "other", *until)));
    announced.await.unwrap();
    assert_eq!(webhooks(200).await, "ok");
}

#[tokio::test]
async fn trades_that_wait_for_volume_degrade_the_service() {
    let app = TestApp::with().hourly_volume(domain::Usdc::from_whole(5)).start().await;
    let ada = app.user("ada").funded("100").await;
    let key = app.key(&ada, Tier::Mm).await;
    let market = app.market(&["Yes", "No"]).await;
    key.buy(&market, 0, "10").await;
    app.run_workers().await;
    let held = json!({
        "reason": "hourly_volume_used", "detail": "Trades that wait because they exceed the remaining volume of this hour: 1.",
        "stopsTrading": false,
    });
    assert_eq!(degraded(&app, 200).await, [held]);
}

#[tokio::test]
async fn a_quarantined_market_and_drift_degrade_the_service() {
    let app = TestApp::new().await;
    let market = app.market(&["Yes", "No"]).await;
    app.run_workers().await;
    app.workers.monitor(&app.ctx).await;
    app::ledger::quarantine_drifted(&app.ctx, None, market.id, 1, "a test says so").await.unwrap();
    let counted = app
        .ctx
        .store
        .write((), |tx, ()| Box::pin(store::quarantine::count_up(tx, "drifted_markets", 1)))
        .await;
    counted.unwrap();
    let found = degraded(&app, 200).await;
    let reasons: Vec<_> = found.iter().map(|found| found["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["market_quarantined", "drift"]);
    assert_eq!(found[0]["detail"], "Markets in quarantine, which cannot be traded: 1.");
    app.clock.advance(60 * 60_000 + 1);
    assert!(degraded(&app, 200).await.iter().all(|found| found["reason"] != "drift"));
}

#[tokio::test]
async fn a_trade_that_does_not_end_degrades_the_service() {
    let app = TestApp::new().await;
    let ada = app.user("ada").funded("100").await;
    let (key, market) = (app.key(&ada, Tier::Mm).await, app.market(&["Yes", "No"]).await);
    key.buy(&market, 0, "1").await;
    app.workers.execute(&app.ctx).await;
    app.clock.advance(5 * 60_000 + 1);
    let found = degraded(&app, 200).await;
    assert_eq!(found[0]["reason"], "trade_stuck");
    assert_eq!(found[0]["detail"], "The oldest executing trade has been executing for 300 s.");
}

#[tokio::test]
async fn a_reported_degradation_is_listed_until_it_is_withdrawn() {
    let app = TestApp::new().await;
    app.run_workers().await;
    let reported = Degradation::new(Reason::Drift, "A test says so.");
    app.ctx.process.degradations.put(Reason::Drift, Some(reported));
    let body = app.http().anonymous().get("/v1/ready").await.ok();
    assert_eq!(body["degraded"][0]["detail"], "A test says so.");
    app.ctx.process.degradations.put(Reason::Drift, None);
    assert_eq!(app.http().anonymous().get("/v1/ready").await.ok()["degraded"], Value::Null);
}
