//! Example responses of the public API's OpenAPI document.

use serde_json::Value;

/// Builds the list from entries of the form `operation "summary";`. The example's body is in the
/// JSON file named after the operation.
macro_rules! examples {
    ($($operation:ident $summary:literal;)*) => {
        &[$((stringify!($operation), $summary, include_str!(concat!("examples/", stringify!($operation), ".json"))),)*]
    };
}

static EXAMPLES: &[(&str, &str, &str)] = examples! {
    listThreads "A page";
    getThread "A thread with its markets";
    listThreadMarkets "A page";
    listThreadChapters "Two chapters";
    getThreadSocialLinks "A thread's links";
    listPublicMarkets "A page";
    listTrendingMarkets "Trending markets of 24 hours";
    listFeaturedMarkets "Featured markets";
    getPublicMarket "A market of three outcomes";
    getPublicQuote "A buy of 25 USDC";
    getPublicMarketHistory "An hour with a trade";
    getMarketSocialLink "A market's links";
    getOrganization "An organization";
    listOrganizationThreads "A page";
    listOrganizationMarkets "A page";
    listOrganizationPartners "A page";
    getPartner "A partner";
    listPartnerThreads "A page";
    getLeaderboard "The leaderboard of 7 days";
    getTransaction "A buy";
    getOembed "A market's frame";
};

/// Returns the summary and value of an operation's example.
pub fn of(operation: &str) -> Option<(&'static str, Value)> {
    let (_, summary, json) = EXAMPLES.iter().find(|(name, ..)| *name == operation)?;
    Some((summary, serde_json::from_str(json).unwrap_or_default()))
}

/// Returns the operations that have an example.
#[cfg(test)]
pub fn operations() -> impl Iterator<Item = &'static str> {
    EXAMPLES.iter().map(|(name, ..)| *name)
}
