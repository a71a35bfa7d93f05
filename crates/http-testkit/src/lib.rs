//! The HTTP API of a test application: the service's own router, called without a socket.
//!
//! ```text
//! use http_testkit::ServeHttp;
//!
//! let http = app.http();
//! http.anonymous().get("/v1/markets").await.refused(ErrorCode::ApiKeyMissing);
//! http.with(&key).buy(market, 0, "25.00").await.created();
//! ```

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what a test cannot do without fails it")]

mod answer;
mod call;
mod contract;
mod print;
pub mod public_scene;
mod stream;

use axum::Router;
use http_kit::{AppState, ResponseCache, Route, Shared};
use protocol::CursorCodec;
use testkit::{TestApp, TestKey};

pub use answer::Answer;
pub use call::{Anonymous, Auth, Client, Keyed, RequestBuilder};
pub use contract::assert_public_schema;
pub use stream::{EventStream, StreamEvent};

/// The base URL of the error documentation.
pub const DOCS_URL: &str = "https://docs.foretell.test";

/// The base URL of the web application.
pub const APP_URL: &str = "https://foretell.test";

/// Returns the GET routes that need no key.
pub fn public_routes() -> impl Iterator<Item = &'static Route> {
    api::public::routes().chain(web::routes())
}

/// Returns the routes of all surfaces.
pub fn all_routes() -> impl Iterator<Item = &'static Route> {
    api::v1::router::routes().chain(api::mcp::routes()).chain(public_routes()).chain(web::site_routes())
}

/// The HTTP API of one process.
#[derive(Clone)]
pub struct Http {
    router: Router,
    /// The state shared by all handlers.
    pub state: Shared,
}

/// Serves a test application over HTTP.
pub trait ServeHttp {
    /// The HTTP API of a new process.
    fn http(&self) -> Http {
        self.http_behind(&[])
    }

    /// The HTTP API with these networks as trusted proxies.
    fn http_behind(&self, proxies: &[&str]) -> Http {
        let networks: Vec<_> = proxies.iter().map(|proxy| proxy.parse().expect("a network")).collect();
        self.http_with(|state| state.trusted_proxies = networks.into())
    }

    /// The HTTP API with a changed state.
    fn http_with(&self, change: impl FnOnce(&mut AppState)) -> Http;
}

impl ServeHttp for TestApp {
    fn http_with(&self, change: impl FnOnce(&mut AppState)) -> Http {
        let mut state = AppState {
            ctx: self.ctx.clone(),
            cursor: CursorCodec::new([5; 32]),
            docs_url: DOCS_URL.to_owned(),
            app_url: APP_URL.to_owned(),
            trusted_proxies: Default::default(),
            versions: domain::version::VERSIONS,
            started_at: self.ctx.now(),
            switchable_routes: vec!["POST /v1/trades".to_owned()],
            responses: ResponseCache::default(),
            mcp: None,
            test_clock: Some(self.test_clock()),
            mutations: Default::default(),
        };
        change(&mut state);
        let state = Shared::new(state);
        let apis = api::router(Shared::clone(&state));
        Http { router: apis.merge(web::router(Shared::clone(&state))), state }
    }
}

impl Http {
    pub fn anonymous(&self) -> Client<Anonymous> {
        Client::new(self.router.clone(), Anonymous)
    }

    pub fn with(&self, key: &TestKey) -> Client<Keyed> {
        self.with_text(&key.plaintext)
    }

    /// Returns a client that sends this text as its key.
    pub fn with_text(&self, key: &str) -> Client<Keyed> {
        Client::new(self.router.clone(), Keyed(key.to_owned()))
    }
}
