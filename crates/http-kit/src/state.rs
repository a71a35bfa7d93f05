//! Application state shared by all handlers.

use std::convert::Infallible;
use std::sync::Arc;

use app::test_clock::TestClock;
use app::traces::within;
use app::{AppError, Ctx, Submission};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use domain::version::Versions;
use domain::{ErrorCode, Timestamp};
use protocol::CursorCodec;
use tokio_util::task::TaskTracker;

use super::{Meta, RequestId, ResponseCache, TrustedProxies};

pub struct AppState {
    /// The context of the use cases.
    pub ctx: Ctx,
    /// Encodes and decodes pagination cursors.
    pub cursor: CursorCodec,
    /// Base URL of the error pages, without a trailing slash.
    pub docs_url: String,
    /// Base URL of the web application, without a trailing slash. Links to threads and markets
    /// point there.
    pub app_url: String,
    /// Peers whose forwarding headers are trusted.
    pub trusted_proxies: TrustedProxies,
    pub versions: Versions,
    /// Short-lived caches of responses about markets.
    pub responses: ResponseCache,
    pub started_at: Timestamp,
    /// The names of the routes that the operator can switch off, such as `POST /v1/trades`.
    pub switchable_routes: Vec<String>,
    /// Settings of the tools for agents at `/mcp`. `None` switches them off.
    pub mcp: Option<McpSettings>,
    /// The clock that clients may move. Only `foretell dev --test-clock` has one.
    pub test_clock: Option<Arc<TestClock>>,
    /// Writes in progress. They continue if the client hangs up, so a shutdown waits for them here.
    pub mutations: TaskTracker,
}

/// Settings of the tools for agents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct McpSettings {
    /// Keys with the scope may trade and claim. Otherwise the tools only read.
    pub can_trade: bool,
    /// Names under which agents reach the service, besides this machine and the host of `app_url`.
    pub hosts: Vec<String>,
}

/// The state as handlers receive it.
pub type Shared = Arc<AppState>;

impl AppState {
    /// Runs a write in its own task, so that it completes even if the client hangs up. If the task
    /// panics, the error reports an unknown submission state.
    pub async fn mutate<T: Send + 'static, F>(
        self: &Arc<Self>,
        write: impl FnOnce(Shared) -> F,
    ) -> Result<T, AppError>
    where
        F: Future<Output = Result<T, AppError>> + Send + 'static,
    {
        let lost =
            // A panicked write may have committed before it panicked.
            |error| AppError::new(ErrorCode::InternalError).submission(Submission::Unknown).caused_by(error);
        let write = within(self.ctx.process.traces.current(), write(Arc::clone(self)));
        self.mutations.spawn(write).await.map_err(lost)?
    }
}

impl FromRequestParts<Shared> for Meta {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Self::Rejection> {
        let request_id = RequestId::from_request_parts(parts, app).await?;
        Ok(Self::new(request_id, app.ctx.now()))
    }
}
