//! The setup of most tests: Ada, her key and a market, behind the HTTP API.

use domain::ErrorCode;
use domain::Usdc;
use domain::key::{LimitOverrides, Tier};
use http_testkit::{Client, Http, Keyed, RequestBuilder, ServeHttp};
use serde_json::{Value, json};
use testkit::{TestApp, TestKey, TestMarket, TestUser};

pub struct Scene {
    pub app: TestApp,
    pub http: Http,
    pub ada: TestUser,
    pub key: TestKey,
    pub client: Client<Keyed>,
    pub market: TestMarket,
}

impl Scene {
    /// Creates Ada with 10,000 USDC and a key of the tier `mm`, and a market with two outcomes.
    pub async fn new() -> Self {
        Self::with("10000", Tier::Mm).await
    }

    pub async fn with(funds: &str, tier: Tier) -> Self {
        let app = TestApp::new().await;
        let ada = app.user("ada").funded(funds).await;
        let key = app.key(&ada, tier).await;
        let market = app.market(&["Yes", "No"]).await;
        let http = app.http();
        let client = http.with(&key);
        Self { app, http, ada, key, client, market }
    }

    /// Like [`Scene::new`], with a key that holds trades of 100 USDC or more.
    pub async fn gated() -> Self {
        let scene = Self::new().await;
        let high_value = Some(Usdc::from_whole(100));
        let limits = LimitOverrides { high_value, ..LimitOverrides::default() };
        let key = scene.app.key_with(&scene.ada, Tier::Enterprise, limits).await;
        Self { client: scene.http.with(&key), key, ..scene }
    }

    /// Creates a held buy of outcome 0 for 100 USDC, and returns it.
    pub async fn held(&self) -> Value {
        self.client.buy(self.market, 0, "100").await.expect(202)["trade"].take()
    }

    /// Confirms a held trade with its token.
    pub fn confirm(&self, held: &Value) -> RequestBuilder {
        confirm(&self.client, text(&held["id"]), json!({ "token": held["confirmation"]["token"] }))
    }

    /// Creates another user with 10,000 USDC and a key.
    pub async fn bob(&self) -> Client<Keyed> {
        let bob = self.app.user("bob").funded("10000").await;
        self.http.with(&self.app.key(&bob, Tier::Mm).await)
    }

    /// Creates a trade, runs the workers, and returns its new state.
    pub async fn settled(&self, call: RequestBuilder) -> Value {
        let id = call.await.created()["id"].clone();
        self.app.run_workers().await;
        let mut body = self.client.get(&format!("/v1/trades/{}", text(&id))).await.ok();
        assert_eq!(body["trade"]["status"], "completed", "{body}");
        body["trade"].take()
    }

    pub async fn positions(&self) -> Vec<Value> {
        rows(&self.client.get("/v1/portfolio/positions").await.ok())
    }

    pub async fn portfolio(&self) -> Value {
        self.client.get("/v1/portfolio").await.ok()["portfolio"].take()
    }

    /// Returns the market's trades, newest first.
    pub async fn predictions(&self) -> Vec<Value> {
        rows(&self.client.get(&format!("/v1/markets/{}/predictions", self.market.id)).await.ok())
    }
}

/// Sends a confirm with this body.
pub fn confirm(client: &Client<Keyed>, id: &str, body: Value) -> RequestBuilder {
    client.call("POST", &format!("/v1/trades/{id}/confirm")).raw_json(body.to_string())
}

/// Asserts that the write is rejected with this code, was not submitted, and leaves no row and no
/// reservation.
pub async fn assert_refused(app: &TestApp, call: RequestBuilder, code: ErrorCode) -> Value {
    let before = app.rows().await;
    let mut body = call.await.refused(code);
    assert_eq!(body["extensions"]["submission"], "not_submitted", "{body}");
    assert_eq!(app.rows().await, before);
    body["extensions"].take()
}

/// Like [`assert_refused`], for validation errors of these fields.
pub async fn assert_invalid(app: &TestApp, call: RequestBuilder, pointers: &[&str]) {
    let before = app.rows().await;
    let answer = call.await;
    assert_eq!(answer.pointers(), pointers, "\n{answer}");
    assert_eq!(answer.json()["extensions"]["submission"], "not_submitted", "\n{answer}");
    assert_eq!(app.rows().await, before);
}

pub fn rows(body: &Value) -> Vec<Value> {
    body["data"].as_array().unwrap().clone()
}

/// Returns a string of a body.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

/// Returns an amount of a body in atomic units.
pub fn atomic(value: &Value) -> u128 {
    text(value).parse().unwrap()
}

pub fn ids(body: &Value) -> Vec<String> {
    rows(body).iter().map(|row| text(&row["id"]).to_owned()).collect()
}
