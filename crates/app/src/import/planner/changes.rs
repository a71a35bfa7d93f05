//! The members of a row that an import changes.

use domain::ids::MarketId;
use serde::Serialize;
use serde_json::Value;
use store::catalog::Listing;
use store::markets::Market;

use super::super::known::Known;
use super::super::plan::ImportRow;

/// Returns the members that differ from the stored row. Empty if there is no stored row.
pub(super) fn members(known: &Known, key: &str, row: &ImportRow) -> Vec<String> {
    match row {
        ImportRow::Organization(new) => differing(known.organizations.get(key), new),
        ImportRow::Partner(new) => differing(known.partners.get(key), new),
        ImportRow::Thread(new) => differing(known.threads.get(key), new),
        ImportRow::Chapter(new) => differing(known.chapters.get(key), new),
        ImportRow::Market(new) => {
            let old = known.markets.get(key).map(|(market, _)| listing(market));
            differing(old.as_ref(), &new.listing(new.id.unwrap_or(MarketId(uuid::Uuid::nil()))))
        }
    }
}

fn listing(market: &Market) -> Listing {
    Listing {
        market_id: market.id,
        description: market.description.clone(),
        category: market.category.clone(),
        tags: market.tags.clone(),
        thread_id: market.thread_id,
        organization_id: market.organization_id,
        partner_id: market.partner_id,
        chapter_id: market.chapter_id.clone(),
        source_url: market.source_url.clone(),
        featured_position: market.featured_position,
    }
}

fn differing<T: Serialize>(old: Option<&T>, new: &T) -> Vec<String> {
    let members = |row: &T| match serde_json::to_value(row) {
        Ok(Value::Object(members)) => members,
        _ => serde_json::Map::new(),
    };
    let (Some(old), new) = (old.map(members), members(new)) else { return Vec::new() };
    new.into_iter().filter(|(name, value)| old.get(name) != Some(value)).map(|(name, _)| name).collect()
}
