//! The cards that were drawn lately.
//!
//! Drawing takes tens of milliseconds of a processor, and whoever knows a market's id can ask for its card: so no more than
//! a few are drawn at a time, off the threads that answer requests, and each state once.

use std::sync::{Arc, OnceLock};

use app::AppError;
use axum::body::Bytes;
use domain::ErrorCode;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::sync::Semaphore;

use super::draw;
use super::fonts::Fonts;

/// Bytes of cards that are kept.
const KEPT_BYTES: u64 = 8 << 20;
const TYPICAL_BYTES: u64 = 30_000;
/// How many are drawn at a time.
const AT_A_TIME: usize = 2;

/// Cards by their names, which say all that they show.
#[derive(Debug)]
pub struct Cards {
    kept: Cache<String, Bytes, Weigh>,
    turns: Arc<Semaphore>,
    /// Read when the first card is drawn.
    fonts: Arc<OnceLock<Fonts>>,
}

impl Default for Cards {
    fn default() -> Self {
        let kept = Cache::with_weighter((KEPT_BYTES / TYPICAL_BYTES) as usize, KEPT_BYTES, Weigh);
        Self { kept, turns: Arc::new(Semaphore::new(AT_A_TIME)), fonts: Arc::default() }
    }
}

impl Cards {
    /// The card of this name, where it is kept.
    pub fn find(&self, name: &str) -> Option<Bytes> {
        self.kept.get(name)
    }

    /// The card of this name, drawn from what `svg` writes where it is not kept.
    pub(super) async fn png(
        &self,
        name: &str,
        svg: impl FnOnce(&Fonts) -> Result<String, AppError> + Send + 'static,
    ) -> Result<Bytes, AppError> {
        let unavailable = |error| AppError::new(ErrorCode::InternalError).caused_by(error);
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(unavailable)?;
        if let Some(png) = self.find(name) {
            return Ok(png);
        }
        let fonts = Arc::clone(&self.fonts);
        let drawn = tokio::task::spawn_blocking(move || {
            // The turn is over when the drawing is, also where nobody waits for it any longer.
            let _turn = turn;
            let fonts = fonts.get_or_init(Fonts::read);
            draw::png(fonts, &svg(fonts)?)
        });
        let png = Bytes::from(drawn.await.map_err(unavailable_join)??);
        self.kept.insert(name.to_owned(), png.clone());
        Ok(png)
    }
}

fn unavailable_join(error: tokio::task::JoinError) -> AppError {
    AppError::new(ErrorCode::InternalError).caused_by(error)
}

#[derive(Debug, Clone)]
struct Weigh;

impl Weighter<String, Bytes> for Weigh {
    fn weight(&self, name: &String, png: &Bytes) -> u64 {
        (name.len() + png.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_kept_within_a_number_of_bytes() {
        let cards = Cards::default();
        for n in 0..1_000 {
            cards.kept.insert(n.to_string(), Bytes::from(vec![0; 30_000]));
        }
        assert!(cards.kept.weight() <= KEPT_BYTES);
        assert!(cards.kept.len() > 100 && cards.find("999").is_some());
    }
}
