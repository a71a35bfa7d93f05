//! Parses documents from outside, such as catalogs.
//!
//! The parsers themselves bound their memory. Even so, a large document takes milliseconds, so it's
//! parsed on a blocking thread: the async threads serve everybody else meanwhile. Only a few run at
//! a time, and nobody waits longer than the deadline.

use std::sync::Arc;
use std::time::Duration;

use domain::ErrorCode;
use tokio::sync::Semaphore;

use crate::{AppError, Submission};

/// The maximum number of documents that are parsed at the same time.
const MAX_PARALLEL: usize = 2;
/// The maximum time for parsing a document, including the wait for a turn.
const DEADLINE: Duration = Duration::from_secs(5);

/// The turns of this process's parsers.
#[derive(Debug)]
pub struct Parsers {
    turns: Arc<Semaphore>,
}

impl Default for Parsers {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(MAX_PARALLEL)) }
    }
}

impl Parsers {
    /// Runs `parse` on a blocking thread.
    ///
    /// # Errors
    /// `REQUEST_TIMEOUT` after five seconds. `parse` then runs to its end, and keeps its turn until
    /// then.
    pub async fn run<T: Send + 'static>(
        &self,
        parse: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, AppError> {
        self.run_within(DEADLINE, parse).await
    }

    async fn run_within<T: Send + 'static>(
        &self,
        deadline: Duration,
        parse: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, AppError> {
        let parsed = async {
            let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(AppError::internal)?;
            let parsed = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                parse()
            });
            parsed.await.map_err(AppError::internal)
        };
        tokio::time::timeout(deadline, parsed).await.unwrap_or_else(|_| Err(late()))
    }
}

fn late() -> AppError {
    AppError::new(ErrorCode::RequestTimeout)
        .detail("The document was not read within 5 seconds. Nothing was stored.")
        .submission(Submission::NotSubmitted)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_parser_that_hangs_ends_its_request_and_keeps_its_turn() {
        let parsers = Parsers::default();
        let (ends, end): (Vec<_>, Vec<_>) = (0..MAX_PARALLEL).map(|_| mpsc::channel::<()>()).unzip();
        for end in end {
            let error = parsers.run_within(Duration::ZERO, move || end.recv()).await.unwrap_err();
            assert_eq!(error.code, ErrorCode::RequestTimeout);
        }
        assert_eq!(parsers.turns.available_permits(), 0, "hung parsers keep their turns");
        let waiting = parsers.run_within(Duration::ZERO, || 1).await;
        assert_eq!(waiting.unwrap_err().code, ErrorCode::RequestTimeout);
        drop(ends);
        assert_eq!(parsers.run(|| 1).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_parser_that_panics_is_an_internal_error() {
        let parsers = Parsers::default();
        for _ in 0..=MAX_PARALLEL {
            let parsed: Result<(), _> = parsers.run(|| panic!("a bug of the parser")).await;
            let error = parsed.unwrap_err();
            assert_eq!(error.code, ErrorCode::InternalError);
        }
    }
}
