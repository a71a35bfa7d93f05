//! Examples of answers, as a client sees them.

use serde_json::Value;

/// `operation "summary";` for each, whose answer stands in a file of its name.
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
    listTrendingMarkets "The day's markets";
    listFeaturedMarkets "What is featured";
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
    getLeaderboard "The week's best";
    getTransaction "A buy";
    getOembed "A market's frame";
};

/// The example of an operation's answer: summary and value.
pub fn of(operation: &str) -> Option<(&'static str, Value)> {
    let (_, summary, json) = EXAMPLES.iter().find(|(name, ..)| *name == operation)?;
    Some((summary, serde_json::from_str(json).unwrap_or_default()))
}

/// The operations that the list speaks of.
#[cfg(test)]
pub fn operations() -> impl Iterator<Item = &'static str> {
    EXAMPLES.iter().map(|(name, ..)| *name)
}
