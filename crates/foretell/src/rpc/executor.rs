//! Runs requests of untrusted callers one at a time, so that they cannot starve trading.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use embedded_chain::{Access, EmbeddedNode};
use tokio::sync::{Semaphore, oneshot};

/// Maximum number of running and waiting requests. Further ones are rejected.
const MAX_REQUESTS: usize = 64;
/// Longest rest after a request.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// Runs requests one after the other. It rests after each one for as long as the request took, so
/// it uses at most half of one core.
pub struct RequestExecutor {
    node: Arc<EmbeddedNode>,
    access: Access,
    places: Semaphore,
    turn: Arc<Semaphore>,
}

/// Too many requests are waiting.
#[derive(Debug)]
pub struct Busy;

impl RequestExecutor {
    pub fn new(node: Arc<EmbeddedNode>, access: Access) -> Self {
        Self { node, access, places: Semaphore::new(MAX_REQUESTS), turn: Arc::new(Semaphore::new(1)) }
    }

    /// Executes a JSON-RPC body and returns its response.
    pub async fn answer(&self, body: Bytes) -> Result<Vec<u8>, Busy> {
        // Fail instead of waiting, so that queued requests cannot use unlimited memory.
        let _place = self.places.try_acquire().map_err(|_| Busy)?;
        let turn = Arc::clone(&self.turn).acquire_owned().await.map_err(|_| Busy)?;
        let (node, access) = (Arc::clone(&self.node), self.access);
        let (sender, answer) = oneshot::channel();
        // A separate task: if the caller hangs up, the rest after the request must still happen.
        tokio::spawn(async move {
            let began = Instant::now();
            // Sending a transaction blocks until its block is durable, so it must not block an
            // async worker thread.
            let run = tokio::task::spawn_blocking(move || node.handle_http(&body, &access));
            if let Ok(answer) = run.await {
                // The send fails if the caller has hung up, which is harmless.
                drop(sender.send(answer));
            }
            // The turn is only released after the rest, which limits all callers together.
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
