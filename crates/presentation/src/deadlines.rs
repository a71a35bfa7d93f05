//! Times at which displayed data changes without any event.

use domain::Timestamp;
use domain::market::MarketStatus;
use store::markets::Market;
use store::public::ThreadRow;

/// Returns when the first of the open markets ends. Its status then changes to FROZEN without any
/// event.
pub fn next_end<'a>(markets: impl Iterator<Item = &'a Market>, now: Timestamp) -> Option<Timestamp> {
    markets.filter(|market| market.status_at(now) == MarketStatus::Open).map(|market| market.end_time).min()
}

/// Returns when the first of these threads begins or ends. Its status then changes even
/// without an event.
pub fn next_turn<'a>(threads: impl Iterator<Item = &'a ThreadRow>, now: Timestamp) -> Option<Timestamp> {
    let turns = threads.flat_map(|listed| [listed.thread.start_time, listed.thread.end_time]);
    turns.flatten().filter(|turn| *turn > now).min()
}
