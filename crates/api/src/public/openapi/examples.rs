//! Example responses of the public API's OpenAPI document.

use app::AppError;
use domain::ErrorCode;
use http_kit::{Problem, PublicCode};
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
    listMarketsForYou "Markets for a person";
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
    getPortfolioAnalytics "A deposit of 100 USDC, and a buy";
    getTransaction "A buy";
    getOembed "A market's frame";
};

/// Returns the summary and value of an operation's example.
pub fn of(operation: &str) -> Option<(&'static str, Value)> {
    let (_, summary, json) = EXAMPLES.iter().find(|(name, ..)| *name == operation)?;
    Some((summary, serde_json::from_str(json).unwrap_or_default()))
}

/// Returns an example error with this code.
pub fn error(code: PublicCode) -> Problem {
    let waiting = |code, seconds| AppError::new(code).retry_after_s(seconds).into();
    match code {
        PublicCode::InvalidRequest => AppError::new(ErrorCode::ValidationFailed)
            .detail("limit must be an integer from 1 to 100, got \"0\".")
            .into(),
        PublicCode::RateLimitExceeded => waiting(ErrorCode::RateLimitExceeded, 12),
        PublicCode::DependencyUnavailable => waiting(ErrorCode::DependencyUnavailable, 1),
        PublicCode::RouteDisabled => waiting(ErrorCode::RouteDisabled, 30),
        _ => code.into(),
    }
}

/// Returns the operations that have an example.
#[cfg(test)]
pub fn operations() -> impl Iterator<Item = &'static str> {
    EXAMPLES.iter().map(|(name, ..)| *name)
}
