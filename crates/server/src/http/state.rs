//! What the routes stand on.

use std::sync::Arc;

use app::{AppError, Ctx, Submission};
use domain::page::CursorCodec;
use domain::version::Versions;
use domain::{ErrorCode, Timestamp};
use ipnet::IpNet;
use tokio_util::task::TaskTracker;

use super::KeptBodies;

/// The parts and settings that handlers use.
pub struct AppState {
    /// The use cases' context.
    pub ctx: Ctx,
    /// Makes and reads the cursors of lists.
    pub cursor: CursorCodec,
    /// Where the pages about error codes stand, without a slash at the end.
    pub docs_url: String,
    /// Where the web application stands, without a slash at the end: links to threads and markets lead there.
    pub app_url: String,
    /// Peers whose word about the client's address is taken.
    pub trusted_proxies: Vec<IpNet>,
    /// The versions of the API.
    pub versions: Versions,
    /// Answers about markets that are kept for a moment.
    pub kept: KeptBodies,
    /// Cards that were drawn lately.
    pub cards: crate::public::Cards,
    /// Sitemaps that were written lately.
    pub sitemaps: crate::public::Sitemaps,
    /// When the service started.
    pub started_at: Timestamp,
    /// Writes on their way. They run to their end when the client hangs up, so a shutdown waits for them here.
    pub mutations: TaskTracker,
}

/// The state as handlers hold it.
pub type Shared = Arc<AppState>;

impl AppState {
    /// Runs a write to its end, also where the client hangs up meanwhile: it must not leave half of it done. Where the task
    /// panicked it is not known how far it came.
    pub async fn mutate<T: Send + 'static, F>(
        self: &Arc<Self>,
        write: impl FnOnce(Shared) -> F,
    ) -> Result<T, AppError>
    where
        F: Future<Output = Result<T, AppError>> + Send + 'static,
    {
        let lost =
            |error| AppError::new(ErrorCode::InternalError).submission(Submission::Unknown).caused_by(error);
        self.mutations.spawn(write(Arc::clone(self))).await.map_err(lost)?
    }
}
