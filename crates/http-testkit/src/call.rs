//! Clients and their requests.

use std::future::IntoFuture;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, Method, Request, Uri};
use axum::response::Response;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use testkit::TestMarket;
use tower::ServiceExt;

use crate::{Answer, EventStream, contract};

/// The default address of clients.
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7));

/// The credentials of a client.
pub trait Auth {
    /// The value of the `X-API-Key` header.
    fn key(&self) -> Option<&str>;
}

/// A client without a key.
#[derive(Debug, Clone)]
pub struct Anonymous;

/// A client with this text as its key.
#[derive(Debug, Clone)]
pub struct Keyed(pub String);

impl Auth for Anonymous {
    fn key(&self) -> Option<&str> {
        None
    }
}

impl Auth for Keyed {
    fn key(&self) -> Option<&str> {
        Some(&self.0)
    }
}

/// A client of the HTTP API.
#[derive(Debug, Clone)]
pub struct Client<A> {
    router: Router,
    auth: A,
}

impl<A: Auth> Client<A> {
    pub(super) const fn new(router: Router, auth: A) -> Self {
        Self { router, auth }
    }

    /// Builds a request.
    pub fn call(&self, method: &str, path: &str) -> RequestBuilder {
        let method: Method = method.parse().expect("a method");
        let path: Uri = path.parse().expect("a path");
        let call = RequestBuilder {
            router: self.router.clone(),
            method,
            path,
            headers: Vec::new(),
            body: Sent::Nothing,
            from: CLIENT,
        };
        match self.auth.key() {
            Some(key) => call.header("x-api-key", key),
            None => call,
        }
    }

    /// Builds a GET request.
    pub fn get(&self, path: &str) -> RequestBuilder {
        self.call("GET", path)
    }
}

impl Client<Keyed> {
    /// Builds a request to create a trade.
    pub fn trade(&self, body: Value) -> RequestBuilder {
        RequestBuilder { body: Sent::Json(body), ..self.call("POST", "/v1/trades") }
    }

    /// Builds a buy for an amount of USDC.
    pub fn buy(&self, market: TestMarket, outcome: u8, usdc: &str) -> RequestBuilder {
        self.trade(json!({ "marketId": market.id, "outcomeIndex": outcome, "amount": usdc, "side": "buy" }))
    }

    /// Builds a sale for an amount of USDC.
    pub fn sell(&self, market: TestMarket, outcome: u8, usdc: &str) -> RequestBuilder {
        self.trade(json!({ "marketId": market.id, "outcomeIndex": outcome, "amount": usdc, "side": "sell" }))
    }

    /// Builds a sale of all tokens.
    pub fn sell_all(&self, market: TestMarket, outcome: u8) -> RequestBuilder {
        let all =
            json!({ "marketId": market.id, "outcomeIndex": outcome, "amountType": "all", "side": "sell" });
        self.trade(all)
    }

    /// Builds a claim of a settled position.
    pub fn redeem(&self, market: TestMarket, outcome: u8) -> RequestBuilder {
        let body = json!({ "marketId": market.id, "outcomeIndex": outcome });
        RequestBuilder { body: Sent::Json(body), ..self.call("POST", "/v1/redemptions") }
    }

    /// Builds a quote request. `action` is `buy` or `sell`, and `amount` is in the action's atomic
    /// units.
    pub fn quote(&self, market: TestMarket, outcome: u8, action: &str, amount: &str) -> RequestBuilder {
        let id = market.id;
        self.get(&format!("/v1/markets/{id}/quote?outcomeIndex={outcome}&action={action}&amount={amount}"))
    }
}

/// A request under construction. Awaiting it sends it.
pub struct RequestBuilder {
    router: Router,
    method: Method,
    path: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Sent,
    from: IpAddr,
}

enum Sent {
    Nothing,
    Json(Value),
    Body(Body),
}

impl RequestBuilder {
    /// Adds a header line.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let name = name.parse().expect("a header's name");
        self.headers.push((name, HeaderValue::from_bytes(value.as_ref()).expect("a header's value")));
        self
    }

    /// Adds the `Idempotency-Key` header.
    #[must_use]
    pub fn idempotent(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    /// Adds or replaces a member of the JSON body.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        let Sent::Json(Value::Object(body)) = &mut self.body else { panic!("the body is no object") };
        body.insert(member.to_owned(), value.into());
        self
    }

    /// Changes the amount's unit from USDC to tokens.
    #[must_use]
    pub fn in_tokens(self) -> Self {
        self.with("amountType", "tokens")
    }

    /// Sets the body, without a `Content-Type`.
    #[must_use]
    pub fn body(mut self, body: impl Into<Body>) -> Self {
        self.body = Sent::Body(body.into());
        self
    }

    /// Sets the body, with the `Content-Type` of JSON.
    #[must_use]
    pub fn raw_json(self, body: impl Into<Body>) -> Self {
        self.body(body).header("content-type", "application/json")
    }

    /// Sets the address of the peer.
    #[must_use]
    pub fn from_peer(mut self, ip: &str) -> Self {
        self.from = ip.parse().expect("an address");
        self
    }

    /// Sends the request.
    pub async fn send(self) -> Answer {
        let (method, path) = (self.method.clone(), self.path.path().to_owned());
        let answer = Answer::read(method.clone(), path.clone(), self.respond().await).await;
        // Every response of every test is checked against the OpenAPI document.
        contract::check(&method, &path, &answer);
        answer
    }

    /// Sends the request and opens the response as a stream of events.
    pub async fn open(self) -> EventStream {
        EventStream::read(self.header("accept", "text/event-stream").respond().await)
    }

    /// Sends the request. Neither reads the response nor compares it with the OpenAPI document.
    pub async fn respond(mut self) -> Response {
        let body = match self.body {
            Sent::Nothing => Body::empty(),
            Sent::Body(body) => body,
            Sent::Json(value) => {
                self.headers.push((CONTENT_TYPE, HeaderValue::from_static("application/json")));
                Body::from(value.to_string())
            }
        };
        let mut request = Request::new(body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.path;
        for (name, value) in self.headers {
            // Appended, because tests also send repeated headers.
            request.headers_mut().append(name, value);
        }
        // Without a socket, the handlers take the peer from here.
        request.extensions_mut().insert(ConnectInfo(SocketAddr::new(self.from, 50_000)));
        match self.router.oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

impl IntoFuture for RequestBuilder {
    type Output = Answer;
    type IntoFuture = BoxFuture<'static, Answer>;

    fn into_future(self) -> Self::IntoFuture {
        self.send().boxed()
    }
}
