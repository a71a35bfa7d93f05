//! A request to trade, while a test puts it together. Awaited, it must create a trade.

use std::future::IntoFuture;

use app::AppError;
use app::trades::{Accepted, DryRun, NewTrade, create};
use domain::ids::CorrelationId;
use domain::trade::Draft;
use futures::FutureExt;
use futures::future::BoxFuture;
use store::trades::Trade;

use crate::TestKey;

/// A request of a key.
#[derive(Clone)]
pub struct Request<'a> {
    key: &'a TestKey,
    new: NewTrade,
}

impl<'a> Request<'a> {
    pub(crate) const fn new(key: &'a TestKey, draft: Draft) -> Self {
        Self { key, new: NewTrade { draft, idempotency_key: None, dry_run: false, correlation_id: None } }
    }

    /// With other fields.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Draft)) -> Self {
        change(&mut self.new.draft);
        self
    }

    /// Of tokens instead of USDC.
    #[must_use]
    pub fn in_tokens(self) -> Self {
        self.with(|draft| draft.amount_type = Some("tokens".to_owned()))
    }

    /// With this `Idempotency-Key`.
    #[must_use]
    pub fn idempotent(mut self, key: &str) -> Self {
        self.new.idempotency_key = Some(key.to_owned());
        self
    }

    /// With this `clientRequestId`.
    #[must_use]
    pub fn named(self, client_request_id: &str) -> Self {
        self.with(|draft| draft.client_request_id = Some(client_request_id.to_owned()))
    }

    /// Under a trace that the caller names.
    #[must_use]
    pub const fn traced(mut self, id: CorrelationId) -> Self {
        self.new.correlation_id = Some(id);
        self
    }

    /// What became of it.
    ///
    /// # Errors
    /// The refusal.
    pub async fn send(self) -> Result<Accepted, AppError> {
        create(&self.key.ctx, &self.key.caller, self.new).await
    }

    /// The refusal.
    ///
    /// # Panics
    /// Where it is accepted.
    pub async fn refused(self) -> AppError {
        match self.send().await {
            Err(refusal) => refusal,
            Ok(accepted) => panic!("accepted: {accepted:?}"),
        }
    }

    /// The trade of an earlier request that this one repeats under its `Idempotency-Key`.
    ///
    /// # Panics
    /// Where it is anything else.
    pub async fn replayed(self) -> Trade {
        match self.send().await {
            Ok(Accepted::ReplayedByKey(trade)) => trade,
            other => panic!("not replayed: {other:?}"),
        }
    }

    /// The trade that its `clientRequestId` names.
    ///
    /// # Panics
    /// Where it is anything else.
    pub async fn found(self) -> Trade {
        match self.send().await {
            Ok(Accepted::FoundByClientRequest(trade)) => trade,
            other => panic!("not found: {other:?}"),
        }
    }

    /// Makes every check and creates nothing.
    ///
    /// # Errors
    /// The refusal.
    ///
    /// # Panics
    /// Where a trade is created.
    pub async fn dry_run(mut self) -> Result<DryRun, AppError> {
        self.new.dry_run = true;
        match self.send().await? {
            Accepted::DryRun(outcome) => Ok(*outcome),
            other => panic!("not dry: {other:?}"),
        }
    }
}

impl<'a> IntoFuture for Request<'a> {
    type Output = Trade;
    type IntoFuture = BoxFuture<'a, Trade>;

    fn into_future(self) -> Self::IntoFuture {
        async move {
            match self.send().await {
                Ok(Accepted::Created(trade)) => trade,
                other => panic!("not created: {other:?}"),
            }
        }
        .boxed()
    }
}
