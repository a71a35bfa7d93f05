//! The worker that recovers lost data.
//!
//! It writes `recoveries`, the feed's generation, keys' next nonces, and the trades that do not fit the chain; it acts only
//! while a recovery is open, and several of it do no harm. A crash leaves the recovery open.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::Address;
use store::audit_log::Actor;

use super::detect::is_open;
use super::run::{Advance, advance};
use crate::health::{Degradation, Reason};
use crate::lease::LeaseHolder;
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The recovery's worker.
pub struct Recoverer {
    lease: LeaseHolder,
    executors: Vec<Address>,
    /// In whose name the audit log has what it does, although nobody asked for it.
    actor: Option<Actor>,
}

impl Recoverer {
    /// A recovery worker beside lanes with these addresses. `owner` names this process in leases.
    pub fn new(owner: String, executors: Vec<Address>) -> Self {
        Self { lease: LeaseHolder::new("recovery".to_owned(), owner), executors, actor: None }
    }

    /// With its recoveries in the audit log.
    #[must_use]
    pub fn acting_as(mut self, actor: Actor) -> Self {
        self.actor = Some(actor);
        self
    }

    async fn recover(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let mut ctx = ctx.clone();
        if let Some(actor) = &self.actor {
            ctx.store = ctx.store.acting_as(actor.clone(), Arc::clone(&ctx.clock));
        }
        let is_done = matches!(advance(&ctx, &self.executors).await?, Advance::Done(_));
        Ok(if is_done { Progress::More } else { Progress::Idle })
    }
}

impl Worker for Recoverer {
    fn name(&self) -> &'static str {
        "recovery"
    }

    /// One tick does the whole recovery, however many keys and blocks there are.
    fn longest_tick(&self) -> Duration {
        Duration::from_secs(6 * 60 * 60)
    }

    async fn release(&self, ctx: &Ctx) -> Result<(), AppError> {
        self.lease.release(ctx).await
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let is_open = is_open(ctx).await?;
        ctx.degradations.put(Reason::Recovering, is_open.then(degradation));
        if !is_open {
            return Ok(Progress::Idle);
        }
        let Some(lease) = self.lease.claim(ctx).await? else { return Ok(Progress::Idle) };
        self.lease.keep(ctx, &lease, self.recover(ctx)).await
    }
}

fn degradation() -> Degradation {
    let detail =
        "The database was set back and is being compared with the chain. No trade is signed until then.";
    Degradation::new(Reason::Recovering, detail).stops_trading(true)
}
