//! A service with a replica of its database. The replica is a copy that follows nothing, with other
//! questions, so that each answer shows its origin.

use std::time::Duration;

use serde_json::Value;
use store::Store;
use tokio::time::{Interval, interval, timeout};

use crate::clients::Clients;
use crate::cluster::Cluster;
use crate::service::Process;

const QUESTION: &str = "Is this the replica?";

/// Reads lists of markets without exceeding the limit of requests.
struct Reader<'a> {
    http: reqwest::Client,
    base_url: &'a str,
    key: &'a str,
    pace: Interval,
}

impl<'a> Reader<'a> {
    fn new(process: &'a Process, key: &'a str) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { http, base_url: &process.base_url, key, pace: interval(Duration::from_millis(150)) }
    }

    /// Reports whether the answer comes from the replica.
    async fn is_of_replica(&mut self, path: &str) -> bool {
        self.pace.tick().await;
        let request = self.http.get(format!("{}{path}", self.base_url)).header("X-API-Key", self.key);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let answer: Value = answer.json().await.unwrap();
        let markets = answer.get("markets").unwrap_or(&answer["data"]).as_array().unwrap();
        let questions: Vec<&Value> = markets.iter().map(|market| &market["question"]).collect();
        assert!(!questions.is_empty(), "{answer}");
        questions.iter().all(|question| **question == QUESTION)
    }

    async fn until_public_lists_are_of_replica(&mut self, wanted: bool) {
        let changed = async { while self.is_of_replica("/api/markets").await != wanted {} };
        timeout(Duration::from_secs(60), changed).await.expect("the answers change their database");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn public_lists_use_the_replica_until_it_is_behind_and_trading_never_does() {
    let Some(cluster) = Cluster::prepare().await else { return };
    // A process that has read all blocks, so that the copy has them too.
    cluster.serve(0).await.terminate().await;
    let replica = cluster.copy_database().await;
    let copy = Store::open(&replica.url).await.unwrap();
    let renamed = copy
        .write((), |tx, ()| Box::pin(tx.exec("UPDATE markets SET question = 'Is this the replica?'", &[])));
    assert_eq!(renamed.await, Ok(2));
    let read_url = format!("{}?max_lag_ms=2000", replica.url);
    let settings = ["--listen", "127.0.0.1:0", "--database-read-url", &read_url];
    let process = cluster.serve_with(0, &cluster.anvil.url, &settings).await;
    let mut reader = Reader::new(&process, &cluster.traders[0].key);
    reader.until_public_lists_are_of_replica(true).await;
    assert!(!reader.is_of_replica("/v1/markets").await);
    // The trade's block never arrives in the replica.
    let clients = Clients::start(cluster.traders[..1].to_vec());
    clients.send_to(&[&process.base_url]);
    clients.finish_after(1).await;
    reader.until_public_lists_are_of_replica(false).await;
    assert!(!reader.is_of_replica("/api/markets").await);
}
