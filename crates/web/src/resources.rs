//! The market or the thread that a path names, or the error if there is none.

use store::markets::{Market, Outcome};
use store::public::ThreadRow;

use http_kit::{Problem, PublicCode, Shared};
use presentation::{find_market, find_thread};

pub async fn get_market(app: &Shared, id: &str) -> Result<(Market, Vec<Outcome>), Problem> {
    find_market(&app.ctx, id).await?.ok_or_else(|| Problem::from(PublicCode::MarketNotFound))
}

pub async fn get_thread(app: &Shared, id: &str) -> Result<ThreadRow, Problem> {
    find_thread(&app.ctx, id).await?.ok_or_else(|| Problem::from(PublicCode::ThreadNotFound))
}
