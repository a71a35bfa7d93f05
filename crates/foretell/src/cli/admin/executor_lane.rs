//! `foretell admin executor add`, `drain`, `remove` and `fund`: the lanes of executors.

use std::path::PathBuf;

use alloy_primitives::{Address, U256};
use app::lanes::{self, OpenWork};
use app::roles::RoleChange;
use app::{AppError, Ctx};
use chain::ExecutorState;
use clap::Args;
use domain::lane::{LaneState, SignerKind};
use domain::{ErrorCode, Timestamp};
use store::lanes::Lane;

use super::act::ActArgs;
use super::ctx::AdminCtx;
use super::executor::{CapArgs, ExecutorArgs, cap_text, find, make, record};
use super::output::{CommandOutput, OutputRecord};
use super::signer::{SignerArgs, find_executor};
use super::{read_key, refuse};
use crate::start_error::StartError;

/// Options of `executor add`.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// The address of the executor. Not needed with aws-kms and gcp-kms, which return it
    #[arg(value_name = "ADDRESS")]
    address: Option<Address>,
    /// USDC that may leave accounts per hour, net, or none for no cap. Needed if the Gate does not
    /// have the executor
    #[arg(long, value_name = "USDC")]
    hourly_cap: Option<super::values::Edit<domain::Usdc>>,
    #[command(flatten)]
    signer: SignerArgs,
    #[command(flatten)]
    act: ActArgs,
}

/// Options of `executor fund`.
#[derive(Debug, Args)]
pub struct FundArgs {
    #[command(flatten)]
    executor: ExecutorArgs,
    /// Native currency to send, in wei
    #[arg(long, value_name = "WEI")]
    wei: u128,
    /// File with the private key that sends it [default: the treasury's key, or else the deployer's]
    #[arg(long, value_name = "FILE")]
    from_key_file: Option<PathBuf>,
}

/// Gives the executor its right on the Gate, step by step, and makes its lane active.
pub async fn add(args: AddArgs, admin: &AdminCtx, ctx: &Ctx) -> Result<CommandOutput, StartError> {
    let AddArgs { address, hourly_cap, signer, act } = args;
    // Checked first: a proposal cannot be taken back without a veto.
    let place = signer.place()?;
    let address = find_executor(&place, address).await?;
    place.remote(address)?;
    let mut state = find(ctx, address).await?;
    if state.volume.is_none() && state.proposal.is_none() {
        let Some(hourly_cap) = hourly_cap else {
            let why = format!("Set --hourly-cap: {address} is not an executor of the Gate yet.");
            return Err(refuse(ErrorCode::ValidationFailed, why));
        };
        let cap = CapArgs { hourly_cap }.atomic()?;
        let title = format!("Propose the executor {address} with an hourly cap of {}", cap_text(cap));
        let done = make(RoleChange::ProposeExecutor(address, cap), &title, &act, admin, ctx).await?;
        if act.is_printed() {
            return Ok(done);
        }
        state = find(ctx, address).await?;
    }
    if state.volume.is_none()
        && let Some(proposal) = state.proposal
    {
        let enactable_at = Timestamp::from_s(proposal.enactable_at_s);
        if enactable_at > ctx.now() {
            let next = "run this command again after enactableAt";
            return Ok(CommandOutput::One(record(&state).with("next", next)));
        }
        let title = format!("Enact the proposal for the executor {address}");
        let done = make(RoleChange::EnactExecutor(address), &title, &act, admin, ctx).await?;
        if act.is_printed() {
            return Ok(done);
        }
    }
    let lane = lanes::activate(ctx, address, &place).await?;
    let shown = shown(ctx, &find(ctx, address).await?, Some(&lane)).await?;
    let next = match signer.kind() {
        SignerKind::File => "start a process that has the executor's key, after foretell deploy --record",
        SignerKind::Web3signer | SignerKind::AwsKms | SignerKind::GcpKms => {
            "restart a process that runs executors, after foretell deploy --record"
        }
    };
    Ok(CommandOutput::One(match lane.started_at {
        Some(_) => admin.deployment_hint(shown),
        None => shown.with("next", next),
    }))
}

pub async fn drain(ExecutorArgs { address }: ExecutorArgs, ctx: &Ctx) -> Result<CommandOutput, StartError> {
    let lane = lanes::drain(ctx, address).await?;
    Ok(CommandOutput::One(shown(ctx, &find(ctx, address).await?, Some(&lane)).await?))
}

/// Takes the executor's right on the Gate away, and then its lane.
pub async fn remove(
    ExecutorArgs { address }: ExecutorArgs,
    act: &ActArgs,
    admin: &AdminCtx,
    ctx: &Ctx,
) -> Result<CommandOutput, StartError> {
    let state = find(ctx, address).await?;
    let has_right = state.volume.is_some() || state.proposal.is_some();
    let lane = lane_of(ctx, address).await?;
    // First the right: the key may be stolen. Without right and lane, the Gate's error is reported.
    if has_right || lane.is_none() {
        let title = format!("Remove the executor {address}");
        let done = make(RoleChange::RemoveExecutor(address), &title, act, admin, ctx).await?;
        if act.is_printed() || lane.is_none() {
            return Ok(done);
        }
    }
    let lane = lanes::remove(ctx, address).await?;
    let shown = shown(ctx, &find(ctx, address).await?, lane.as_ref()).await?;
    Ok(CommandOutput::One(admin.deployment_hint(shown)))
}

/// Sends native currency to an executor.
pub async fn fund(args: FundArgs, admin: &AdminCtx, ctx: &Ctx) -> Result<CommandOutput, StartError> {
    let FundArgs { executor: ExecutorArgs { address }, wei, from_key_file } = args;
    let roles = admin.secrets()?.roles;
    let from = match from_key_file {
        Some(path) => read_key(&path)?.signer()?,
        None => match roles.treasury() {
            Ok(treasury) => treasury,
            Err(_) => roles.deployer().map_err(|_| {
                refuse(
                    ErrorCode::ValidationFailed,
                    "Set --from-key-file: the secrets file has no key of the treasury.",
                )
            })?,
        },
    };
    let receipt = lanes::fund(ctx, &from, address, U256::from(wei)).await?;
    let balance = ctx.chain.native_balance(address).await.map_err(AppError::from)?;
    Ok(CommandOutput::One(
        OutputRecord::new()
            .with("address", address)
            .with("from", from.address())
            .with("wei", wei.to_string())
            .with("balanceWei", balance.to_string())
            .with("txHash", receipt.tx_hash.to_string()),
    ))
}

/// Returns all lanes.
pub async fn all(ctx: &Ctx) -> Result<Vec<Lane>, StartError> {
    Ok(ctx.store.read((), |tx, ()| Box::pin(store::lanes::list(tx))).await?)
}

async fn lane_of(ctx: &Ctx, address: Address) -> Result<Option<Lane>, StartError> {
    Ok(all(ctx).await?.into_iter().find(|lane| lane.executor == address))
}

/// Returns the executor's state on the Gate and that of its lane.
pub async fn shown(
    ctx: &Ctx,
    state: &ExecutorState,
    lane: Option<&Lane>,
) -> Result<OutputRecord, StartError> {
    let balance = ctx.chain.native_balance(state.address).await.map_err(AppError::from)?;
    let record = record(state).with("balanceWei", balance.to_string());
    let Some(lane) = lane else { return Ok(record.with("lane", None::<u16>)) };
    let OpenWork { trades, batches } = lanes::count_open(ctx, lane.lane).await?;
    Ok(record
        .with("lane", lane.lane)
        .with("state", lane.state)
        .with("signer", lane.signer)
        .with("running", lane.state != LaneState::Removed && lane.started_at.is_some())
        .with("openTrades", trades)
        .with("openBatches", batches))
}
