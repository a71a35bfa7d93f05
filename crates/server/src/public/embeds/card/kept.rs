//! The cards that were drawn lately.
//!
//! Drawing takes tens of milliseconds of a processor, and whoever knows a market's id can ask for its card: so no more than
//! a few are drawn at a time, off the threads that answer requests, and each state once.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use app::AppError;
use axum::body::Bytes;
use domain::ErrorCode;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::draw;
use super::fonts::Fonts;

/// The most cards that are kept, about 30 KB each.
const MOST: usize = 256;
/// How many are drawn at a time.
const AT_A_TIME: usize = 2;

/// Cards by their names, which say all that they show.
#[derive(Debug)]
pub struct Cards {
    kept: Mutex<Kept>,
    turns: Arc<Semaphore>,
    /// Read when the first card is drawn.
    fonts: Arc<OnceLock<Fonts>>,
}

impl Default for Cards {
    fn default() -> Self {
        Self { kept: Mutex::default(), turns: Arc::new(Semaphore::new(AT_A_TIME)), fonts: Arc::default() }
    }
}

impl Cards {
    /// The card of this name, where it is kept.
    pub fn find(&self, name: &str) -> Option<Bytes> {
        self.kept.lock().find(name)
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
        self.kept.lock().put(name.to_owned(), png.clone());
        Ok(png)
    }
}

fn unavailable_join(error: tokio::task::JoinError) -> AppError {
    AppError::new(ErrorCode::InternalError).caused_by(error)
}

/// The most that are kept go by when they were asked for last.
#[derive(Debug, Default)]
struct Kept {
    cards: HashMap<String, (u64, Bytes)>,
    asked: u64,
}

impl Kept {
    fn find(&mut self, name: &str) -> Option<Bytes> {
        self.asked += 1;
        let (last, png) = self.cards.get_mut(name)?;
        *last = self.asked;
        Some(png.clone())
    }

    fn put(&mut self, name: String, png: Bytes) {
        self.asked += 1;
        if self.cards.len() >= MOST && !self.cards.contains_key(&name) {
            let oldest = self.cards.iter().min_by_key(|(_, (last, _))| *last).map(|(name, _)| name.clone());
            oldest.and_then(|oldest| self.cards.remove(&oldest));
        }
        self.cards.insert(name, (self.asked, png));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_card_that_was_not_asked_for_longest_makes_room() {
        let mut kept = Kept::default();
        for n in 0..MOST {
            kept.put(n.to_string(), Bytes::new());
        }
        assert!(kept.find("0").is_some());
        kept.put("new".to_owned(), Bytes::new());
        assert_eq!(kept.cards.len(), MOST);
        assert!(kept.find("0").is_some() && kept.find("new").is_some() && kept.find("1").is_none());
    }
}
