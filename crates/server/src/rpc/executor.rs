//! Runs requests of unknown callers one at a time, so that they cannot take the machine away from trading.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use chain::embedded::{Access, EmbeddedNode};
use tokio::sync::{Semaphore, oneshot};

/// Requests that run or wait; further ones are rejected.
const MAX_REQUESTS: usize = 64;
/// The longest rest after a request.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// Runs requests in turn. After each one the turn rests as long as it took, so at most half of one core is used.
pub struct Executor {
    node: Arc<EmbeddedNode>,
    access: Access,
    places: Semaphore,
    turn: Arc<Semaphore>,
}

/// There are too many requests.
#[derive(Debug)]
pub struct Busy;

impl Executor {
    pub fn new(node: Arc<EmbeddedNode>, access: Access) -> Self {
        Self { node, access, places: Semaphore::new(MAX_REQUESTS), turn: Arc::new(Semaphore::new(1)) }
    }

    /// The answer to a JSON-RPC body.
    pub async fn answer(&self, body: Bytes) -> Result<Vec<u8>, Busy> {
        let _place = self.places.try_acquire().map_err(|_| Busy)?;
        let turn = Arc::clone(&self.turn).acquire_owned().await.map_err(|_| Busy)?;
        let (node, access) = (Arc::clone(&self.node), self.access);
        let (sender, answer) = oneshot::channel();
        // A task of its own: the rest is kept even if the caller hangs up.
        tokio::spawn(async move {
            let began = Instant::now();
            // A send waits for its durable block: not on a thread that serves others.
            let run = tokio::task::spawn_blocking(move || node.handle_http(&body, &access));
            if let Ok(answer) = run.await {
                // The caller may have hung up.
                drop(sender.send(answer));
            }
            rest(began.elapsed().min(LONGEST_REST)).await;
            drop(turn);
        });
        answer.await.map_err(|_| Busy)
    }
}

#[expect(clippy::disallowed_methods, reason = "the rest bounds the share of the machine that strangers get")]
async fn rest(time: Duration) {
    tokio::time::sleep(time).await;
}
