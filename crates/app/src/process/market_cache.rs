//! The cache of market rows.

use std::sync::Arc;

use domain::ids::MarketId;
use store::markets::{Market, Outcome};

use super::ttl_cache::{TtlCache, Weigh};

/// The size limit of the market cache in bytes.
const MOST_BYTES: usize = 16 << 20;

pub type CachedMarket = (Market, Vec<Outcome>);

pub type MarketCache = TtlCache<MarketId, Arc<CachedMarket>>;

impl Default for MarketCache {
    fn default() -> Self {
        Self::within_bytes(MOST_BYTES)
    }
}

impl Weigh for MarketId {
    fn weight_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// Counts the importer's texts and the rows themselves.
impl Weigh for Arc<CachedMarket> {
    fn weight_bytes(&self) -> usize {
        let (market, outcomes) = self.as_ref();
        let texts = [&market.description, &market.source_url, &market.resolution_source];
        let texts: usize = texts.into_iter().flatten().chain(&market.tags).map(String::len).sum();
        let labels: usize = outcomes.iter().map(|outcome| outcome.label.len()).sum();
        size_of::<Market>() + market.question.len() + texts + outcomes.len() * size_of::<Outcome>() + labels
    }
}
