//! Two processes with a node that responds slowly.

use std::time::{Duration, Instant};

use serde_json::json;
use store::Store;
use testkit::{RpcFault, RpcProxy};

use crate::clients::post;
use crate::cluster::Cluster;
use crate::oracle;

/// Maximum duration of the trades. Each step of a lane and of the sync sends a dozen requests to
/// the node.
const LONGEST: Duration = Duration::from_secs(180);

async fn open_trades(store: &Store) -> i64 {
    oracle::number(store, "SELECT COUNT(*) FROM trades WHERE ended_at_ms IS NULL").await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_with_a_node_slower_than_a_lease_complete_every_trade() {
    let Some(cluster) = Cluster::prepare().await else { return };
    let node = RpcProxy::start(&cluster.anvil.url).await;
    let (first, second) = (cluster.serve_over(0, node.url()).await, cluster.serve_over(1, node.url()).await);
    node.set(RpcFault::Late(2_000)).await;
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build().unwrap();
    let sends = cluster.traders.iter().enumerate().flat_map(|(index, trader)| {
        [&first, &second].map(|process| {
            let body = json!({
                "marketId": trader.markets[0], "outcomeIndex": 0, "side": "buy", "amount": "1.50",
            });
            let (http, base_url) = (http.clone(), process.base_url.clone());
            async move {
                let id = format!("slow-{index}-{}", base_url.rsplit(':').next().unwrap());
                // A request that times out is repeated with the same key.
                for _ in 0..20 {
                    match post(&http, &base_url, &trader.key, &id, &body).await {
                        Some((503 | 504, _)) | None => {}
                        Some(answer) => return answer,
                    }
                }
                panic!("the trade was never accepted");
            }
        })
    });
    let answers = futures::future::join_all(sends).await;
    assert!(answers.iter().all(|(status, _)| *status == 201), "{answers:?}");
    let parts = cluster.parts().await;
    let began = Instant::now();
    while began.elapsed() < LONGEST && open_trades(&parts.ctx.store).await > 0 {
        drop(tokio::time::timeout(Duration::from_millis(200), std::future::pending::<()>()).await);
    }
    eprintln!("the trades took {:?}", began.elapsed());
    let completed = "SELECT COUNT(*) FROM trades WHERE status = 'completed'";
    assert_eq!(oracle::number(&parts.ctx.store, completed).await, 12);
    let changes_of_owner = "SELECT CAST(SUM(epoch) AS BIGINT) FROM leases WHERE name LIKE 'executor:%'";
    let changes = oracle::number(&parts.ctx.store, changes_of_owner).await;
    assert!(changes <= 6, "lanes have changed their owners {changes} times");
}
