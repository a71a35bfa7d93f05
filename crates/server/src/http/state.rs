//! What the routes stand on.

use std::sync::Arc;

use app::Ctx;
use domain::Timestamp;
use domain::page::CursorCodec;
use domain::version::Versions;
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
