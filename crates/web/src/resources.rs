//! The market or the thread that a path names, or the error if there is none.

use store::markets::{Market, Outcome};
use store::public::ThreadRow;

use http_kit::Shared;
use http_kit::public::{Code, Refusal};
use presentation::{find_market, find_thread};

pub async fn get_market(app: &Shared, id: &str) -> Result<(Market, Vec<Outcome>), Refusal> {
    find_market(&app.ctx, id).await?.ok_or_else(|| Refusal::new(Code::MarketNotFound))
}

pub async fn get_thread(app: &Shared, id: &str) -> Result<ThreadRow, Refusal> {
    find_thread(&app.ctx, id).await?.ok_or_else(|| Refusal::new(Code::ThreadNotFound))
}
