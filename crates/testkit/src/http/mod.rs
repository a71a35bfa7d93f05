//! The service's HTTP surface over a test application: its very router, called without a socket.
//!
//! ```text
//! let http = app.http();
//! http.anonymous().get("/v1/markets").await.refused(ErrorCode::ApiKeyMissing);
//! http.with(&key).buy(market, 0, "25.00").await.created();
//! ```

mod answer;
mod call;
mod contract;
mod print;
mod stream;

use axum::Router;
use domain::page::CursorCodec;
use server::http::{AppState, KeptBodies, Shared};

pub use answer::Answer;
pub use call::{Anonymous, Auth, Call, Client, Keyed};
pub use contract::assert_public_schema;
pub use stream::{EventStream, Sent};

use crate::{TestApp, TestKey};

/// Where the pages about error codes stand.
pub const DOCS_URL: &str = "https://docs.foretell.test";

/// Where the web application stands.
pub const APP_URL: &str = "https://foretell.test";

/// One process's HTTP surface.
#[derive(Clone)]
pub struct Http {
    router: Router,
    /// What its routes stand on.
    pub state: Shared,
}

impl TestApp {
    /// The HTTP surface as a process has it that starts now.
    pub fn http(&self) -> Http {
        self.http_behind(&[])
    }

    /// The same, where these networks are proxies whose word about the client's address is taken.
    ///
    /// # Panics
    /// Where one is no network.
    pub fn http_behind(&self, proxies: &[&str]) -> Http {
        let networks = proxies.iter().map(|proxy| proxy.parse().expect("a network")).collect();
        self.http_with(|state| state.trusted_proxies = networks)
    }

    /// The same, where the state was changed before anything was served.
    pub fn http_with(&self, change: impl FnOnce(&mut AppState)) -> Http {
        let mut state = AppState {
            ctx: self.ctx.clone(),
            cursor: CursorCodec::new([5; 32]),
            docs_url: DOCS_URL.to_owned(),
            app_url: APP_URL.to_owned(),
            trusted_proxies: Vec::new(),
            versions: domain::version::VERSIONS,
            started_at: self.ctx.now(),
            kept: KeptBodies::default(),
            cards: Default::default(),
            sitemaps: Default::default(),
            mutations: Default::default(),
        };
        change(&mut state);
        let state = Shared::new(state);
        Http { router: server::router::router(Shared::clone(&state)), state }
    }
}

impl Http {
    /// A client without a key.
    pub fn anonymous(&self) -> Client<Anonymous> {
        Client::new(self.router.clone(), Anonymous)
    }

    /// A client with this key.
    pub fn with(&self, key: &TestKey) -> Client<Keyed> {
        self.with_text(&key.plaintext)
    }

    /// A client that sends this text as its key.
    pub fn with_text(&self, key: &str) -> Client<Keyed> {
        Client::new(self.router.clone(), Keyed(key.to_owned()))
    }
}
