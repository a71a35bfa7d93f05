//! The answer to an accepted request to create a trade.

use app::caller::Caller;
use app::trades::{Accepted, Confirmation, confirmation_of};
use axum::Extension;
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::ids::TradeId;
use http_kit::{Meta, Problem, Shared, Single, TradeWritten};
use serde::Serialize;
use store::StoreError;
use store::trades::{StatusHistory, Trade};

use super::create::DryRunRecord;
use super::view::{FinalitySettings, TradeRecord};

const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The status and body of the answer, and what its headers say.
#[derive(Debug)]
pub struct CreateAnswer {
    pub status: StatusCode,
    pub body: CreateAnswerBody,
    is_replay: bool,
    /// The trade of the request. `None` for a dry run.
    trade_id: Option<TradeId>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum CreateAnswerBody {
    Trade(Box<Single<TradeRecord>>),
    DryRun(Box<Single<DryRunRecord>>),
}

impl CreateAnswer {
    /// Builds the answer. A replay of a trade that is no longer held reads its history.
    pub async fn new(app: &Shared, caller: &Caller, accepted: Accepted, meta: Meta) -> Result<Self, Problem> {
        let finality = FinalitySettings::from(&app.ctx);
        let held = |trade: Trade, confirmation: Confirmation| {
            (StatusCode::ACCEPTED, trade.id, TradeRecord::held(trade, confirmation, &app.app_url, finality))
        };
        let ((status, trade_id, record), is_replay) = match accepted {
            Accepted::Created(trade) => match confirmation_of(&app.ctx, caller, &trade) {
                Some(confirmation) => (held(trade, confirmation), false),
                None => ((StatusCode::CREATED, trade.id, TradeRecord::as_created(trade, finality)), false),
            },
            // A replay by key repeats the first response, even if the trade has changed since.
            Accepted::ReplayedByKey(trade) if trade.held_until.is_none() => {
                ((StatusCode::CREATED, trade.id, TradeRecord::as_created(trade, finality)), true)
            }
            Accepted::ReplayedByKey(trade) | Accepted::FoundByClientRequest(trade) => {
                match confirmation_of(&app.ctx, caller, &trade) {
                    Some(confirmation) => (held(trade, confirmation), true),
                    None => {
                        let history = history(app, &trade).await?;
                        ((StatusCode::OK, trade.id, TradeRecord::now(trade, history, finality)), true)
                    }
                }
            }
            Accepted::DryRun(dry) => return Ok(Self::of_dry_run(DryRunRecord::from(*dry), meta)),
        };
        let body = CreateAnswerBody::Trade(Box::new(meta.idempotent(is_replay).single("trade", record)));
        Ok(Self { status, body, is_replay, trade_id: Some(trade_id) })
    }

    fn of_dry_run(record: DryRunRecord, meta: Meta) -> Self {
        let body = CreateAnswerBody::DryRun(Box::new(meta.idempotent(false).single("dryRun", record)));
        Self { status: StatusCode::OK, body, is_replay: false, trade_id: None }
    }
}

impl IntoResponse for CreateAnswer {
    fn into_response(self) -> Response {
        let replayed = self.is_replay.then_some([(IDEMPOTENT_REPLAYED, "true")]);
        let written = self.trade_id.map(|id| Extension(TradeWritten(id)));
        let body = match self.body {
            CreateAnswerBody::Trade(body) => (*body).into_response(),
            CreateAnswerBody::DryRun(body) => (*body).into_response(),
        };
        (self.status, replayed, written, body).into_response()
    }
}

async fn history(app: &Shared, trade: &Trade) -> Result<StatusHistory, StoreError> {
    app.ctx.store.read(trade.id, |tx, id| Box::pin(store::trades::history(tx, *id))).await
}
