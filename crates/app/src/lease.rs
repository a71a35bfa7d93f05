//! Leases for workers: claimed before a tick, renewed during it, and checked in every transaction
//! that writes under them.

use std::pin::pin;
use std::time::{Duration, Instant};

use domain::{ErrorCode, Timestamp};
use parking_lot::Mutex;
use store::Tx;
use store::leases::Lease;
use tokio::time::{MissedTickBehavior, interval};

use crate::{AppError, Ctx};

/// The fraction of the lease time after which a lease is renewed, which is also the longest turn of
/// work.
const PARTS: u32 = 3;
/// The fraction of the lease time between renewal attempts.
const RETRY_PARTS: u32 = 15;

/// One process's claim on a kind of work.
#[derive(Debug)]
pub struct LeaseHolder {
    name: String,
    owner: String,
    /// The last claimed lease and its end. It only avoids unnecessary writes, because each write
    /// under the lease checks it again.
    held: Mutex<Option<(Lease, Timestamp)>>,
}

impl LeaseHolder {
    /// Creates a holder without a lease. `owner` must be unique for each start of a process.
    pub const fn new(name: String, owner: String) -> Self {
        Self { name, owner, held: Mutex::new(None) }
    }

    /// Returns the lease, renewed if half of its time has passed. `None` while another process
    /// holds it.
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
        let lease = ctx
            .store
            .write(input, |tx, (name, owner, now, until)| {
                Box::pin(store::leases::claim(tx, name, owner, *now, *until))
            })
            .await;
        let lease = lease?;
        *self.held.lock() = lease.clone().map(|lease| (lease, until));
        Ok(lease)
    }

    /// Runs `work` under the claimed lease, and renews the lease until the work ends.
    ///
    /// If another process takes the lease, the work is cancelled, and its unwritten results are
    /// lost.
    ///
    /// # Errors
    /// The work's errors, and one that [`is_lost`] recognizes.
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
                // The same epoch: no other process held the lease in between.
                Ok(Some(again)) if again.epoch == lease.epoch => renewed = Instant::now(),
                Ok(_) => {
                    *self.held.lock() = None;
                    return lost(&lease.name);
                }
                // Keep trying. Every write checks the lease in its transaction, so working on is
                // safe.
                Err(error) => {
                    tracing::warn!(lease = lease.name, %error, cause = ?error.source, "could not renew a lease");
                }
            }
        }
    }

    /// Releases the lease at shutdown, so that another process does not have to wait for its end.
    pub async fn release(&self, ctx: &Ctx) -> Result<(), AppError> {
        let held = self.held.lock().take();
        let Some((lease, _)) = held else { return Ok(()) };
        Ok(ctx.store.write(lease, |tx, lease| Box::pin(store::leases::release(tx, lease))).await?)
    }
}

/// The time that a tick may spend on work that can wait for the next tick.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    began: Instant,
    time: Duration,
}

impl Turn {
    /// Starts a turn with a third of the lease time.
    pub fn begin(ctx: &Ctx) -> Self {
        Self { began: Instant::now(), time: lease_time(ctx) / PARTS }
    }

    /// Returns whether the remaining work must wait for the next tick.
    pub fn is_over(&self) -> bool {
        self.began.elapsed() >= self.time
    }
}

fn lease_time(ctx: &Ctx) -> Duration {
    Duration::from_millis(u64::try_from(ctx.config.lease_ms).unwrap_or_default())
}

/// Fails unless the lease is still held. The lease cannot change hands before the transaction ends.
pub async fn check(tx: &mut Tx, lease: &Lease) -> Result<(), AppError> {
    if store::leases::confirm(tx, lease).await? {
        return Ok(());
    }
    Err(lost(&lease.name))
}

/// Another process has taken the lease.
#[derive(Debug, thiserror::Error)]
#[error("the lease was lost")]
struct LeaseLost;

fn lost(name: &str) -> AppError {
    let detail = format!("Another process has acquired the lease {name}.");
    AppError::new(ErrorCode::DependencyUnavailable).detail(detail).caused_by(LeaseLost)
}

/// Returns whether the work failed only because another process took its lease.
pub fn is_lost(error: &AppError) -> bool {
    error.source.as_ref().is_some_and(|source| source.is::<LeaseLost>())
}
