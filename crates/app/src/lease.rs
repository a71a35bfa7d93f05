//! Leases as workers hold them: claimed at most a few times a minute, checked in every transaction that writes under them.

use domain::{ErrorCode, Timestamp};
use parking_lot::Mutex;
use store::leases::Lease;
use store::{StoreError, Tx};

use crate::{AppError, Ctx};

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

    /// Gives the lease up at a stop, so that another process need not wait for its end.
    pub async fn release(&self, ctx: &Ctx) -> Result<(), AppError> {
        let held = self.held.lock().take();
        let Some((lease, _)) = held else { return Ok(()) };
        let released: Result<(), StoreError> =
            ctx.store.write(lease, |tx, lease| Box::pin(store::leases::release(tx, lease))).await;
        Ok(released?)
    }
}

/// Refuses the transaction unless the lease is still held. The lease cannot change hands before the transaction ends.
pub async fn check(tx: &mut Tx, lease: &Lease) -> Result<(), AppError> {
    if store::leases::confirm(tx, lease).await? {
        return Ok(());
    }
    let detail = format!("Another process has taken {}.", lease.name);
    Err(AppError::new(ErrorCode::DependencyUnavailable).detail(detail))
}
