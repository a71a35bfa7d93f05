//! `foretell admin delegation`: the amounts that a key may spend of an account. Only an account
//! owner can enable a delegation; the service can end it at any time.

use std::time::{Duration, Instant};

use app::delegations;
use app::owner_acts::OwnerActRequest;
use clap::{Args, Subcommand};
use domain::delegation::{Ceilings, DelegationEdit};
use domain::ids::{KeyId, UserId};
use domain::{ErrorCode, Usdc};
use store::delegations::DelegationChange;
use store::keys::Key;

use super::ctx::AdminCtx;
use super::output::{CommandOutput, OutputRecord};
use super::owner_batch::{SignedArgs, authorise};
use super::subject::{self, Subject};
use super::values::When;
use super::{key, missing, refuse, user};
use crate::start_error::StartError;

/// Maximum number of listed changes.
const LISTED: u32 = 1_000;
/// Interval between checks whether a change is final.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Commands for delegations.
#[derive(Debug, Subcommand)]
pub enum DelegationCommand {
    /// Enable keys, and create the account if it does not exist. Prints a digest to sign if the
    /// owner's key is not available
    Enable {
        /// The user
        #[arg(long, value_name = "ID")]
        user: UserId,
        /// A key [default: all active keys of the user]
        #[arg(long, value_name = "ID")]
        key: Option<KeyId>,
        #[command(flatten)]
        signed: SignedArgs,
    },
    /// Revoke a key's delegation on chain. The key itself stays active
    Revoke {
        #[command(flatten)]
        key: Subject<subject::Key>,
        #[command(flatten)]
        wait: WaitArgs,
    },
    /// Lower a key's caps on chain without the account's owner. Only the owner can raise them again
    Reduce {
        #[command(flatten)]
        key: Subject<subject::Key>,
        #[command(flatten)]
        to: ReduceArgs,
        #[command(flatten)]
        wait: WaitArgs,
    },
    /// List the changes that are not on chain yet
    Pending,
}

/// The new limits of a delegation.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = true)]
pub struct ReduceArgs {
    /// The maximum USDC of one trade
    #[arg(long, value_name = "USDC")]
    per_trade_limit: Option<Usdc>,
    /// The maximum USDC of buys in any 24 hours
    #[arg(long, value_name = "USDC")]
    daily_spend_limit: Option<Usdc>,
    /// When the delegation ends: an instant such as 2027-01-01T00:00:00Z, or a time from now such
    /// as 1h
    #[arg(long)]
    expires: Option<When>,
}

/// The option to wait for the chain.
#[derive(Debug, Clone, Copy, Args)]
pub struct WaitArgs {
    /// Wait until the change is final on chain, at most this many seconds [default: 60]
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "60")]
    wait: Option<u32>,
}

pub async fn run(command: DelegationCommand, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    match command {
        DelegationCommand::Enable { user, key, signed } => enable(user, key, signed, admin).await,
        DelegationCommand::Revoke { key: Subject(key), wait } => {
            change(key, DelegationEdit::Revoke, wait, admin).await
        }
        DelegationCommand::Reduce { key: Subject(key), to, wait } => {
            let ReduceArgs { per_trade_limit: per_trade, daily_spend_limit: daily, expires } = to;
            let expires_at = expires.map(|when| when.from(admin.now()));
            change(key, DelegationEdit::Reduce(Ceilings { per_trade, daily, expires_at }), wait, admin).await
        }
        DelegationCommand::Pending => return pending(admin).await,
    }
    .map(CommandOutput::One)
}

async fn enable(
    user: UserId,
    key: Option<KeyId>,
    signed: SignedArgs,
    admin: &AdminCtx,
) -> Result<OutputRecord, StartError> {
    let (user, _) = user::find(admin, user).await?;
    let ctx = admin.online().await?;
    let keys = admin.store.read(user.id, |tx, id| Box::pin(store::keys::list(tx, *id))).await;
    let now = ctx.now();
    // Delegations of revoked or expired keys would be useless.
    let active = |key: &Key| key.revoked_at.is_none() && key.expires_at.is_none_or(|at| at > now);
    let mut keys = keys?;
    keys.retain(|one| key.is_none_or(|id| id == one.id) && active(one));
    if keys.is_empty() {
        return Err(refuse(ErrorCode::ResourceNotFound, "The user has no active key with this id."));
    }
    let ids: Vec<KeyId> = keys.iter().map(|key| key.id).collect();
    let request = OwnerActRequest::Enable { keys: ids.clone() };
    let done = authorise(admin, &ctx, user.id, &request, signed.into()).await?;
    Ok(OutputRecord::new()
        .with("userId", user.id)
        .with("keys", ids)
        .with("enabled", done.is_done())
        .and(done.record()))
}

async fn change(
    key: KeyId,
    change: DelegationEdit,
    wait: WaitArgs,
    admin: &AdminCtx,
) -> Result<OutputRecord, StartError> {
    let key = key::find(admin, key).await?;
    let queued = delegations::queue(&admin.ctx()?, key.id, change).await?;
    let change = follow(admin, queued, wait).await?;
    Ok(OutputRecord::new()
        .with("keyId", key.id)
        .with("userId", key.user_id)
        .with("delegation", record(&change)))
}

async fn pending(admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let open = admin.store.read((), |tx, ()| Box::pin(store::delegations::list_open(tx, LISTED))).await;
    let open = open?;
    let records =
        open.iter().map(|change| OutputRecord::new().with("keyId", change.key_id).and(record(change)));
    Ok(CommandOutput::Many(records.collect(), &["keyId", "change", "onChain", "error", "since"]))
}

/// Waits for a change if requested, and returns its latest state.
pub async fn follow(
    admin: &AdminCtx,
    change: DelegationChange,
    wait: WaitArgs,
) -> Result<DelegationChange, StartError> {
    let Some(seconds) = wait.wait else { return Ok(change) };
    let deadline = Instant::now() + Duration::from_secs(seconds.into());
    let mut looks = tokio::time::interval(LOOK_INTERVAL);
    loop {
        looks.tick().await;
        let id = change.id;
        let found = admin.store.read(id, |tx, id| Box::pin(store::delegations::find(tx, *id))).await;
        let change = found?.ok_or_else(|| missing("delegation change"))?;
        if change.ended_at.is_some() {
            return Ok(change);
        }
        // The change is stored, so a timeout does not cancel it.
        if Instant::now() >= deadline {
            let status = change.status;
            let why = change.error.map(|error| format!(" ({error})")).unwrap_or_default();
            return Err(refuse(
                ErrorCode::DependencyUnavailable,
                format!(
                    "The change is stored and will be made. After {seconds} s it is still {status}{why}."
                ),
            ));
        }
    }
}

/// Returns the printable properties of a change.
pub fn record(change: &DelegationChange) -> OutputRecord {
    OutputRecord::new()
        .with("change", change.change.kind())
        .with("onChain", change.status)
        .with("txHash", change.tx_hash)
        .with("error", &change.error)
        .with("since", change.created_at)
}
