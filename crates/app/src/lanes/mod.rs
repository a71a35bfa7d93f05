//! Lanes: the executors that share the accounts, as rows that operators change while the service
//! runs.
//!
//! An account is assigned to one of the lanes that are active and have a running executor. If these
//! lanes change, an account's newer trades may be in another lane than its older ones. The executors
//! then keep the order: see `trades::executor`.

pub(crate) mod gas;
mod manage;
mod signer;
mod treasury;

use alloy_primitives::Address;
use chain::LaneSigner;
use store::lanes::{Lane, insert, unsettle};

pub use self::manage::{OpenWork, activate, count_open, drain, fund, remove};
pub use self::signer::{AwsKeySettings, GcpKeySettings, ServerSettings, SignerPlace};
pub use self::treasury::GasTreasury;
use crate::{AppError, Ctx};

/// Reads the lanes for the requests of this process.
pub async fn refresh(ctx: &Ctx) -> Result<(), AppError> {
    let lanes = ctx.store.read((), |tx, ()| Box::pin(store::lanes::list(tx))).await?;
    // Until a service has registered its executors, the configured ones count.
    if !lanes.is_empty() {
        ctx.process.lanes.replace(lanes);
    }
    Ok(())
}

/// Gives each executor of this process a lane, in their order, and reads the lanes. Lanes that exist
/// are unchanged: an operator may have drained or removed them.
pub async fn register(ctx: &Ctx) -> Result<(), AppError> {
    let input = (ctx.config.executors.clone(), ctx.now());
    ctx.store
        .write(input, |tx, (executors, now)| {
            Box::pin(async move {
                let before = store::lanes::list(tx).await?;
                let is_new = |executor: &Address| !before.iter().any(|lane| lane.executor == *executor);
                for executor in executors.iter().filter(|executor| is_new(executor)) {
                    insert(tx, &Lane::of_file(0, *executor, *now)).await?;
                }
                // The first lanes change no assignment: a database without lanes had these.
                let is_change = !before.is_empty() && executors.iter().any(is_new);
                if is_change { unsettle(tx, *now).await } else { Ok(()) }
            })
        })
        .await?;
    refresh(ctx).await
}

/// Returns the lanes whose keys remote signers hold. A lane whose signer cannot be used is left out.
pub fn remote(ctx: &Ctx) -> Vec<(u16, LaneSigner)> {
    let signer_of = |lane: Lane| match SignerPlace::of(&lane).and_then(|place| place.remote(lane.executor)) {
        Ok(signer) => Some((lane.lane, signer?)),
        Err(error) => {
            tracing::error!(lane = lane.lane, %error, "a lane is not run: its signer cannot be used");
            None
        }
    };
    ctx.process.lanes.list().into_iter().filter_map(signer_of).collect()
}
