//! The feed's query parameters.

use app::feed::FeedStart;
use domain::event::EventKind;
use utoipa::ToSchema;

use http_kit::{Parameters, RawQuery};

/// The parameters `types` (comma-separated or `*`), `from`, `limit` (default 50) and `cursor`.
#[derive(Debug)]
pub struct EventsQuery {
    /// The requested kinds, in the order of their definition.
    pub kinds: Vec<EventKind>,
    /// The position to read from.
    pub place: FeedStart,
    /// The page size.
    pub limit: u32,
    /// True if `limit` was sent, which streams reject.
    pub is_paged: bool,
    /// The kinds in canonical form. They must not change between the pages of a walk.
    pub filters: String,
}

/// The start of a read without a cursor.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum Beginning {
    /// At the oldest stored event.
    Oldest,
    /// After the latest event.
    Latest,
}

impl Beginning {
    fn read(word: &str) -> Option<Self> {
        match word {
            "oldest" => Some(Self::Oldest),
            "latest" => Some(Self::Latest),
            _ => None,
        }
    }

    const fn start(self) -> FeedStart {
        match self {
            Self::Oldest => FeedStart::Oldest,
            Self::Latest => FeedStart::Latest,
        }
    }
}

impl Parameters for EventsQuery {
    const NAMES: &'static [&'static str] = &["types", "from", "limit", "cursor"];

    fn read(given: &mut RawQuery<'_>) -> Option<Self> {
        let kinds = given.with("types", "must be a comma-separated list of event types, or *", kinds_of);
        let is_default = given.text("types").is_none();
        let kinds = match kinds {
            Some(kinds) => Some(kinds),
            None if is_default => Some(chosen(|kind| kind.is_basic())),
            None => None,
        };
        let from = given.with("from", "must be oldest or latest", Beginning::read);
        let has_cursor = given.text("cursor").is_some();
        if has_cursor && from.is_some() {
            // A cursor is a position already.
            given.wrong("from", "must not be sent with a cursor");
        }
        let is_paged = given.text("limit").is_some();
        let limit = given.limit();
        let filters = kinds.as_deref().map(spelled).unwrap_or_default();
        let after = given.cursor(&filters)?;
        let place = match after.map(|position| position.id.parse()) {
            Some(Ok(position)) => FeedStart::Behind(position),
            Some(Err(_)) => {
                given.wrong("cursor", "must be a cursor that this list returned for the same filters");
                return None;
            }
            None => from.map_or(FeedStart::Oldest, Beginning::start),
        };
        Some(Self { kinds: kinds?, place, limit: limit?, is_paged, filters })
    }
}

fn kinds_of(text: &str) -> Option<Vec<EventKind>> {
    if text == "*" {
        return Some(chosen(|_| true));
    }
    let named: Result<Vec<EventKind>, _> = text.split(',').map(|word| word.trim().parse()).collect();
    let named = named.ok()?;
    Some(chosen(|kind| named.contains(&kind)))
}

fn chosen(choose: impl Fn(EventKind) -> bool) -> Vec<EventKind> {
    EventKind::ALL.iter().copied().filter(|kind| choose(*kind)).collect()
}

fn spelled(kinds: &[EventKind]) -> String {
    kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_event_types_does_not_matter() {
        let one = kinds_of("trade.rejected, trade.completed").unwrap();
        let other = kinds_of("trade.completed,trade.rejected,trade.completed").unwrap();
        assert_eq!(one, other);
        assert_eq!(spelled(&one), "trade.completed,trade.rejected");
        assert_eq!(kinds_of("*").unwrap(), EventKind::ALL);
        for text in ["", "trade", "*,trade.failed", "trade.completed,,"] {
            assert_eq!(kinds_of(text), None, "{text}");
        }
    }
}
