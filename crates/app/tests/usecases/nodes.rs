//! Several nodes, some of them dead, behind, broken, or of another chain.

use std::pin::pin;
use std::time::Duration;

use app::Ctx;
use app::health::{CheckWatcher, ClockWatcher, Degradation, Reason, Storage};
use app::worker::Worker;
use chain::NodeStatus;
use domain::ErrorCode;
use domain::trade::Status;
use futures::future::{Either, select};
use store::StoreError;
use store::quarantine::Quarantine;
use testkit::{RpcFault, Setup, TestApp};

use crate::scene::Scene;

const SEND: &str = "eth_sendRawTransaction";

async fn scene(setup: Setup) -> Scene {
    let scene = Scene::of(setup.start().await).await;
    scene.app.run_workers().await;
    app::nodes::refresh(&scene.app.ctx).await.unwrap();
    scene
}

/// Waits until all nodes are available. Pauses are in real time.
async fn available(ctx: &Ctx) {
    let nodes = ctx.chain.nodes().unwrap();
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    for _ in 0..500 {
        looks.tick().await;
        nodes.check_all().await;
        if nodes.report().iter().all(|node| node.standing == NodeStatus::Usable) {
            return;
        }
    }
    panic!("a node is not used after ten seconds: {:?}", nodes.report());
}

async fn settled(app: &TestApp) -> Option<u64> {
    let read = app.ctx.store.read((), |tx, ()| Box::pin(store::sync::find_settled(tx))).await;
    read.unwrap()
}

#[tokio::test]
async fn another_node_is_used_if_one_is_dead() {
    let Scene { app, key, market, .. } = scene(TestApp::with().nodes(2)).await;
    for dead in [0, 1, 0] {
        app.proxies.iter().for_each(|proxy| proxy.heal());
        available(&app.ctx).await;
        app.proxies[dead].set(RpcFault::Refused).await;
        let trade = key.buy(&market, 0, "5").await;
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed);
    }
    app.assert_ledger_equals_chain().await;
}

/// Returns the value of a metric with these labels, as a scrape shows it.
fn metric(app: &TestApp, name: &str) -> Option<String> {
    let text = app::scrape::metrics_text(&app.ctx);
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.map(str::to_owned)
}

#[tokio::test]
async fn a_dead_node_is_visible_in_the_next_scrape() {
    let Scene { app, .. } = scene(TestApp::with().nodes(2)).await;
    let hosts: Vec<String> =
        app.ctx.chain.nodes().unwrap().report().into_iter().map(|node| node.host).collect();
    let of_node = |name: &str, node: usize| {
        metric(&app, &format!("foretell_node_{name}{{node=\"{}\"}}", hosts[node])).unwrap()
    };
    app.workers.monitor(&app.ctx).await;
    assert_eq!([of_node("up", 0), of_node("up", 1)], ["1", "1"]);
    let lag = || metric(&app, "foretell_chain_lag_seconds").unwrap();
    assert_eq!(lag(), "0");

    app.proxies[0].set(RpcFault::Refused).await;
    app::nodes::refresh(&app.ctx).await.unwrap();
    assert_eq!([of_node("up", 0), of_node("up", 1)], ["0", "1"]);
    let (age, head) = (of_node("block_age_seconds", 0), of_node("head_block", 0));
    app.clock.advance(67_000);
    assert_eq!(of_node("block_age_seconds", 0), (age.parse::<u64>().unwrap() + 67).to_string());
    assert_eq!(of_node("head_block", 0), head);

    // Without any node, nobody knows the newest block: the lag is the age of the last one.
    app.proxies[1].set(RpcFault::Refused).await;
    app::nodes::refresh(&app.ctx).await.unwrap();
    assert!(app.workers.monitor.tick(&app.ctx).await.is_err());
    assert_eq!([of_node("up", 0), of_node("up", 1)], ["0", "0"]);
    assert!(lag().parse::<u64>().unwrap() >= 67, "{}", lag());
    let chain = || metric(&app, "foretell_check_up{check=\"chain\"}");
    assert_eq!(chain(), None, "no check has run");
    CheckWatcher.tick(&app.ctx).await.unwrap();
    assert_eq!(chain().as_deref(), Some("0"));
    assert_eq!(metric(&app, "foretell_check_up{check=\"database\"}").as_deref(), Some("1"));

    app.proxies.iter().for_each(|proxy| proxy.heal());
    available(&app.ctx).await;
    CheckWatcher.tick(&app.ctx).await.unwrap();
    assert_eq!((of_node("up", 0).as_str(), chain().as_deref()), ("1", Some("1")));
}

#[tokio::test]
async fn each_problem_is_a_metric_that_begins_at_zero() {
    let Scene { app, .. } = scene(TestApp::with().nodes(1)).await;
    let degraded =
        |reason: Reason| metric(&app, &format!("foretell_degraded{{reason=\"{}\"}}", reason.as_str()));
    for reason in Reason::ALL {
        assert_eq!(degraded(*reason).as_deref(), Some("0"), "{reason:?}");
    }
    let problem = Degradation::new(Reason::Drift, "a market differs");
    app.ctx.process.degradations.put(Reason::Drift, Some(problem));
    assert_eq!(degraded(Reason::Drift).as_deref(), Some("1"));
    app.ctx.process.degradations.put(Reason::Drift, None);
    assert_eq!(degraded(Reason::Drift).as_deref(), Some("0"));
}

#[tokio::test]
async fn a_fault_of_the_process_is_a_failed_check() {
    let Scene { app, .. } = scene(TestApp::with().nodes(1)).await;
    let checks = || {
        ["schema", "storage", "not_draining"]
            .map(|name| metric(&app, &format!("foretell_check_up{{check=\"{name}\"}}")).unwrap())
    };
    assert_eq!(checks(), ["1", "1", "1"]);
    let serving = &app.ctx.process.serving;
    serving.note_schema(true);
    serving.note_storage(Storage::Database, Some("the disk is full".to_owned()));
    serving.begin_drain();
    assert_eq!(checks(), ["0", "0", "0"]);
}

#[tokio::test]
async fn the_last_backup_and_the_markets_in_quarantine_are_metrics() {
    let Scene { app, market, .. } = scene(TestApp::with().nodes(1)).await;
    let at = app.ctx.now();
    let quarantine = Quarantine {
        market_id: market.id,
        block_number: 1,
        reason: "overdrawn_position".to_owned(),
        detail: "An account sold more than it has.".to_owned(),
        quarantined_at: at,
        repair_attempts: 0,
        next_repair_at: at,
    };
    let written: Result<(), StoreError> = app
        .ctx
        .store
        .write((quarantine, at), |tx, (quarantine, at)| {
            Box::pin(async move {
                store::quarantine::insert(tx, quarantine).await?;
                store::operations::put_last_backup(tx, *at).await
            })
        })
        .await;
    written.unwrap();
    app.workers.monitor(&app.ctx).await;
    let backup = metric(&app, "foretell_backup_timestamp_seconds").unwrap();
    assert!(backup.starts_with(&at.s().to_string()), "{backup}");
    assert_eq!(metric(&app, "foretell_markets_quarantined").as_deref(), Some("1"));
}

#[tokio::test]
async fn a_clock_behind_the_chain_degrades_the_service_and_is_a_metric() {
    let Scene { app, .. } = scene(TestApp::with().nodes(1)).await;
    let watcher = ClockWatcher::default();
    let problems = || app.ctx.process.degradations.list();
    app.advance_ms(1_200_000).await;
    app.clock.advance(-1_200_000);
    app::nodes::refresh(&app.ctx).await.unwrap();
    watcher.tick(&app.ctx).await.unwrap();
    let found = problems();
    assert_eq!(found.iter().map(|problem| problem.reason).collect::<Vec<_>>(), [Reason::ClockWrong]);
    assert!(found[0].detail.starts_with("This machine's clock is 1200 s behind"), "{found:?}");
    let offset = metric(&app, "foretell_clock_offset_seconds{clock=\"chain\"}").unwrap();
    assert!((-1_200.0..-1_199.0).contains(&offset.parse::<f64>().unwrap()), "{offset}");
    app.clock.advance(1_200_000);
    watcher.tick(&app.ctx).await.unwrap();
    assert_eq!(problems(), []);
}

#[tokio::test]
async fn a_transaction_is_sent_to_every_node() {
    let Scene { app, key, market, .. } = scene(TestApp::with().nodes(3)).await;
    let before: Vec<usize> = app.proxies.iter().map(|proxy| proxy.count(SEND)).collect();
    key.buy(&market, 0, "5").await;
    app.run_workers().await;
    // Requests to slower nodes may still be in flight when the first one has responded.
    while app.proxies.iter().zip(&before).any(|(proxy, before)| proxy.count(SEND) == *before) {
        tokio::task::yield_now().await;
    }
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn an_invalid_answer_is_a_dependency_error() {
    let Scene { app, key, market, .. } = scene(TestApp::with().nodes(1)).await;
    let before = app.rows().await;
    for fault in RpcFault::BROKEN {
        app.proxies[0].set(*fault).await;
        let refusal = key.buy(&market, 0, "5").refused().await;
        assert_eq!(refusal.code, ErrorCode::DependencyUnavailable, "{fault:?}: {refusal}");
        assert_eq!(refusal.retry_after_s, Some(1), "{fault:?}");
        app.proxies[0].heal();
        available(&app.ctx).await;
    }
    assert_eq!(app.rows().await, before);
    key.buy(&market, 0, "5").await;
    app.run_workers().await;
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_replay_does_not_wait_for_a_frozen_node() {
    let Scene { app, key, market, .. } = scene(TestApp::with().nodes(1)).await;
    let trade = key.buy(&market, 0, "5").idempotent("k").await;
    app.proxies[0].set(RpcFault::Frozen).await;
    let first = pin!(key.buy(&market, 0, "5").idempotent("other").refused());
    let replay = pin!(key.buy(&market, 0, "5").idempotent("k").replayed());
    match select(first, replay).await {
        Either::Left((refusal, _)) => panic!("a first request ended before the replay: {refusal}"),
        Either::Right((replayed, _)) => assert_eq!(replayed.id, trade.id),
    }
}

#[tokio::test]
async fn an_endless_answer_is_cut_off_and_another_node_is_used() {
    let Scene { app, key, market, .. } = scene(TestApp::with().nodes(2)).await;
    app.proxies[0].set(RpcFault::Endless).await;
    let trade = key.buy(&market, 0, "5").await;
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, Status::Completed);
}

#[tokio::test]
async fn a_lagging_node_is_not_read() {
    let Scene { app, key, market, .. } = scene(TestApp::with().nodes(2)).await;
    key.buy(&market, 0, "5").await;
    app.run_workers().await;
    for lagging in [0, 1] {
        app.proxies.iter().for_each(|proxy| proxy.heal());
        app.proxies[lagging].set(RpcFault::Stale(10)).await;
        app::nodes::refresh(&app.ctx).await.unwrap();
        let trade = key.buy(&market, 1, "5").await;
        app.run_workers().await;
        assert_eq!(app.status(trade.id).await, Status::Completed, "node {lagging} lags");
    }
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_node_with_a_wrong_chain_id_is_used_once_it_is_corrected() {
    let Scene { app, key, market, .. } = scene(TestApp::with().nodes(1)).await;
    app.proxies[0].set(RpcFault::OtherChain).await;
    app::nodes::refresh(&app.ctx).await.unwrap();
    let report = app.ctx.chain.nodes().unwrap().report();
    assert!(matches!(report[0].standing, NodeStatus::Refused(_)), "{report:?}");
    let refusal = key.buy(&market, 0, "5").refused().await;
    assert_eq!(refusal.code, ErrorCode::DependencyUnavailable, "{refusal}");
    assert_eq!(refusal.retry_after_s, Some(1));
    assert!(!app::health::readiness(&app.ctx).await.chain.ok);

    app.proxies[0].heal();
    app::nodes::refresh(&app.ctx).await.unwrap();
    key.buy(&market, 0, "5").await;
    app.run_workers().await;
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_twin_of_the_chain_changes_and_signs_nothing() {
    let Scene { app, key, market, .. } = scene(TestApp::with().nodes(1)).await;
    key.buy(&market, 0, "10").await;
    app.run_workers().await;
    app::nodes::refresh(&app.ctx).await.unwrap();
    let waiting = key.buy(&market, 1, "5").await;
    let shown = async || {
        let rows = app.rows().await;
        let rows = (rows.trades, rows.batches, rows.movements);
        (rows, app.market_row(market).await, app.positions().await, settled(&app).await)
    };
    let before = shown().await;
    let sent = app.proxies[0].count(SEND);

    // The twin has the same chain id, first block and contracts. No check has seen it yet.
    let twin = app.branches().hidden();
    for _ in 0..100 {
        twin.call("evm_mine", None).await.unwrap();
    }
    app.proxies[0].forward_to_embedded(twin);
    let refusal = key.buy(&market, 0, "5").refused().await;
    assert_eq!(refusal.code, ErrorCode::DependencyUnavailable, "{refusal}");
    assert_eq!(refusal.extensions["submission"], "not_submitted");
    for _ in 0..3 {
        assert!(app.workers.sync_once(&app.ctx).await.is_err());
        drop(app.workers.execute_once(&app.ctx).await);
    }
    assert_eq!(shown().await, before);
    assert_eq!(app.proxies[0].count(SEND), sent, "something was sent to the twin");
    app::nodes::refresh(&app.ctx).await.unwrap();
    assert!(!app::health::readiness(&app.ctx).await.chain.ok);
    let refusal = key.buy(&market, 0, "5").refused().await;
    assert_eq!(refusal.code, ErrorCode::DependencyUnavailable, "{refusal}");

    app.proxies[0].forward_to_embedded(app.branches().shown());
    available(&app.ctx).await;
    app.run_workers().await;
    assert_eq!(app.status(waiting.id).await, Status::Completed);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn nothing_becomes_final_while_two_nodes_disagree() {
    let Scene { app, key, market, .. } = scene(TestApp::with().nodes(2)).await;
    let before = settled(&app).await;
    let head = app.branches().shown().head().0;
    app.proxies[1].set(RpcFault::Forked(head + 1)).await;
    let trade = key.buy(&market, 0, "5").await;
    let waits = app.workers.try_run(&app.ctx).await.unwrap_err();
    assert_eq!(waits.code, ErrorCode::DependencyUnavailable, "{waits}");
    assert_eq!((app.status(trade.id).await, settled(&app).await), (Status::Executing, before));

    app.proxies[1].heal();
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, Status::Completed);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn a_false_block_of_one_node_is_reverted_before_it_is_final() {
    let Scene { app, key, market, .. } = scene(TestApp::with().nodes(3).agreement(2)).await;
    let head = app.branches().shown().head().0;
    // The node in use lies.
    let liar = app.proxies.iter().position(|proxy| proxy.count("eth_getLogs") > 0).unwrap();
    app.proxies[liar].set(RpcFault::Forked(head + 1)).await;
    let trade = key.buy(&market, 0, "5").await;
    for _ in 0..5 {
        drop(app.workers.try_run(&app.ctx).await);
        app::nodes::refresh(&app.ctx).await.unwrap();
    }
    assert_eq!(app.status(trade.id).await, Status::Completed);
    app.assert_ledger_equals_chain().await;
}

#[tokio::test]
async fn nothing_becomes_final_with_too_few_nodes() {
    let Scene { app, key, market, .. } = scene(TestApp::with().nodes(2).agreement(2)).await;
    app.proxies[1].set(RpcFault::Refused).await;
    let trade = key.buy(&market, 0, "5").await;
    app.workers.try_run(&app.ctx).await.unwrap_err();
    assert_eq!(app.status(trade.id).await, Status::Executing);
    app.proxies[1].heal();
    available(&app.ctx).await;
    app::nodes::refresh(&app.ctx).await.unwrap();
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, Status::Completed);
}

#[tokio::test]
async fn a_block_is_final_once_enough_nodes_call_it_finalized() {
    let Scene { app, key, market, .. } = scene(TestApp::with().nodes(2).agreement(2).finalized()).await;
    let trade = key.buy(&market, 0, "5").await;
    app.run_workers().await;
    assert_eq!(app.status(trade.id).await, Status::Completed);
    app.proxies[1].set(RpcFault::Stalled).await;
    let later = key.buy(&market, 0, "5").await;
    drop(app.workers.try_run(&app.ctx).await);
    assert_eq!(app.status(later.id).await, Status::Executing);
}
