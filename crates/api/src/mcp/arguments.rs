//! The arguments of the tools that read. The routes that the tools call check the values.

use app::AppError;
use domain::ids::{CorrelationId, MarketId};
use domain::trade::{FieldError, Side};
use form_urlencoded::Serializer;
use http_kit::JsonBody;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use protocol::document::Members;
use serde::Deserialize;
use utoipa::ToSchema;

use super::amount::to_atomic;

/// Markets of a page if the agent sets no limit: an agent reads all that it gets.
const FEW: i64 = 10;
const A_MARKET: &str = "the id of a market, from search_markets";
const AN_OUTCOME: &str = "an integer, 0 for the first";

/// Appends a query to a path.
fn with_query<'a>(path: &str, pairs: impl IntoIterator<Item = (&'a str, Option<String>)>) -> String {
    let given = pairs.into_iter().filter_map(|(name, value)| Some((name, value?)));
    format!("{path}?{}", Serializer::new(String::new()).extend_pairs(given).finish())
}

/// Appends an id to a path. A malformed one is escaped, so that it stays one segment.
fn with_id(path: &str, id: &str) -> String {
    format!("{path}/{}", utf8_percent_encode(id, NON_ALPHANUMERIC))
}

/// No arguments.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

impl JsonBody for NoArguments {
    fn read(_: &mut Members<'_>) -> Self {
        Self {}
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchMarkets {
    /// Part of the question, in upper or lower case.
    query: Option<String>,
    /// OPEN, FROZEN, RESOLVED or CANCELLED, or several of them separated by commas. Only OPEN markets can be
    /// traded.
    status: Option<String>,
    category: Option<String>,
    /// Markets to return, at most 100. The default is 10.
    #[schema(minimum = 1, maximum = 100)]
    limit: Option<i64>,
    /// nextCursor of the page before.
    cursor: Option<String>,
}

impl JsonBody for SearchMarkets {
    fn read(members: &mut Members<'_>) -> Self {
        Self {
            query: members.text("query"),
            status: members.text("status"),
            category: members.text("category"),
            limit: members.integer("limit"),
            cursor: members.text("cursor"),
        }
    }
}

impl SearchMarkets {
    pub fn path(self) -> String {
        let Self { query, status, category, limit, cursor } = self;
        let limit = Some(limit.unwrap_or(FEW).to_string());
        let pairs =
            [("q", query), ("status", status), ("category", category), ("limit", limit), ("cursor", cursor)];
        with_query("/v1/markets", pairs)
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetMarket {
    #[schema(required, value_type = MarketId)]
    market_id: Option<String>,
}

impl JsonBody for GetMarket {
    fn read(members: &mut Members<'_>) -> Self {
        let market_id = members.text("marketId");
        Self { market_id: members.required("marketId", market_id, A_MARKET) }
    }
}

impl GetMarket {
    pub fn path(self) -> String {
        with_id("/v1/markets", &self.market_id.unwrap_or_default())
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QuoteTrade {
    #[schema(required, value_type = MarketId)]
    market_id: Option<String>,
    /// The index of the outcome. The first index is 0.
    #[schema(required, value_type = i64, minimum = 0)]
    outcome_index: Option<i64>,
    #[schema(required, value_type = Side)]
    side: Option<String>,
    /// A decimal: USDC to spend on a buy (at most 6 decimals), outcome tokens to sell (at most 18).
    #[schema(required, value_type = String, pattern = "^[0-9]+(\\.[0-9]+)?$", example = "25.00")]
    amount: Option<String>,
}

impl JsonBody for QuoteTrade {
    fn read(members: &mut Members<'_>) -> Self {
        let market_id = members.text("marketId");
        let outcome_index = members.integer("outcomeIndex");
        let side = members.text("side");
        let amount = members.text("amount");
        Self {
            market_id: members.required("marketId", market_id, A_MARKET),
            outcome_index: members.required("outcomeIndex", outcome_index, AN_OUTCOME),
            side: members.required("side", side, "buy or sell"),
            amount: members.required("amount", amount, "a decimal as a string, such as \"25.00\""),
        }
    }
}

impl QuoteTrade {
    /// Returns the path with the amount in the atomic units of the route.
    pub fn path(self) -> Result<String, AppError> {
        let Self { market_id, outcome_index, side, amount } = self;
        let side: Option<Side> = side.and_then(|side| side.parse().ok());
        let decimals = if side == Some(Side::Sell) { 18 } else { 6 };
        let amount = to_atomic(&amount.unwrap_or_default(), decimals);
        let mut errors = Vec::new();
        if side.is_none() {
            errors.push(FieldError::new("/side", "must be buy or sell"));
        }
        if amount.is_none() {
            let detail = format!("must be a decimal above zero with at most {decimals} decimals");
            errors.push(FieldError::new("/amount", detail));
        }
        if !errors.is_empty() {
            return Err(AppError::validation(&errors));
        }
        let market = with_id("/v1/markets", &market_id.unwrap_or_default());
        let pairs = [
            ("outcomeIndex", outcome_index.map(|index| index.to_string())),
            ("action", side.map(|side| side.as_str().to_owned())),
            ("amount", amount),
        ];
        Ok(with_query(&format!("{market}/quote"), pairs))
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListTrades {
    /// Trades of this status, or of several separated by commas.
    #[schema(value_type = Option<String>, example = "completed")]
    status: Option<String>,
    #[schema(value_type = Option<MarketId>)]
    market_id: Option<String>,
    /// The trade with this clientRequestId.
    client_request_id: Option<String>,
    /// Trades to return, at most 100. The default is 10.
    #[schema(minimum = 1, maximum = 100)]
    limit: Option<i64>,
    /// nextCursor of the page before.
    cursor: Option<String>,
}

impl JsonBody for ListTrades {
    fn read(members: &mut Members<'_>) -> Self {
        Self {
            status: members.text("status"),
            market_id: members.text("marketId"),
            client_request_id: members.text("clientRequestId"),
            limit: members.integer("limit"),
            cursor: members.text("cursor"),
        }
    }
}

impl ListTrades {
    pub fn path(self) -> String {
        let Self { status, market_id, client_request_id, limit, cursor } = self;
        let limit = Some(limit.unwrap_or(FEW).to_string());
        let pairs = [
            ("status", status),
            ("marketId", market_id),
            ("clientRequestId", client_request_id),
            ("limit", limit),
            ("cursor", cursor),
        ];
        with_query("/v1/trades", pairs)
    }
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TraceTrade {
    /// correlationId of the trade.
    #[schema(required, value_type = CorrelationId)]
    correlation_id: Option<String>,
}

impl JsonBody for TraceTrade {
    fn read(members: &mut Members<'_>) -> Self {
        let id = members.text("correlationId");
        Self { correlation_id: members.required("correlationId", id, "correlationId of a trade") }
    }
}

impl TraceTrade {
    pub fn path(self) -> String {
        with_id("/v1/traces", &self.correlation_id.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_id_stays_one_segment() {
        assert_eq!(with_id("/v1/markets", "../key?a=b#c/ d"), "/v1/markets/%2E%2E%2Fkey%3Fa%3Db%23c%2F%20d");
    }

    #[test]
    fn values_of_a_query_are_escaped() {
        let path = with_query("/v1/markets", [("q", Some("a&limit=1".to_owned())), ("cursor", None)]);
        assert_eq!(path, "/v1/markets?q=a%26limit%3D1");
    }
}
