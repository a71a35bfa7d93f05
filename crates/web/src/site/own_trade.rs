//! A trade of the person who is signed in.

use app::sessions::Person;
use domain::ids::TradeId;
use http_kit::{Problem, Shared};
use store::StoreError;
use store::trades::{StatusHistory, Trade};

/// Returns the person's trade with this id, and its statuses. Another person's trade is not there.
pub async fn get(app: &Shared, person: &Person, id: &str) -> Result<(Trade, StatusHistory), Problem> {
    let id: TradeId = id.parse().map_err(|_| Problem::not_found())?;
    let read: Result<Option<(Trade, StatusHistory)>, StoreError> = app
        .ctx
        .store
        .read((person.user_id(), id), |tx, (user_id, id)| {
            Box::pin(async move {
                let Some(trade) = store::trades::find(tx, *user_id, *id).await? else { return Ok(None) };
                let history = store::trades::history(tx, *id).await?;
                Ok(Some((trade, history)))
            })
        })
        .await;
    read?.ok_or_else(Problem::not_found)
}
