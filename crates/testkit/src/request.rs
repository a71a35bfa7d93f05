//! Trade requests of the use case layer. Awaiting one sends it and expects a new trade.

use std::future::IntoFuture;

use app::AppError;
use app::trades::{Accepted, DryRun, NewTrade, create};
use domain::ids::CorrelationId;
use domain::trade::Draft;
use futures::FutureExt;
use futures::future::BoxFuture;
use store::trades::Trade;

use crate::{TestKey, TestMarket};

/// A request with a key.
#[derive(Clone)]
pub struct Request<'a> {
    key: &'a TestKey,
    new: NewTrade,
}

impl TestKey {
    /// Builds a buy for an amount of USDC.
    pub fn buy(&self, market: &TestMarket, outcome: u8, usdc: &str) -> Request<'_> {
        self.request(draft("buy", market, outcome, usdc))
    }

    /// Builds a sale for an amount of USDC.
    pub fn sell(&self, market: &TestMarket, outcome: u8, usdc: &str) -> Request<'_> {
        self.request(draft("sell", market, outcome, usdc))
    }

    /// Builds a sale of all tokens.
    pub fn sell_all(&self, market: &TestMarket, outcome: u8) -> Request<'_> {
        let draft =
            Draft { amount: None, amount_type: Some("all".to_owned()), ..draft("sell", market, outcome, "") };
        self.request(draft)
    }

    /// Builds any request.
    pub const fn request(&self, draft: Draft) -> Request<'_> {
        Request::new(self, draft)
    }
}

fn draft(side: &str, market: &TestMarket, outcome: u8, amount: &str) -> Draft {
    Draft {
        market_id: Some(market.id.to_string()),
        outcome_index: Some(outcome.into()),
        amount: Some(amount.to_owned()),
        side: Some(side.to_owned()),
        ..Draft::default()
    }
}

impl<'a> Request<'a> {
    const fn new(key: &'a TestKey, draft: Draft) -> Self {
        Self { key, new: NewTrade { draft, idempotency_key: None, dry_run: false, correlation_id: None } }
    }

    /// Changes fields of the request.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Draft)) -> Self {
        change(&mut self.new.draft);
        self
    }

    /// Changes the amount's unit from USDC to tokens.
    #[must_use]
    pub fn in_tokens(self) -> Self {
        self.with(|draft| draft.amount_type = Some("tokens".to_owned()))
    }

    /// Sets the `Idempotency-Key`.
    #[must_use]
    pub fn idempotent(mut self, key: &str) -> Self {
        self.new.idempotency_key = Some(key.to_owned());
        self
    }

    /// Sets the `clientRequestId`.
    #[must_use]
    pub fn named(self, client_request_id: &str) -> Self {
        self.with(|draft| draft.client_request_id = Some(client_request_id.to_owned()))
    }

    /// Sets the correlation id.
    #[must_use]
    pub const fn traced(mut self, id: CorrelationId) -> Self {
        self.new.correlation_id = Some(id);
        self
    }

    /// Sends the request and returns its outcome.
    pub async fn send(self) -> Result<Accepted, AppError> {
        create(&self.key.ctx, &self.key.caller, self.new).await
    }

    /// Sends the request and returns its error.
    ///
    /// # Panics
    /// If it is accepted.
    pub async fn refused(self) -> AppError {
        match self.send().await {
            Err(refusal) => refusal,
            Ok(accepted) => panic!("accepted: {accepted:?}"),
        }
    }

    /// Sends the request and returns the trade of an earlier request with the same
    /// `Idempotency-Key`.
    ///
    /// # Panics
    /// If the outcome is anything else.
    pub async fn replayed(self) -> Trade {
        match self.send().await {
            Ok(Accepted::ReplayedByKey(trade)) => trade,
            other => panic!("not replayed: {other:?}"),
        }
    }

    /// Sends the request and returns the existing trade with the same `clientRequestId`.
    ///
    /// # Panics
    /// If the outcome is anything else.
    pub async fn found(self) -> Trade {
        match self.send().await {
            Ok(Accepted::FoundByClientRequest(trade)) => trade,
            other => panic!("not found: {other:?}"),
        }
    }

    /// Sends the request as a dry run.
    ///
    /// # Panics
    /// If a trade is created.
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
