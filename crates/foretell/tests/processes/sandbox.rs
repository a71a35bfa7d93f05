//! `foretell dev --test-clock`: the sandbox and its clock, with everything running by itself.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::service::Service;

/// A client with a key of a demonstration's user.
struct Trader {
    http: reqwest::Client,
    base_url: String,
    key: String,
    market: Value,
}

impl Trader {
    async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        let request = self.http.post(format!("{}{path}", self.base_url)).json(&body);
        self.answer(request).await
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.answer(self.http.get(format!("{}{path}", self.base_url))).await
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> (u16, Value) {
        let answer = request.header("x-api-key", &self.key).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    async fn buy(&self, scenario: &str) -> (u16, Value) {
        let metadata = json!({ "sandbox": scenario });
        let body = json!({ "marketId": self.market, "outcomeIndex": 0, "side": "buy", "amount": "5", "metadata": metadata });
        self.post("/v1/trades", body).await
    }

    /// Waits until the trade has this error code.
    async fn failed_with(&self, trade: &Value, code: &str) -> Value {
        let path = format!("/v1/trades/{}", trade["id"].as_str().unwrap());
        let mut polls = tokio::time::interval(Duration::from_millis(50));
        for _ in 0..400 {
            polls.tick().await;
            let (_, body) = self.get(&path).await;
            if !body["trade"]["errorCode"].is_null() {
                assert_eq!(body["trade"]["errorCode"], code, "{body}");
                return body;
            }
        }
        panic!("{trade} has not ended after 20 seconds");
    }
}

type Events = mpsc::UnboundedSender<Value>;

/// Reports an event. Rejects the events of tests.
async fn take(State(events): State<Events>, Json(event): Json<Value>) -> StatusCode {
    let status =
        if event["type"] == "webhook.test" { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
    events.send(event).unwrap();
    status
}

/// Starts a receiver, and returns its URL and what comes to it.
async fn receiver() -> (String, mpsc::UnboundedReceiver<Value>) {
    let (events, received) = mpsc::unbounded_channel();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let routes = Router::new().route("/", post(take)).with_state(events);
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    (url, received)
}

async fn next(events: &mut mpsc::UnboundedReceiver<Value>) -> Value {
    tokio::time::timeout(Duration::from_secs(20), events.recv()).await.expect("an event comes").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_clock_wakes_everything_that_waits_and_survives_a_restart() {
    let mut service = Service::on_sqlite().await;
    let demonstration = service.demonstration().await;
    service.start_with(&["--test-clock"]).await;
    let markets = demonstration["markets"].as_array().unwrap();
    let market = &markets.iter().find(|market| market["status"] == "OPEN").unwrap()["id"];
    let user = demonstration["users"][1]["userId"].as_str().unwrap();
    let (url, mut events) = receiver().await;
    let issue = [
        "key",
        "issue",
        "--user",
        user,
        "--tier",
        "mm",
        "--name",
        "n",
        "--scopes",
        "all",
        "--webhook-url",
        &url,
    ];
    let issued = service.admin(&issue).await;
    let id = issued["id"].as_str().unwrap();
    service.admin(&["delegation", "enable", "--user", user, "--key", id]).await;
    let trader = Trader {
        http: reqwest::Client::builder().no_proxy().build().unwrap(),
        base_url: service.base_url().to_owned(),
        key: issued["key"].as_str().unwrap().to_owned(),
        market: market.clone(),
    };

    assert_eq!(trader.post("/v1/webhooks/test", json!({})).await.0, 200);
    let test = next(&mut events).await;
    assert_eq!(trader.buy("reject:INSUFFICIENT_BALANCE").await.0, 409);
    let (_, failing) = trader.buy("fail:SLIPPAGE_EXCEEDED").await;
    let failed = trader.failed_with(&failing["trade"], "SLIPPAGE_EXCEEDED").await;
    assert!(failed["trade"]["txHash"].is_string(), "{failed}");
    let (status, held) = trader.buy("hold").await;
    assert_eq!(status, 202, "{held}");
    let (_, before) = trader.get("/v1/sandbox/clock").await;

    let (status, moved) = trader.post("/v1/sandbox/clock", json!({ "advanceSeconds": 600 })).await;
    assert_eq!(status, 200, "{moved}");
    trader.failed_with(&held["trade"], "CONFIRMATION_EXPIRED").await;
    // The queue is in order: the failed event is sent again first.
    let again = next(&mut events).await;
    assert_eq!((&again["id"], &again["type"]), (&test["id"], &"webhook.test".into()));
    let shift_s = |from: &Value, to: &Value| {
        let at = |body: &Value| body["clock"]["now"].as_str().unwrap().parse::<domain::Timestamp>().unwrap();
        at(to).since_ms(at(from)) / 1_000
    };
    assert!(shift_s(&before, &moved) >= 600, "{before} {moved}");

    service.terminate().await;
    service.start_with(&["--test-clock"]).await;
    let trader = Trader { base_url: service.base_url().to_owned(), ..trader };
    let (_, later) = trader.get("/v1/sandbox/clock").await;
    // It continues at the newest block, whose time is in whole seconds.
    assert!(shift_s(&before, &later) >= 599, "{before} {later}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_test_clock_nothing_moves_the_time() {
    let mut service = Service::on_sqlite().await;
    let demonstration = service.demonstration().await;
    service.start().await;
    let trader = Trader {
        http: reqwest::Client::builder().no_proxy().build().unwrap(),
        base_url: service.base_url().to_owned(),
        key: demonstration["users"][0]["keys"][0]["key"].as_str().unwrap().to_owned(),
        market: Value::Null,
    };
    assert_eq!(trader.get("/v1/sandbox/clock").await.0, 404);
    assert_eq!(trader.post("/v1/sandbox/clock", json!({ "advanceSeconds": 600 })).await.0, 404);
}
