//! Leases as workers hold them: claimed before a tick, renewed while the tick works, checked in every transaction that writes
//! under them.

use std::pin::pin;
use std::time::{Duration, Instant};

use domain::{ErrorCode, Timestamp};
use parking_lot::Mutex;
use store::leases::Lease;
use store::{StoreError, Tx};
use tokio::time::{MissedTickBehavior, interval};

use crate::{AppError, Ctx};

/// A lease is renewed when this part of its time is over, and a turn of work takes at most this part.
const PARTS: u32 = 3;
/// After a renewal that failed the next one follows after this part of the lease's time.
const RETRY_PARTS: u32 = 15;

/// One process's hold on a piece of work.
#[derive(Debug)]
pub struct LeaseHolder {
    name: String,
    owner: String,
    /// What was last claimed and its end. It only saves writes: each write under the lease is checked again.
    held: Mutex<Option<(Lease, Timestamp)>>,
}

impl LeaseHolder {
    /// Nothing held yet. `owner` names this process, anew at each start.
    pub const fn new(name: String, owner: String) -> Self {
        Self { name, owner, held: Mutex::new(None) }
    }

    /// The lease, renewed when half of its time is over; `None` while another process holds it.
    pub async fn claim(&self, ctx: &Ctx) -> Result<Option<Lease>, AppError> {
        let now = ctx.now();
        let held = self.held.lock().clone();
        if let Some((lease, until)) = held
            && until.since_ms(now) > ctx.config.lease_ms / 2
        {
            return Ok(Some(lease));
        }
        self.renew(ctx).await
    }

    async fn renew(&self, ctx: &Ctx) -> Result<Option<Lease>, AppError> {
        let now = ctx.now();
        let until = now.plus_ms(ctx.config.lease_ms);
        let input = (self.name.clone(), self.owner.clone(), now, until);
        let lease: Result<_, StoreError> = ctx
            .store
            .write(input, |tx, (name, owner, now, until)| {
                Box::pin(store::leases::claim(tx, name, owner, *now, *until))
            })
            .await;
        let lease = lease?;
        *self.held.lock() = lease.clone().map(|lease| (lease, until));
        Ok(lease)
    }

    /// Does `work` under the claimed lease, and renews the lease until the work ends.
    ///
    /// If another process takes the lease meanwhile, the work is dropped: what it has not written by then is never written.
    ///
    /// # Errors
    /// The work's, and one that [`is_lost`] recognizes.
    pub async fn keep<T>(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        work: impl Future<Output = Result<T, AppError>> + Send,
    ) -> Result<T, AppError> {
        let (lost, work) = (pin!(self.renew_until_lost(ctx, lease)), pin!(work));
        tokio::select! {
            biased;
            lost = lost => Err(lost),
            done = work => done,
        }
    }

    async fn renew_until_lost(&self, ctx: &Ctx, lease: &Lease) -> AppError {
        let time = lease_time(ctx);
        let mut timer = interval((time / RETRY_PARTS).max(Duration::from_millis(1)));
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut renewed = Instant::now();
        loop {
            timer.tick().await;
            if renewed.elapsed() < time / PARTS {
                continue;
            }
            match self.renew(ctx).await {
                Ok(Some(again)) if again.epoch == lease.epoch => renewed = Instant::now(),
                Ok(_) => {
                    *self.held.lock() = None;
                    return lost(&lease.name);
                }
                Err(error) => {
                    tracing::warn!(lease = lease.name, %error, cause = ?error.source, "a lease was not renewed");
                }
            }
        }
    }

    /// Gives the lease up at a stop, so that another process need not wait for its end.
    pub async fn release(&self, ctx: &Ctx) -> Result<(), AppError> {
        let held = self.held.lock().take();
        let Some((lease, _)) = held else { return Ok(()) };
        let released: Result<(), StoreError> =
            ctx.store.write(lease, |tx, lease| Box::pin(store::leases::release(tx, lease))).await;
        Ok(released?)
    }
}

/// The time that a tick has for pieces of work that can wait for the next one.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    began: Instant,
    time: Duration,
}

impl Turn {
    /// Begins now and takes a third of the lease's time.
    pub fn begin(ctx: &Ctx) -> Self {
        Self { began: Instant::now(), time: lease_time(ctx) / PARTS }
    }

    /// Whether the next piece of work has to wait for the next tick.
    pub fn is_over(&self) -> bool {
        self.began.elapsed() >= self.time
    }
}

fn lease_time(ctx: &Ctx) -> Duration {
    Duration::from_millis(u64::try_from(ctx.config.lease_ms).unwrap_or_default())
}

/// Refuses the transaction unless the lease is still held. The lease cannot change hands before the transaction ends.
pub async fn check(tx: &mut Tx, lease: &Lease) -> Result<(), AppError> {
    if store::leases::confirm(tx, lease).await? {
        return Ok(());
    }
    Err(lost(&lease.name))
}

/// Another process has taken the lease.
#[derive(Debug, thiserror::Error)]
#[error("the lease is lost")]
struct LeaseLost;

fn lost(name: &str) -> AppError {
    let detail = format!("Another process has taken {name}.");
    AppError::new(ErrorCode::DependencyUnavailable).detail(detail).caused_by(LeaseLost)
}

/// Whether the work failed only because another process has taken its lease.
pub fn is_lost(error: &AppError) -> bool {
    error.source.as_ref().is_some_and(|source| source.is::<LeaseLost>())
}
