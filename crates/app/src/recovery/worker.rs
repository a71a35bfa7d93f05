//! The worker that runs recoveries.
//!
//! It writes `recoveries`, the feed's generation, the keys' next nonces, and trades whose rows do
//! not agree with the chain. It only acts while a recovery is open. A lease selects one process,
//! but several would do no harm.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::Address;
use async_trait::async_trait;
use store::audit_log::Actor;

use super::run::{Advance, advance};
use crate::lease::LeaseHolder;
use crate::lost_data::is_open;
use crate::process::degradations::{Degradation, Reason};
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

pub struct Recoverer {
    lease: LeaseHolder,
    executors: Vec<Address>,
    /// The actor in the audit log, since no operator requested an automatic recovery.
    actor: Option<Actor>,
}

impl Recoverer {
    /// Creates the worker. `executors` are those of this process, and `owner` identifies this
    /// process in leases.
    pub fn new(owner: String, executors: Vec<Address>) -> Self {
        Self { lease: LeaseHolder::new("recovery".to_owned(), owner), executors, actor: None }
    }

    /// Sets the actor that the audit log records.
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

#[async_trait]
impl Worker for Recoverer {
    fn name(&self) -> &'static str {
        "recovery"
    }

    /// One tick runs the whole recovery, which may have many keys and blocks.
    fn longest_tick(&self) -> Duration {
        Duration::from_secs(6 * 60 * 60)
    }

    async fn release(&self, ctx: &Ctx) -> Result<(), AppError> {
        self.lease.release(ctx).await
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        // Before the lease: every process reports the degradation, not only the one that recovers.
        let is_open = is_open(ctx).await?;
        ctx.process.degradations.put(Reason::Recovering, is_open.then(degradation));
        if !is_open {
            return Ok(Progress::Idle);
        }
        let Some(lease) = self.lease.claim(ctx).await? else { return Ok(Progress::Idle) };
        self.lease.keep(ctx, &lease, self.recover(ctx)).await
    }
}

fn degradation() -> Degradation {
    let detail = "The database was restored and is being compared with the chain. No trade is signed until this is done.";
    Degradation::new(Reason::Recovering, detail).stops_trading(true)
}
