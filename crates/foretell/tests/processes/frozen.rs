//! Two processes on one PostgreSQL and one node. One of them is frozen and resumes later.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use store::{Store, StoreError};

use crate::clients::{Clients, Trader, post};
use crate::cluster::Cluster;
use crate::oracle;
use crate::service::Process;

/// The lease's duration, 5 s, and a second for a busy test machine.
const LONGEST: Duration = Duration::from_secs(15 + 5 + 1);

/// Returns the number of transactions that have been idle for a while.
async fn abandoned_transactions(store: &Store) -> i64 {
    const SQL: &str = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()
        AND state LIKE 'idle in transaction%' AND state_change < clock_timestamp() - INTERVAL '100 milliseconds'";
    oracle::number(store, SQL).await
}

/// Freezes the process in the middle of a transaction.
async fn freeze_in_transaction(process: &Process, store: &Store) {
    let mut polls = tokio::time::interval(Duration::from_millis(30));
    for _ in 0..400 {
        process.freeze().await;
        for _ in 0..6 {
            polls.tick().await;
        }
        if abandoned_transactions(store).await > 0 {
            return;
        }
        process.thaw().await;
        polls.tick().await;
    }
    panic!("the process was never frozen in the middle of a transaction");
}

/// Creates a trade through the process and waits until it is completed. Returns the duration.
async fn complete_one(process: &Process, trader: &Trader, store: &Store, name: &str) -> Duration {
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(30)).build().unwrap();
    let body = json!({ "marketId": trader.markets[0], "outcomeIndex": 0, "side": "buy", "amount": "0.50" });
    let began = Instant::now();
    let mut polls = tokio::time::interval(Duration::from_millis(50));
    let id = loop {
        polls.tick().await;
        // Rows that the frozen process has locked are released when its transaction times out.
        match post(&http, &process.base_url, &trader.key, name, &body).await {
            Some((201, answer)) => break answer["trade"]["id"].as_str().unwrap().to_owned(),
            Some((503 | 504, _)) | None => assert!(began.elapsed() < LONGEST, "no trade was accepted"),
            Some(other) => panic!("an answer that nobody expects: {other:?}"),
        }
    };
    while !is_completed(store, &id).await {
        assert!(began.elapsed() < LONGEST, "the trade was not completed within {LONGEST:?}");
        polls.tick().await;
    }
    began.elapsed()
}

async fn is_completed(store: &Store, id: &str) -> bool {
    let found: Result<Option<String>, StoreError> = store
        .read(id.to_owned(), |tx, id| {
            Box::pin(async move {
                let id = [store::SqlValue::from(id)];
                tx.find("SELECT status FROM trades WHERE id = $1", &id, |row| row.only::<String>()).await
            })
        })
        .await;
    found.unwrap().is_some_and(|status| status == "completed")
}

/// The first process holds all leases when it is frozen. The second one must complete trades of
/// every lane.
async fn takes_over(in_transaction: bool) {
    let Some(cluster) = Cluster::prepare().await else { return };
    let first = cluster.serve(0).await;
    let clients = Clients::start(cluster.traders.clone());
    clients.send_to(&[&first.base_url]);
    let parts = cluster.parts().await;
    let store = &parts.ctx.store;
    let second = cluster.serve(1).await;
    if in_transaction {
        freeze_in_transaction(&first, store).await;
    } else {
        first.freeze().await;
    }
    clients.send_to(&[&second.base_url]);
    let traders = cluster.traders.iter().enumerate();
    let names: Vec<String> = traders.clone().map(|(index, _)| format!("after-{index}")).collect();
    let trades = traders.map(|(index, trader)| complete_one(&second, trader, store, &names[index]));
    let slowest = futures::future::join_all(trades).await.into_iter().max().unwrap();
    eprintln!("the slowest trade took {slowest:?}");

    // The clients' requests to the frozen process end when it resumes.
    first.thaw().await;
    clients.send_to(&[&first.base_url, &second.base_url]);
    let ready = ready(&first).await;
    let acknowledged = clients.finish().await;
    assert_eq!(ready["status"], "ready");
    oracle::settled(store).await;
    oracle::check(store, &parts.ctx.chain, &acknowledged).await;
}

async fn ready(process: &Process) -> Value {
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build().unwrap();
    let mut polls = tokio::time::interval(Duration::from_millis(50));
    for _ in 0..400 {
        polls.tick().await;
        let answer = http.get(format!("{}/v1/ready", process.base_url)).send().await;
        if let Ok(answer) = answer
            && answer.status() == 200
        {
            return answer.json().await.unwrap();
        }
    }
    panic!("a process that came back is not ready after twenty seconds");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_process_delays_others_by_a_lease_and_5_seconds_and_repeats_nothing() {
    takes_over(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_frozen_in_a_transaction_delays_others_no_longer_and_repeats_nothing() {
    takes_over(true).await;
}
