//! Changes of lanes, as the executors see them.
//!
//! Each write here happens in a transaction that checks the lease of this executor's own lane. A
//! crash between two of them leaves nothing to repair, because the next tick finds the same state.
//!
//! - A lane that a process runs for the first time since it was added begins to get accounts.
//! - An executor that is no longer one of the Gate's hands its lane's trades over.
//! - The executor of any active lane takes trades over from lanes that hand over. Of several
//!   executors that try, one moves the trades, and the others find none.
//! - After a change, a trade waits for older ones of its account in other lanes. This ends when no
//!   account of the lane has trades elsewhere, and every process has read the lanes again.

use alloy_primitives::Address;
use domain::Timestamp;
use domain::lane::{LaneState, assign};
use store::lanes::Lane;
use store::leases::Lease;
use store::trades::Elsewhere;
use store::{StoreError, Tx};

use super::Executor;
use crate::{AppError, Ctx, lanes, lease};

/// The lane's row and the other lanes, in one tick.
#[derive(Debug, Clone, Default)]
pub(super) struct Duty {
    /// The lane hands over what it has not signed, so it signs nothing.
    pub hands_over: bool,
    /// No process has run the lane since it was added.
    is_new: bool,
    /// The lane from which trades can be taken over.
    takes_from: Option<u16>,
    /// The end of the time in which trades wait for older ones in other lanes at least.
    pub settles_after: Option<Timestamp>,
    /// The lanes that get accounts.
    pub assignable: Vec<u16>,
}

impl Duty {
    pub(super) async fn read(tx: &mut Tx, lane: u16) -> Result<Self, StoreError> {
        let all = store::lanes::list(tx).await?;
        let assignable = store::lanes::assignable(&all);
        // A lane without a row, in a tool that runs an executor of its own, has only trades to sign.
        let Some(own) = all.iter().find(|of| of.lane == lane) else { return Ok(Self::default()) };
        let takes_over = own.is_assignable() && all.iter().any(|of| of.hands_over);
        let takes_from = if takes_over { store::lanes::find_handing_over(tx).await? } else { None };
        Ok(Self {
            hands_over: own.hands_over,
            is_new: own.state == LaneState::Active && own.started_at.is_none(),
            takes_from,
            settles_after: own.settles_after,
            assignable,
        })
    }

    /// Returns whether the lane carries redemptions: the first lane that gets accounts does.
    pub(super) fn redeems(&self, lane: u16) -> bool {
        self.assignable.first().copied().unwrap_or_default() == lane
    }
}

impl Executor {
    /// Does what a change of the lanes needs. Returns whether there was something to do.
    pub(super) async fn follow_lanes(&self, ctx: &Ctx, lease: &Lease, duty: &Duty) -> Result<bool, AppError> {
        if duty.is_new {
            self.start(ctx, lease).await?;
            return Ok(true);
        }
        let Some(from) = duty.takes_from else { return Ok(false) };
        let input = (lease.clone(), from, duty.assignable.clone(), ctx.now());
        let moved: Result<u64, AppError> = ctx
            .store
            .try_write(input, |tx, (lease, from, targets, now)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    Ok(store::lanes::hand_over(tx, *from, targets, *now).await?)
                })
            })
            .await;
        let moved = moved?;
        tracing::info!(
            lane = from,
            trades = moved,
            "other lanes have taken over the unsigned trades of a lane"
        );
        ctx.wake.executor.notify_waiters();
        Ok(true)
    }

    /// Lets the lane get accounts.
    async fn start(&self, ctx: &Ctx, lease: &Lease) -> Result<(), AppError> {
        let input = (lease.clone(), self.lane, ctx.now());
        let started: Result<(), AppError> = ctx
            .store
            .try_write(input, |tx, (lease, lane, now)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    let all = store::lanes::lock(tx).await?;
                    let own = all.into_iter().find(|of| of.lane == *lane && of.started_at.is_none());
                    let Some(own) = own else { return Ok(()) };
                    let started_at = Some(*now);
                    store::lanes::put(tx, &Lane { started_at, updated_at: *now, ..own }).await?;
                    Ok(store::lanes::unsettle(tx, *now).await?)
                })
            })
            .await;
        started?;
        lanes::refresh(ctx).await
    }

    /// Hands the lane's trades over if the Gate no longer has its executor. Returns whether it does:
    /// without another lane, the trades wait here until their deadlines.
    pub(super) async fn hand_over_without_right(&self, ctx: &Ctx, lease: &Lease) -> Result<bool, AppError> {
        let executor = self.signer.address();
        // A node of another chain does not know the executor either.
        let ((), state) = tokio::try_join!(ctx.chain.confirm(), ctx.chain.executor(executor))?;
        if state.volume.is_some() {
            return Ok(false);
        }
        let input = (lease.clone(), self.lane, ctx.now());
        let handed: Result<bool, AppError> = ctx
            .store
            .try_write(input, |tx, (lease, lane, now)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    Ok(mark_without_right(tx, *lane, *now).await?)
                })
            })
            .await;
        let handed = handed?;
        if handed {
            tracing::error!(lane = self.lane, %executor,
                "the Gate no longer has this executor: other lanes take its trades over");
            lanes::refresh(ctx).await?;
        }
        Ok(handed)
    }
}

async fn mark_without_right(tx: &mut Tx, lane: u16, now: Timestamp) -> Result<bool, StoreError> {
    let all = store::lanes::lock(tx).await?;
    let has_other = all.iter().any(|of| of.lane != lane && of.is_assignable());
    let Some(own) = all.into_iter().find(|of| of.lane == lane).filter(|_| has_other) else {
        return Ok(false);
    };
    let state = if own.state == LaneState::Active { LaneState::Draining } else { own.state };
    store::lanes::put(tx, &Lane { state, hands_over: true, updated_at: now, ..own }).await?;
    store::lanes::unsettle(tx, now).await?;
    Ok(true)
}

/// Returns the open trades of other lanes that this lane's must not overtake. Ends the wait for them
/// when it is over.
pub(super) async fn elsewhere(
    tx: &mut Tx,
    lane: u16,
    duty: &Duty,
    now: Timestamp,
) -> Result<Elsewhere, StoreError> {
    let Some(settles_after) = duty.settles_after else { return Ok(Elsewhere::default()) };
    let elsewhere = store::trades::list_elsewhere(tx, lane).await?;
    let is_own = |account| assign(account, &duty.assignable) == lane && duty.assignable.contains(&lane);
    // Also accounts that are assigned to another lane now, but still have trades in this one.
    let here = store::trades::list_open_accounts(tx, lane).await?;
    let must_wait = |account: Address| is_own(account) || here.contains(&account);
    if now > settles_after && !elsewhere.accounts().any(must_wait) {
        store::lanes::settle(tx, lane, settles_after).await?;
        return Ok(Elsewhere::default());
    }
    Ok(elsewhere)
}
