//! Cache of drawn cards.
//!
//! Drawing takes tens of milliseconds of CPU time, and every client that knows a market's id can
//! request its card. Therefore only a few cards are drawn at a time, on blocking threads, and each
//! state only once.

use std::sync::{Arc, OnceLock};

use app::AppError;
use axum::body::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::sync::Semaphore;

use super::draw;
use super::fonts::Fonts;

/// Size of the cache in bytes.
const KEPT_BYTES: u64 = 8 << 20;
const TYPICAL_BYTES: u64 = 30_000;
/// Maximum number of cards drawn concurrently.
const AT_A_TIME: usize = 2;

/// Cards by name. The name identifies everything that the card shows.
#[derive(Debug)]
pub struct Cards {
    kept: Cache<String, Bytes, Weigh>,
    turns: Arc<Semaphore>,
    /// Loaded when the first card is drawn.
    fonts: Arc<OnceLock<Fonts>>,
}

impl Default for Cards {
    fn default() -> Self {
        let kept = Cache::with_weighter((KEPT_BYTES / TYPICAL_BYTES) as usize, KEPT_BYTES, Weigh);
        Self { kept, turns: Arc::new(Semaphore::new(AT_A_TIME)), fonts: Arc::default() }
    }
}

impl Cards {
    /// Returns the card with this name, if it is cached.
    pub fn find(&self, name: &str) -> Option<Bytes> {
        self.kept.get(name)
    }

    /// Returns the card with this name, or draws it from the SVG that `svg` returns.
    pub(super) async fn png(
        &self,
        name: &str,
        svg: impl FnOnce(&Fonts) -> Result<String, AppError> + Send + 'static,
    ) -> Result<Bytes, AppError> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(AppError::internal)?;
        if let Some(png) = self.find(name) {
            return Ok(png);
        }
        let fonts = Arc::clone(&self.fonts);
        let drawn = tokio::task::spawn_blocking(move || {
            // The turn ends with the drawing, even if the client has hung up.
            let _turn = turn;
            let fonts = fonts.get_or_init(Fonts::read);
            draw::png(fonts, &svg(fonts)?)
        });
        let png = Bytes::from(drawn.await.map_err(AppError::internal)??);
        self.kept.insert(name.to_owned(), png.clone());
        Ok(png)
    }
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
    fn the_card_cache_is_limited_in_bytes() {
        let cards = Cards::default();
        for n in 0..1_000 {
            cards.kept.insert(n.to_string(), Bytes::from(vec![0; 30_000]));
        }
        assert!(cards.kept.weight() <= KEPT_BYTES);
        assert!(cards.kept.len() > 100 && cards.find("999").is_some());
    }
}
