//! Routes that need a web application session. Sessions do not exist yet, so both routes always
//! return 401.

use http_kit::{Problem, PublicCode};

/// `GET /api/markets/for-you`: markets chosen by what one traded.
#[utoipa::path(
    get, path = "/api/markets/for-you", operation_id = "listMarketsForYou", tag = "Session",
    summary = "List markets for you",
    description = "Markets in the categories and threads that the user has traded. Requires a session of \
        the web application.",
    responses((status = 200, description = "The response to a signed-in user. Signing in is not available yet.")),
    extensions(("x-error-codes" = json!(["UNAUTHORIZED"]))),
)]
pub async fn for_you() -> Problem {
    Problem::from(PublicCode::Unauthorized)
}

/// `GET /api/portfolio/analytics`: one's own value and profit over time.
#[utoipa::path(
    get, path = "/api/portfolio/analytics", operation_id = "getPortfolioAnalytics", tag = "Session",
    summary = "Read your portfolio over time",
    description = "Value and profit over time. Requires a session of the web application.",
    responses((status = 200, description = "The response to a signed-in user. Signing in is not available yet.")),
    extensions(("x-error-codes" = json!(["UNAUTHORIZED"]))),
)]
pub async fn analytics() -> Problem {
    Problem::from(PublicCode::Unauthorized)
}
