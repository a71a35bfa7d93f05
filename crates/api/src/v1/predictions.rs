//! Recent trades of a market.

use app::markets::outcome_of;
use axum::extract::State;
use domain::ids::MarketId;
use domain::page::PagePosition;
use domain::trade::Side;
use domain::{Timestamp, Usdc, Wad};
use http_kit::{
    Caller, List, MarketsRead, Meta, OutcomeIndex, Paging, Parameters, PathId, Problem, Query, RawQuery,
    Shared,
};
use serde::Serialize;
use store::StoreError;
use store::markets::Market;
use store::movements::{Movement, MovementKind, TradeFilter};
use utoipa::ToSchema;

use super::markets::get_market;
use super::numbers;
use crate::openapi::answers::answers;
use crate::openapi::formats::{Address, TxHash};

answers! {
    PredictionList = list(PredictionRecord);
}

/// The parameters `outcomeIndex`, `side`, `limit` (default 50) and `cursor`.
#[derive(Debug)]
pub struct PredictionsQuery {
    outcome_index: Option<i64>,
    side: Option<Side>,
    paging: Paging,
}

impl Parameters for PredictionsQuery {
    const NAMES: &'static [&'static str] = &["outcomeIndex", "side", "limit", "cursor"];

    fn read(given: &mut RawQuery<'_>) -> Option<Self> {
        let outcome_index = given
            .parsed("outcomeIndex", "must be an integer, 0 for the first")
            .map(|OutcomeIndex(index)| index);
        let side = given.parsed("side", "must be buy or sell");
        Some(Self { outcome_index, side, paging: given.paging()? })
    }
}

/// A trade on chain, made through this API or not. It only contains public data of the chain.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Prediction)]
#[serde(rename_all = "camelCase")]
pub struct PredictionRecord {
    /// The position of the trade on the chain. Ids sort by time.
    id: String,
    market_id: MarketId,
    outcome_index: u8,
    side: Side,
    /// USDC paid or received, fee included, in atomic-6.
    amount: Usdc,
    tokens: Wad,
    /// USDC per token.
    price: Option<f64>,
    /// The outcome's probability after the trade.
    probability_after: Option<f64>,
    #[schema(value_type = Address)]
    trader: alloy_primitives::Address,
    #[schema(value_type = TxHash)]
    tx_hash: alloy_primitives::B256,
    created_at: Timestamp,
}

impl PredictionRecord {
    fn new(market: &Market, movement: Movement) -> Self {
        let state_after = movement.quantity.zip(movement.cost);
        Self {
            market_id: movement.market_id,
            outcome_index: movement.outcome_index,
            // The query only returns buys and sells.
            side: if movement.kind == MovementKind::Sell { Side::Sell } else { Side::Buy },
            amount: movement.usdc,
            tokens: movement.tokens,
            price: numbers::per_token(movement.usdc, movement.tokens),
            probability_after: state_after
                .map(|(quantity, cost)| numbers::probability(quantity, cost, market.liquidity)),
            created_at: movement.created_at,
            id: movement.id,
            trader: movement.account,
            tx_hash: movement.tx_hash,
        }
    }
}

/// `GET /v1/markets/{id}/predictions`: a market's trades, newest first. Listed trades never change.
#[utoipa::path(
    get, path = "/v1/markets/{id}/predictions", operation_id = "listPredictions", tag = "Markets",
    summary = "List a market's trades",
    description = "The market's trades on chain, newest first, including those that were not made through \
        this API. The list is append-only.",
    params(
        ("id" = MarketId, Path, description = "The market's id."),
        ("outcomeIndex" = Option<i64>, Query, minimum = 0, description = "Trades of this outcome."),
        ("side" = Option<Side>, Query, description = "Only buys, or only sales."),
    ),
    responses((status = 200, description = "A page of trades.", body = PredictionList)),
    extensions(("x-error-codes" = json!(["MARKET_NOT_FOUND", "OUTCOME_INDEX_INVALID"]))),
)]
pub async fn list(
    State(app): State<Shared>,
    _caller: Caller<MarketsRead>,
    PathId(id): PathId,
    Query(query): Query<PredictionsQuery>,
    meta: Meta,
) -> Result<List<PredictionRecord>, Problem> {
    let (market, outcomes) = get_market(&app, &id).await?;
    let PredictionsQuery { outcome_index, side, paging } = query;
    let outcome_index = outcome_index.map(|index| outcome_of(outcomes.len(), index)).transpose()?;
    let input = (market.id, TradeFilter { outcome_index, side }, paging.page.clone());
    let listed: Result<_, StoreError> = app
        .ctx
        .store
        .read(input, |tx, (id, filter, page)| Box::pin(store::movements::list_trades(tx, *id, filter, page)))
        .await;
    let position = |row: &Movement| PagePosition { created_at: row.created_at, id: row.id.clone() };
    let (rows, pagination) = paging.cut(&app.cursor, listed?, position);
    Ok(meta.list(rows.into_iter().map(|row| PredictionRecord::new(&market, row)).collect(), pagination))
}

#[cfg(test)]
mod tests {
    use super::super::market_record::testing;
    use super::*;

    #[test]
    fn a_prediction_has_the_documented_members() {
        let (market, _) = testing::market();
        let movement = Movement {
            id: Movement::id_at(7, 2),
            block_number: 7,
            log_index: 2,
            tx_hash: alloy_primitives::B256::repeat_byte(0xaa),
            kind: MovementKind::Sell,
            market_id: market.id,
            outcome_index: 1,
            account: alloy_primitives::Address::repeat_byte(0xbb),
            counterparty: None,
            usdc: Usdc::from_whole(5),
            tokens: Wad::from_amount(Usdc::from_whole(10)),
            fee: Usdc::ZERO,
            cost: Some(market.cost),
            quantity: Some(Wad::ZERO),
            trade_id: None,
            created_at: Timestamp::from_ms(0),
            realized_pnl: domain::UsdcDelta(0),
        };
        let record = PredictionRecord::new(&market, movement);
        insta::assert_snapshot!(serde_json::to_string_pretty(&record).unwrap());
    }
}
