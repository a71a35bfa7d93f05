//! Cache of drawn cards.
//!
//! Drawing takes tens of milliseconds of CPU time, and every client that knows a market's id can
//! request its card. Therefore only a few cards are drawn at a time, on blocking threads and for a
//! bounded number of waiting clients, and each state only once. Whoever is over the budget gets the
//! page's last card, which is a few trades old.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use app::AppError;
use app::limits::budget::Budget;
use app::limits::{Budgets, Place, Refused};
use axum::body::Bytes;
use domain::Timestamp;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::sync::Semaphore;

use super::draw;
use super::fonts::Fonts;

/// Size of the cache in bytes: about 1,400 cards.
const KEPT_BYTES: u64 = 64 << 20;
const TYPICAL_BYTES: u64 = 45_000;
/// Number of pages whose last card is known.
const MAX_PAGES: usize = 4_096;

/// Cards by name. The name identifies everything that the card shows.
#[derive(Debug)]
pub struct Cards {
    kept: Cache<String, Bytes, Weigh>,
    /// The name of the last card of each page.
    last: Cache<String, String>,
    turns: Arc<Semaphore>,
    /// Loaded when the first card is drawn.
    fonts: Arc<OnceLock<Fonts>>,
}

/// The card of a page, such as `markets/ID`, in a state.
#[derive(Debug)]
pub(super) struct CardName {
    page: String,
    name: String,
}

impl CardName {
    pub fn new(page: String, version: &str) -> Self {
        Self { name: format!("{page}/{version}"), page }
    }
}

/// A client that requests a card.
#[derive(Debug, Clone, Copy)]
pub(super) struct CardClient<'a> {
    pub budgets: &'a Budgets,
    pub ip: IpAddr,
    pub now: Timestamp,
}

impl CardClient<'_> {
    /// Counts a card that must be drawn, among those of the last minute and those that are being drawn.
    fn enter(self) -> Result<Place, Refused> {
        let place = self.budgets.enter(Budget::Drawings, self.ip)?;
        self.budgets.spend_here(Budget::Cards, self.ip, self.now)?;
        Ok(place)
    }
}

/// An image.
#[derive(Debug)]
pub(super) enum Card {
    /// The card of the state.
    Current(Bytes),
    /// That of an earlier state, because too many are being drawn.
    Earlier(Bytes),
}

impl Default for Cards {
    fn default() -> Self {
        let kept = Cache::with_weighter((KEPT_BYTES / TYPICAL_BYTES) as usize, KEPT_BYTES, Weigh);
        // Half of the machine, so that trades go on whatever is drawn.
        let at_a_time = std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1));
        Self {
            kept,
            last: Cache::new(MAX_PAGES),
            turns: Arc::new(Semaphore::new(at_a_time)),
            fonts: Arc::default(),
        }
    }
}

impl Cards {
    /// Returns the card with this name for a client. If it is not cached, `prepare` reads what it shows,
    /// and returns the function that writes its SVG.
    ///
    /// # Errors
    /// `RATE_LIMIT_EXCEEDED` if too many cards are being drawn and the page has no earlier one; those
    /// of `prepare` and of the drawing.
    pub(super) async fn card<S>(
        &self,
        name: &CardName,
        client: CardClient<'_>,
        prepare: impl Future<Output = Result<S, AppError>>,
    ) -> Result<Card, AppError>
    where
        S: FnOnce(&Fonts) -> Result<String, AppError> + Send + 'static,
    {
        if let Some(png) = self.kept.get(&name.name) {
            return Ok(Card::Current(png));
        }
        match client.enter() {
            Ok(place) => Ok(Card::Current(self.draw(name, place, prepare.await?).await?)),
            Err(refused) => {
                let earlier = self.last.get(&name.page).and_then(|last| self.kept.get(&last));
                earlier.map(Card::Earlier).ok_or_else(|| refused.into())
            }
        }
    }

    async fn draw(
        &self,
        name: &CardName,
        place: Place,
        svg: impl FnOnce(&Fonts) -> Result<String, AppError> + Send + 'static,
    ) -> Result<Bytes, AppError> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(AppError::internal)?;
        if let Some(png) = self.kept.get(&name.name) {
            return Ok(png);
        }
        let fonts = Arc::clone(&self.fonts);
        let drawn = tokio::task::spawn_blocking(move || {
            // Both end with the drawing, even if the client has hung up.
            let _held = (turn, place);
            let fonts = fonts.get_or_init(Fonts::read);
            draw::png(fonts, &svg(fonts)?)
        });
        let png = Bytes::from(drawn.await.map_err(AppError::internal)??);
        self.kept.insert(name.name.clone(), png.clone());
        self.last.insert(name.page.clone(), name.name.clone());
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
    use app::limits::Limits;
    use domain::ErrorCode;
    use domain::rate::Scope;
    use std::cell::Cell;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    const SVG: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" width="2" height="2"/>"#;

    /// A client at the address 192.0.2.`last`.
    fn client(limits: &Limits, last: u8) -> CardClient<'_> {
        CardClient { budgets: limits.budgets(), ip: IpAddr::from([192, 0, 2, last]), now: NOW }
    }

    fn of_address(budget: Budget) -> u64 {
        budget.default_share(Scope::Address).limit().unwrap()
    }

    fn name(page: &str, version: &str) -> CardName {
        CardName::new(page.to_owned(), version)
    }

    async fn get(cards: &Cards, name: &CardName, client: CardClient<'_>) -> Result<Card, AppError> {
        cards.card(name, client, async { Ok(|_: &Fonts| Ok(SVG.to_owned())) }).await
    }

    #[test]
    fn the_card_cache_is_limited_in_bytes() {
        let cards = Cards::default();
        for n in 0..4_000 {
            cards.kept.insert(n.to_string(), Bytes::from(vec![0; 45_000]));
        }
        assert!(cards.kept.weight() <= KEPT_BYTES);
        assert!(cards.kept.len() > 1_000 && cards.kept.get("3999").is_some());
    }

    #[tokio::test]
    async fn a_client_over_the_budget_gets_the_pages_last_card_or_an_error() {
        let (cards, limits) = (Cards::default(), Limits::memory());
        let [one, other] = [1, 2].map(|last| client(&limits, last));
        assert!(matches!(get(&cards, &name("markets/a", "1"), one).await, Ok(Card::Current(_))));
        assert_eq!(limits.budgets().in_use(Budget::Drawings), 0);
        let places: Vec<_> = (0..of_address(Budget::Drawings)).map(|_| one.enter().unwrap()).collect();
        let is_read = Cell::new(false);
        let prepare = async {
            is_read.set(true);
            Ok(|_: &Fonts| Ok(SVG.to_owned()))
        };
        let earlier = cards.card(&name("markets/a", "2"), one, prepare).await;
        assert!(matches!(earlier, Ok(Card::Earlier(_))) && !is_read.get());
        let refusal = get(&cards, &name("markets/b", "1"), one).await.unwrap_err();
        assert_eq!(refusal.code, ErrorCode::RateLimitExceeded);
        // A kept card costs nothing, and others have places of their own.
        assert!(matches!(get(&cards, &name("markets/a", "1"), one).await, Ok(Card::Current(_))));
        assert!(matches!(get(&cards, &name("markets/b", "1"), other).await, Ok(Card::Current(_))));
        drop(places);
        assert!(matches!(get(&cards, &name("markets/a", "2"), one).await, Ok(Card::Current(_))));
    }

    #[tokio::test]
    async fn an_address_draws_a_number_of_cards_per_minute() {
        let (cards, limits) = (Cards::default(), Limits::memory());
        let one = client(&limits, 1);
        for n in 0..of_address(Budget::Cards) {
            assert!(get(&cards, &name("markets/a", &n.to_string()), one).await.is_ok(), "{n}");
        }
        assert!(matches!(get(&cards, &name("markets/a", "new"), one).await, Ok(Card::Earlier(_))));
        assert!(get(&cards, &name("markets/b", "1"), one).await.is_err());
        assert!(get(&cards, &name("markets/b", "1"), client(&limits, 2)).await.is_ok());
        // A window of a minute forgets after another slot of five seconds.
        let later = CardClient { now: NOW.plus_ms(66_000), ..one };
        assert!(matches!(get(&cards, &name("markets/a", "new"), later).await, Ok(Card::Current(_))));
    }
}
