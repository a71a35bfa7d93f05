//! Changes of lanes by an operator. The Gate's own list of executors is changed with
//! [`crate::roles::RoleChange`].

use alloy_primitives::{Address, U256};
use chain::{Receipt, Signer};
use domain::lane::LaneState;
use domain::{ErrorCode, Timestamp};
use serde_json::{Value, json};
use store::audit_log::{Act, note};
use store::lanes::{Lane, insert, lock, put, unsettle};
use store::{StoreError, Tx};

use super::{SignerPlace, refresh};
use crate::audit_log::around;
use crate::{AppError, Ctx};

/// The open work of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenWork {
    /// Trades that have not ended.
    pub trades: u64,
    /// Transactions that are signed and not final.
    pub batches: u64,
}

/// Counts the open work of a lane.
pub async fn count_open(ctx: &Ctx, lane: u16) -> Result<OpenWork, AppError> {
    let counted = ctx.store.read(lane, |tx, lane| {
        Box::pin(async move {
            let trades = store::trades::count_open(tx, *lane).await?;
            Ok(OpenWork { trades, batches: store::batches::count_open(tx, *lane).await? })
        })
    });
    Ok(counted.await?)
}

/// Makes the lane of an executor active, and creates it if there is none. Accounts are assigned to it
/// as soon as a process runs it.
///
/// # Errors
/// `InvalidState` if the Gate does not have the executor. `DEPENDENCY_UNAVAILABLE` if a remote signer
/// does not have its key.
pub async fn activate(ctx: &Ctx, executor: Address, place: &SignerPlace) -> Result<Lane, AppError> {
    if ctx.chain.executor(executor).await?.volume.is_none() {
        return Err(invalid(format!("{executor} is not an executor of the Gate")));
    }
    if let Some(signer) = place.remote(executor)? {
        signer.check().await?;
    }
    let now = ctx.now();
    let wanted = Lane {
        signer: place.kind(),
        signer_settings: place.settings().map(|settings| settings.to_string()),
        started_at: None,
        ..Lane::of_file(0, executor, now)
    };
    let lane = ctx.store.try_write(wanted, |tx, wanted| Box::pin(store_active(tx, wanted))).await;
    finish(ctx, lane).await
}

async fn store_active(tx: &mut Tx, wanted: &Lane) -> Result<Lane, AppError> {
    let known = lock(tx).await?.into_iter().find(|lane| lane.executor == wanted.executor);
    let lane = match &known {
        None => insert(tx, wanted).await?,
        // A lane that runs goes on running, unless its key is held elsewhere now.
        Some(known) => {
            let is_same = (known.signer, &known.signer_settings) == (wanted.signer, &wanted.signer_settings);
            let is_running = is_same && known.state == LaneState::Active;
            let started_at = known.started_at.filter(|_| is_running);
            Lane { lane: known.lane, created_at: known.created_at, started_at, ..wanted.clone() }
        }
    };
    put(tx, &lane).await?;
    // A lane whose signer has changed gets no accounts until a process runs it again.
    if known.as_ref().is_some_and(Lane::is_assignable) && !lane.is_assignable() {
        unsettle(tx, lane.updated_at).await?;
    }
    note(
        tx,
        act("executor.add", wanted.executor).before(known.as_ref().map(state_of)).after(state_of(&lane)),
    );
    Ok(lane)
}

/// Lets a lane finish what it has. It gets no new trades.
///
/// # Errors
/// `RESOURCE_NOT_FOUND` if the executor has no lane. `InvalidState` if the lane is removed, or if no
/// other lane would get accounts.
pub async fn drain(ctx: &Ctx, executor: Address) -> Result<Lane, AppError> {
    let drained: Result<Lane, AppError> = ctx.store.try_write((executor, ctx.now()), |tx, (executor, now)| {
        Box::pin(async move {
            let all = lock(tx).await?;
            let known = find(&all, *executor)?;
            match known.state {
                LaneState::Draining => return Ok(known.clone()),
                LaneState::Removed => return Err(invalid(format!("the lane of {executor} is removed"))),
                LaneState::Active => {}
            }
            if !all.iter().any(|lane| lane.lane != known.lane && lane.is_assignable()) {
                return Err(invalid(format!(
                    "no other lane is active and has a running executor: add one before {executor} is drained"
                )));
            }
            let lane = Lane { state: LaneState::Draining, updated_at: *now, ..known.clone() };
            change(tx, "executor.drain", known, &lane, *now).await?;
            Ok(lane)
        })
    }).await;
    finish(ctx, drained).await
}

/// Removes the lane of an executor. It signs nothing any more. Other lanes take over the trades that
/// it has not signed, and those of its transactions that are lost. `None` if the executor has no lane.
pub async fn remove(ctx: &Ctx, executor: Address) -> Result<Option<Lane>, AppError> {
    let removed: Result<Option<Lane>, AppError> = ctx
        .store
        .try_write((executor, ctx.now()), |tx, (executor, now)| {
            Box::pin(async move {
                let all = lock(tx).await?;
                let Some(known) = all.iter().find(|lane| lane.executor == *executor) else { return Ok(None) };
                if known.state == LaneState::Removed {
                    return Ok(Some(known.clone()));
                }
                let state = LaneState::Removed;
                let lane = Lane { state, hands_over: true, updated_at: *now, ..known.clone() };
                change(tx, "executor.remove-lane", known, &lane, *now).await?;
                Ok(Some(lane))
            })
        })
        .await;
    finish(ctx, removed).await
}

/// Sends native currency, in wei, to an executor.
///
/// # Errors
/// `InvalidState` if the address is neither that of a lane nor an executor of the Gate: the money
/// could not be sent back.
pub async fn fund(ctx: &Ctx, from: &Signer, executor: Address, wei: U256) -> Result<Receipt, AppError> {
    let lanes = ctx.store.read((), |tx, ()| Box::pin(store::lanes::list(tx))).await?;
    let state = ctx.chain.executor(executor).await?;
    let is_lane = lanes.iter().any(|lane| lane.executor == executor && lane.state != LaneState::Removed);
    if !is_lane && state.volume.is_none() && state.proposal.is_none() {
        return Err(invalid(format!("{executor} is not an executor")));
    }
    let before = ctx.chain.native_balance(executor).await?;
    let act = act("executor.fund", executor).before(json!({ "balanceWei": before.to_string() }));
    let terms = json!({ "from": lower(from.address()), "wei": wei.to_string() });
    let sent = async { Ok(ctx.chain.send_native(from, executor, wei).await?) };
    around(ctx, act.after(&terms), sent, |receipt| {
        json!({ "from": lower(from.address()), "wei": wei.to_string(), "txHash": receipt.tx_hash.to_string() })
    })
    .await
}

async fn change(
    tx: &mut Tx,
    action: &'static str,
    known: &Lane,
    lane: &Lane,
    now: Timestamp,
) -> Result<(), StoreError> {
    put(tx, lane).await?;
    unsettle(tx, now).await?;
    note(tx, act(action, lane.executor).before(state_of(known)).after(state_of(lane)));
    Ok(())
}

async fn finish<T>(ctx: &Ctx, changed: Result<T, AppError>) -> Result<T, AppError> {
    let changed = changed?;
    refresh(ctx).await?;
    ctx.wake.executor.notify_waiters();
    Ok(changed)
}

fn find(lanes: &[Lane], executor: Address) -> Result<&Lane, AppError> {
    lanes
        .iter()
        .find(|lane| lane.executor == executor)
        .ok_or_else(|| AppError::new(ErrorCode::ResourceNotFound).detail(format!("{executor} has no lane.")))
}

fn act(action: &'static str, executor: Address) -> Act {
    Act::new(action, format!("executor:{}", lower(executor)))
}

fn state_of(lane: &Lane) -> Value {
    json!({ "lane": lane.lane, "state": lane.state, "signer": lane.signer, "signerSettings": lane.signer_settings })
}

fn lower(address: Address) -> String {
    address.to_string().to_lowercase()
}

fn invalid(state: String) -> AppError {
    AppError::invalid_state(ErrorCode::ValidationFailed, state)
}
