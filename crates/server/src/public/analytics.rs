//! What belongs to somebody who is signed in to the web application. Nobody is yet.

use super::{Code, Refusal};

/// `GET /api/markets/for-you`: markets chosen by what one traded.
#[utoipa::path(
    get, path = "/api/markets/for-you", operation_id = "listMarketsForYou", tag = "Session",
    summary = "List markets for you",
    description = "Markets of the categories and threads that one has traded. It takes a session of the web application: \
        without one it is refused.",
    responses((status = 200, description = "What a signed-in reader gets. Nobody can sign in yet.")),
    extensions(("x-error-codes" = json!(["UNAUTHORIZED"]))),
)]
pub async fn for_you() -> Refusal {
    Refusal::new(Code::Unauthorized)
}

/// `GET /api/portfolio/analytics`: one's own value and profit over time.
#[utoipa::path(
    get, path = "/api/portfolio/analytics", operation_id = "getPortfolioAnalytics", tag = "Session",
    summary = "Read your portfolio over time",
    description = "Value and profit over time. It takes a session of the web application: without one it is refused.",
    responses((status = 200, description = "What a signed-in reader gets. Nobody can sign in yet.")),
    extensions(("x-error-codes" = json!(["UNAUTHORIZED"]))),
)]
pub async fn analytics() -> Refusal {
    Refusal::new(Code::Unauthorized)
}
