//! Clients that trade without pause, remember what they were told, and repeat what they got no answer to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The trades that were acknowledged: idempotency key to trade id.
pub type Told = BTreeMap<String, String>;

/// Where to send to, and whether to begin anything new.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Order {
    Wait,
    SendTo(Arc<str>),
    Finish(Arc<str>),
}

/// Several clients at work.
pub struct Clients {
    order: watch::Sender<Order>,
    tasks: JoinSet<Told>,
}

impl Clients {
    /// Clients of different users of the demonstration. They wait until they are told where to send to.
    pub fn start(demonstration: &Value, count: usize) -> Self {
        let (order, orders) = watch::channel(Order::Wait);
        let mut tasks = JoinSet::new();
        let markets = demonstration["markets"].as_array().unwrap();
        let open: Vec<String> = markets
            .iter()
            .filter(|market| market["status"] == "OPEN")
            .map(|market| market["id"].as_str().unwrap().to_owned())
            .collect();
        for (index, user) in demonstration["users"].as_array().unwrap().iter().skip(1).take(count).enumerate() {
            let key = user["keys"][0]["key"].as_str().unwrap().to_owned();
            tasks.spawn(trade(index, key, open.clone(), orders.clone()));
        }
        Self { order, tasks }
    }

    /// Tells every client where the service is now.
    pub fn send_to(&self, base_url: &str) {
        self.order.send_replace(Order::SendTo(base_url.into()));
    }

    /// Lets every client bring its last request to an answer, and gathers what they were told.
    pub async fn finish(self) -> Told {
        let base_url = match &*self.order.borrow() {
            Order::SendTo(base_url) | Order::Finish(base_url) => Arc::clone(base_url),
            Order::Wait => panic!("the clients were never told where to send to"),
        };
        self.order.send_replace(Order::Finish(base_url));
        self.tasks.join_all().await.into_iter().flatten().collect()
    }
}

async fn trade(index: usize, key: String, markets: Vec<String>, mut orders: watch::Receiver<Order>) -> Told {
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap();
    let mut told = Told::new();
    let mut number = 0u64;
    loop {
        let idempotency_key = format!("crash-{index}-{number}");
        let market = &markets[number as usize % markets.len()];
        let body = json!({ "marketId": market, "outcomeIndex": number % 2, "side": "buy", "amount": "0.25" });
        // The same request under the same key until there is an answer.
        loop {
            let base_url = match orders.borrow_and_update().clone() {
                Order::Wait => None,
                Order::SendTo(base_url) | Order::Finish(base_url) => Some(base_url),
            };
            let Some(base_url) = base_url else {
                orders.changed().await.unwrap();
                continue;
            };
            let sent = http
                .post(format!("{base_url}/v1/trades"))
                .header("X-API-Key", &key)
                .header("Idempotency-Key", &idempotency_key)
                .json(&body)
                .send()
                .await;
            let answered = match sent {
                Ok(answer) => {
                    let status = answer.status().as_u16();
                    answer.json::<Value>().await.ok().map(|body| (status, body))
                }
                Err(_) => None,
            };
            match answered {
                Some((201, body)) => {
                    let id = body["trade"]["id"].as_str().unwrap().to_owned();
                    told.insert(idempotency_key.clone(), id);
                    break;
                }
                Some((503 | 504, _)) | None => {
                    // No answer that counts: wait for the next life, or a moment.
                    drop(tokio::time::timeout(Duration::from_millis(50), orders.changed()).await);
                }
                Some((status, body)) => panic!("an answer that nobody expects: {status} {body}"),
            }
        }
        number += 1;
        if matches!(&*orders.borrow(), Order::Finish(_)) {
            return told;
        }
    }
}
