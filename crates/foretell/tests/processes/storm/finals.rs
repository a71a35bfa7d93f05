//! Records every result that a client saw as final, and compares it with the end state.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use store::{Store, StoreError};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::pass;
use super::stage::Stage;

/// A trade's final state as seen by a client: status and transaction.
type Shown = (String, Option<String>);

/// The observed results.
pub struct Finals(BTreeMap<String, Shown>);

impl Finals {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Asserts that every observed result is still the trade's result.
    pub async fn check(&self, store: &Store) {
        let rows: Result<Vec<(String, Shown)>, StoreError> = store
            .read((), |tx, ()| {
                Box::pin(async move {
                    const SQL: &str = "SELECT id, status, tx_hash FROM trades";
                    tx.list(SQL, &[], |row| Ok((row.get("id")?, (row.get("status")?, row.get("tx_hash")?))))
                        .await
                })
            })
            .await;
        let rows: BTreeMap<String, Shown> = rows.unwrap().into_iter().collect();
        for (id, shown) in &self.0 {
            assert_eq!(
                rows.get(id),
                Some(shown),
                "a result that was shown as final was taken back: trade {id}"
            );
        }
    }
}

/// The observing task.
pub struct Watch {
    stop: watch::Sender<bool>,
    task: JoinHandle<Finals>,
}

/// Starts observing the newest trades of every trader at every process.
pub fn start(stage: &Stage) -> Watch {
    let (stop, stopped) = watch::channel(false);
    let keys: Vec<String> = stage.traders.iter().map(|trader| trader.key.clone()).collect();
    Watch { stop, task: tokio::spawn(follow(keys, stage.targets(), stopped)) }
}

async fn follow(keys: Vec<String>, targets: Vec<String>, stopped: watch::Receiver<bool>) -> Finals {
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build().unwrap();
    let mut finals = BTreeMap::new();
    for turn in 0.. {
        if *stopped.borrow() {
            break;
        }
        let base_url = &targets[turn % targets.len()];
        for key in &keys {
            let url = format!("{base_url}/v1/trades?status=completed&limit=100");
            let Ok(answer) = http.get(url).header("X-API-Key", key).send().await else { break };
            let Ok(page) = answer.json::<Value>().await else { break };
            for trade in page["data"].as_array().into_iter().flatten() {
                note(&mut finals, trade);
            }
        }
        pass(Duration::from_millis(500)).await;
    }
    Finals(finals)
}

fn note(finals: &mut BTreeMap<String, Shown>, trade: &Value) {
    let text = |name: &str| trade[name].as_str().map(str::to_owned);
    let id = text("id").unwrap();
    let shown = (text("status").unwrap(), text("txHash"));
    let before = finals.entry(id.clone()).or_insert_with(|| shown.clone());
    assert_eq!(*before, shown, "a result that was shown as final was changed: trade {id}");
}

impl Watch {
    pub async fn stop(self) -> Finals {
        self.stop.send_replace(true);
        self.task.await.unwrap()
    }
}
