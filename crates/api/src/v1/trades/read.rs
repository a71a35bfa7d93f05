//! Lists and reads the caller's trades.

use axum::extract::State;
use domain::ids::{MarketId, TradeId};
use domain::page::PagePosition;
use domain::trade::is_client_request_id;
use http_kit::{
    Caller, List, Meta, NoParameters, Paging, Parameters, PathId, Problem, Query, RawQuery, Shared, Single,
    TradesRead,
};
use store::StoreError;
use store::trades::{Trade, TradeListFilter};

use super::view::{FinalitySettings, TradeRecord};
use crate::openapi::answers::answers;
use crate::openapi::formats::ClientRequestId;

answers! {
    TradeAnswer = single("trade", TradeRecord);
    TradeList = list(TradeRecord);
}

/// The parameters `status` (comma-separated), `marketId`, `clientRequestId`, `limit` (default 20)
/// and `cursor`.
#[derive(Debug)]
pub struct TradesQuery {
    filter: TradeListFilter,
    paging: Paging,
}

impl Parameters for TradesQuery {
    const NAMES: &'static [&'static str] = &["status", "marketId", "clientRequestId", "limit", "cursor"];

    fn read(given: &mut RawQuery<'_>) -> Option<Self> {
        let id_form = "must have 1 to 128 characters from A-Z a-z 0-9 _ - : and the full stop";
        let client_request_id = |text: &str| is_client_request_id(text).then(|| text.to_owned());
        let filter = TradeListFilter {
            statuses: given
                .list("status", "must be a comma-separated list of trade statuses", |word| word.parse().ok()),
            market_id: given.parsed("marketId", "must be a UUID"),
            client_request_id: given.with("clientRequestId", id_form, client_request_id),
        };
        Some(Self { filter, paging: given.paging()? })
    }
}

/// `GET /v1/trades`: the trades of the key's user, made with any of the user's keys, newest first.
#[utoipa::path(
    get, path = "/v1/trades", operation_id = "listTrades", tag = "Trades", summary = "List your trades",
    description = "The trades of all keys of the user, newest first.",
    params(
        ("status" = Option<Vec<domain::trade::Status>>, Query, style = Form, explode = false,
            description = "Trades of these statuses.", example = json!(["pending", "executing"])),
        ("marketId" = Option<MarketId>, Query, description = "Trades in this market."),
        ("clientRequestId" = Option<ClientRequestId>, Query, description = "The trade with this clientRequestId."),
    ),
    responses((status = 200, description = "A page of trades.", body = TradeList)),
)]
pub async fn list(
    State(app): State<Shared>,
    caller: Caller<TradesRead>,
    Query(query): Query<TradesQuery>,
    meta: Meta,
) -> Result<List<TradeRecord>, Problem> {
    let TradesQuery { filter, paging } = query;
    let input = (caller.user_id(), filter, paging.page.clone());
    let listed: Result<_, StoreError> = app
        .ctx
        .store
        .read(input, |tx, (user_id, filter, page)| Box::pin(store::trades::list(tx, *user_id, filter, page)))
        .await;
    let (rows, pagination) = paging.cut(&app.cursor, listed?, |(trade, _)| position(trade));
    let finality = FinalitySettings::from(&app.ctx);
    let records = rows.into_iter().map(|(trade, history)| TradeRecord::now(trade, history, finality));
    Ok(meta.list(records.collect(), pagination))
}

/// `GET /v1/trades/{id}`: one trade. Another user's trade is not there.
#[utoipa::path(
    get, path = "/v1/trades/{id}", operation_id = "getTrade", tag = "Trades", summary = "Read one trade",
    description = "The current state of the trade and its status history. Another user's trade is 404.",
    params(("id" = TradeId, Path, description = "The trade's id.")),
    responses((status = 200, description = "The trade.", body = TradeAnswer)),
    extensions(("x-error-codes" = json!(["RESOURCE_NOT_FOUND"]))),
)]
pub async fn find(
    State(app): State<Shared>,
    caller: Caller<TradesRead>,
    id: PathId,
    _: Query<NoParameters>,
    meta: Meta,
) -> Result<Single<TradeRecord>, Problem> {
    let id: TradeId = id.parse()?;
    let found: Result<_, StoreError> = app
        .ctx
        .store
        .read((caller.user_id(), id), |tx, (user_id, id)| {
            Box::pin(async move {
                let Some(trade) = store::trades::find(tx, *user_id, *id).await? else { return Ok(None) };
                let history = store::trades::history(tx, *id).await?;
                Ok(Some((trade, history)))
            })
        })
        .await;
    let (trade, history) = found?.ok_or_else(Problem::not_found)?;
    Ok(meta.single("trade", TradeRecord::now(trade, history, FinalitySettings::from(&app.ctx))))
}

fn position(trade: &Trade) -> PagePosition {
    PagePosition { created_at: trade.created_at, id: trade.id.to_string() }
}
