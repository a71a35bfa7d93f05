//! Clients that trade continuously, record the responses, and repeat unanswered requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The acknowledged trades: idempotency key to trade id.
pub type AcknowledgedTrades = BTreeMap<String, String>;

/// The maximum wait for trades. A test that waits longer would never end.
const LONGEST: Duration = Duration::from_secs(600);

/// The key and the markets of a client.
#[derive(Debug, Clone)]
pub struct Trader {
    pub key: String,
    /// The markets, used in turn.
    pub markets: Vec<String>,
}

impl Trader {
    /// Returns traders of different users of a demonstration.
    pub fn of_demonstration(demonstration: &Value, count: usize) -> Vec<Self> {
        let markets = demonstration["markets"].as_array().unwrap().iter();
        let open = markets.filter(|market| market["status"] == "OPEN");
        let markets: Vec<String> = open.map(|market| market["id"].as_str().unwrap().to_owned()).collect();
        let users = demonstration["users"].as_array().unwrap().iter().skip(1).take(count);
        users
            .map(|user| Self {
                key: user["keys"][0]["key"].as_str().unwrap().to_owned(),
                markets: markets.clone(),
            })
            .collect()
    }
}

/// The addresses to send to, and whether to stop after the current request.
#[derive(Debug, Clone, Default)]
struct Order {
    targets: Vec<Arc<str>>,
    finish: bool,
}

/// A group of running clients.
pub struct Clients {
    order: watch::Sender<Order>,
    /// The number of acknowledged trades.
    acknowledged: watch::Receiver<usize>,
    tasks: JoinSet<AcknowledgedTrades>,
}

impl Clients {
    /// Starts clients that wait for a target and then trade continuously.
    pub fn start(traders: Vec<Trader>) -> Self {
        Self::start_paced(traders, Duration::ZERO)
    }

    /// Like [`Clients::start`], with a pause after each acknowledged trade.
    pub fn start_paced(traders: Vec<Trader>, pause: Duration) -> Self {
        let (order, orders) = watch::channel(Order::default());
        let (count, acknowledged) = watch::channel(0);
        let mut tasks = JoinSet::new();
        for (index, trader) in traders.into_iter().enumerate() {
            tasks.spawn(trade(index, trader, pause, orders.clone(), count.clone()));
        }
        Self { order, acknowledged, tasks }
    }

    /// Sets the addresses of the services, which the clients use in turn.
    pub fn send_to(&self, targets: &[&str]) {
        self.order
            .send_modify(|order| order.targets = targets.iter().map(|target| Arc::from(*target)).collect());
    }

    /// Waits until this number of further trades is acknowledged, however slow the machine is.
    pub async fn trade_more(&self, count: usize) {
        let until = *self.acknowledged.borrow() + count;
        self.trade_until(until).await;
    }

    async fn trade_until(&self, least: usize) {
        let mut acknowledged = self.acknowledged.clone();
        let enough = acknowledged.wait_for(|acknowledged| *acknowledged >= least);
        tokio::time::timeout(LONGEST, enough).await.expect("the service accepts no trades").unwrap();
    }

    /// Like [`Clients::finish`], once at least `least` trades are acknowledged, so that the test proves
    /// something.
    pub async fn finish_after(self, least: usize) -> AcknowledgedTrades {
        self.trade_until(least).await;
        self.finish().await
    }

    /// Lets every client complete its last request, and returns the acknowledged trades.
    pub async fn finish(self) -> AcknowledgedTrades {
        self.order.send_modify(|order| order.finish = true);
        self.tasks.join_all().await.into_iter().flatten().collect()
    }
}

async fn trade(
    index: usize,
    trader: Trader,
    pause: Duration,
    mut orders: watch::Receiver<Order>,
    count: watch::Sender<usize>,
) -> AcknowledgedTrades {
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap();
    let mut acknowledged = AcknowledgedTrades::new();
    let mut number = 0usize;
    let mut attempt = index;
    loop {
        let idempotency_key = format!("client-{index}-{number}");
        let market = &trader.markets[number % trader.markets.len()];
        let body = json!({ "marketId": market, "outcomeIndex": number % 2, "side": "buy", "amount": "0.25" });
        // Repeat the same request with the same key until there is a response.
        loop {
            let targets = orders.borrow_and_update().targets.clone();
            if targets.is_empty() {
                orders.changed().await.unwrap();
                continue;
            }
            attempt += 1;
            let base_url = &targets[attempt % targets.len()];
            match post(&http, base_url, &trader.key, &idempotency_key, &body).await {
                Some((201, body)) => {
                    let id = body["trade"]["id"].as_str().unwrap().to_owned();
                    acknowledged.insert(idempotency_key, id);
                    count.send_modify(|count| *count += 1);
                    break;
                }
                // 409: the first request with this key is still running, e.g. in a frozen process.
                Some((503 | 504 | 409, _)) | None => {
                    // No definite response: wait for the next run of the service, or for a moment.
                    drop(tokio::time::timeout(Duration::from_millis(50), orders.changed()).await);
                }
                Some((status, body)) => panic!("an answer that nobody expects: {status} {body}"),
            }
        }
        number += 1;
        if !pause.is_zero() {
            drop(tokio::time::timeout(pause, std::future::pending::<()>()).await);
        }
        if orders.borrow().finish {
            return acknowledged;
        }
    }
}

/// Sends one request. Returns `None` if no complete response arrived.
pub async fn post(
    http: &reqwest::Client,
    base_url: &str,
    key: &str,
    idempotency_key: &str,
    body: &Value,
) -> Option<(u16, Value)> {
    let sent = http
        .post(format!("{base_url}/v1/trades"))
        .header("X-API-Key", key)
        .header("Idempotency-Key", idempotency_key)
        .json(body)
        .send()
        .await;
    let answer = sent.ok()?;
    let status = answer.status().as_u16();
    Some((status, answer.json().await.ok()?))
}
