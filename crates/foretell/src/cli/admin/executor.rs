//! `foretell admin executor`: manages the Gate's executors, their hourly caps and their lanes, and
//! pauses them.

use std::collections::BTreeSet;

use alloy_primitives::Address;
use app::roles::{ActResult, RoleChange};
use app::{AppError, Ctx};
use chain::{ExecutorState, Signer};
use clap::{Args, Subcommand};
use domain::{ErrorCode, Timestamp, Usdc};

use super::act::ActArgs;
use super::consent::{ConsentArgs, WithoutTerminal};
use super::ctx::AdminCtx;
use super::executor_lane::{self, AddArgs, FundArgs};
use super::output::{CommandOutput, OutputRecord};
use super::refuse;
use super::values::{Edit, usdc_text};
use crate::start_error::StartError;

/// Commands for executors.
#[derive(Debug, Subcommand)]
pub enum ExecutorCommand {
    /// List executors, their lanes, and proposals
    List,
    /// Add an executor: propose and enact it on the Gate, and let its lane get trades. Run it again
    /// after the delay of the proposal. Acts as the owner
    Add(AddArgs),
    /// Let an executor finish its trades. It gets no new ones
    Drain(ExecutorArgs),
    /// Send native currency to an executor, which pays for gas
    Fund(FundArgs),
    /// Propose an executor or another hourly cap. Acts as the owner
    Propose {
        #[command(flatten)]
        executor: ExecutorArgs,
        #[command(flatten)]
        cap: CapArgs,
        #[command(flatten)]
        act: ActArgs,
    },
    /// Make a proposal take effect after its delay. Uses any key that is present
    Enact {
        #[command(flatten)]
        executor: ExecutorArgs,
        #[command(flatten)]
        act: ActArgs,
    },
    /// Remove the proposal for an executor. Acts as the guardian or the owner
    Veto {
        #[command(flatten)]
        executor: ExecutorArgs,
        #[command(flatten)]
        act: ActArgs,
        #[command(flatten)]
        consent: ConsentArgs,
    },
    /// Lower an executor's hourly cap at once. Acts as the guardian or the owner
    Lower {
        #[command(flatten)]
        executor: ExecutorArgs,
        #[command(flatten)]
        cap: CapArgs,
        #[command(flatten)]
        act: ActArgs,
        #[command(flatten)]
        consent: ConsentArgs,
    },
    /// Remove an executor at once. Other executors take over what it has not signed. Acts as the
    /// guardian or the owner
    Remove {
        #[command(flatten)]
        executor: ExecutorArgs,
        #[command(flatten)]
        act: ActArgs,
        #[command(flatten)]
        consent: ConsentArgs,
    },
    /// Stop all executors at once: the Gate executes no trade. Acts as the guardian or the owner
    Pause(ActArgs),
    /// Start all executors again. Acts as the guardian
    Resume(ActArgs),
}

/// An executor.
#[derive(Debug, Clone, Copy, Args)]
pub struct ExecutorArgs {
    /// The address of the executor
    #[arg(value_name = "ADDRESS")]
    pub address: Address,
}

/// An hourly cap.
#[derive(Debug, Clone, Copy, Args)]
pub struct CapArgs {
    /// USDC that may leave accounts per hour, net, or none for no cap
    #[arg(long, value_name = "USDC")]
    pub hourly_cap: Edit<Usdc>,
}

impl CapArgs {
    /// Returns the cap in the form of the contracts.
    pub fn atomic(self) -> Result<u64, StartError> {
        match self.hourly_cap {
            // The Gate rejects a cap of 0 without naming the remedy.
            Edit(Some(Usdc::ZERO)) => Err(refuse(
                ErrorCode::ValidationFailed,
                "--hourly-cap must be above 0. `executor remove` removes an executor.",
            )),
            Edit(cap) => Ok(cap.map_or(u64::MAX, Usdc::atomic)),
        }
    }
}

pub async fn run(command: ExecutorCommand, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let ctx = admin.online().await?;
    match command {
        ExecutorCommand::List => list(admin, &ctx).await,
        ExecutorCommand::Add(args) => executor_lane::add(args, admin, &ctx).await,
        ExecutorCommand::Drain(executor) => executor_lane::drain(executor, &ctx).await,
        ExecutorCommand::Fund(args) => executor_lane::fund(args, admin, &ctx).await,
        ExecutorCommand::Propose { executor: ExecutorArgs { address }, cap, act } => {
            let cap = cap.atomic()?;
            let title = format!("Propose the executor {address} with an hourly cap of {}", cap_text(cap));
            make(RoleChange::ProposeExecutor(address, cap), &title, &act, admin, &ctx).await
        }
        ExecutorCommand::Enact { executor: ExecutorArgs { address }, act } => {
            let title = format!("Enact the proposal for the executor {address}");
            make(RoleChange::EnactExecutor(address), &title, &act, admin, &ctx).await
        }
        ExecutorCommand::Veto { executor: ExecutorArgs { address }, act, consent } => {
            let title = format!("Veto the proposal for the executor {address}");
            obtain_consent(consent, &act, &title, address)?;
            make(RoleChange::VetoExecutor(address), &title, &act, admin, &ctx).await
        }
        ExecutorCommand::Lower { executor: ExecutorArgs { address }, cap, act, consent } => {
            let cap = cap.atomic()?;
            let title = format!("Lower the hourly cap of the executor {address} to {}", cap_text(cap));
            obtain_consent(consent, &act, &title, address)?;
            make(RoleChange::LowerExecutor(address, cap), &title, &act, admin, &ctx).await
        }
        ExecutorCommand::Remove { executor, act, consent } => {
            let title = format!("Remove the executor {}", executor.address);
            obtain_consent(consent, &act, &title, executor.address)?;
            executor_lane::remove(executor, &act, admin, &ctx).await
        }
        ExecutorCommand::Pause(act) => {
            make(RoleChange::Pause, "Pause all executors", &act, admin, &ctx).await
        }
        ExecutorCommand::Resume(act) => {
            make(RoleChange::Resume, "Resume all executors", &act, admin, &ctx).await
        }
    }
}

/// A script that stops an executor must not be blocked by a prompt.
fn obtain_consent(
    consent: ConsentArgs,
    by: &ActArgs,
    title: &str,
    address: Address,
) -> Result<(), StartError> {
    if by.is_printed() {
        return Ok(());
    }
    let act = format!("{title}. Only a new proposal can undo this, after the delay.");
    consent.obtain(&act, &address.to_string(), WithoutTerminal::Proceed)
}

/// Makes a change and shows the executors, or prints the change's transaction.
pub async fn make(
    change: RoleChange,
    title: &str,
    act: &ActArgs,
    admin: &AdminCtx,
    ctx: &Ctx,
) -> Result<CommandOutput, StartError> {
    let acting = act.acting(admin, ctx, change.senders(ctx).await?, None).await?;
    let receipt = match change.make(ctx, acting.sender()).await? {
        ActResult::Printed(call) => return Ok(acting.print(ctx, title, &[call], OutputRecord::new())),
        ActResult::Mined(receipt) => receipt,
    };
    // Read back from the chain: the record shows the result and not the request.
    let done = match change {
        RoleChange::ProposeExecutor(address, _)
        | RoleChange::EnactExecutor(address)
        | RoleChange::VetoExecutor(address)
        | RoleChange::LowerExecutor(address, _)
        | RoleChange::RemoveExecutor(address) => record(&find(ctx, address).await?),
        _ => OutputRecord::new().with("paused", ctx.chain.is_gate_paused().await.map_err(AppError::from)?),
    };
    let done = admin.deployment_hint(done);
    Ok(CommandOutput::One(done.with("txHash", receipt.tx_hash.to_string())))
}

async fn list(admin: &AdminCtx, ctx: &Ctx) -> Result<CommandOutput, StartError> {
    let lanes = executor_lane::all(ctx).await?;
    let mut known = BTreeSet::from_iter(ctx.chain.executors().await.map_err(AppError::from)?);
    known.extend(lanes.iter().map(|lane| lane.executor));
    // If the node cannot search the logs, the secrets still name the likely candidates.
    known.extend(admin.secrets()?.executors()?.iter().map(Signer::address));
    match ctx.chain.ever_proposed_executors().await {
        Ok(proposed) => known.extend(proposed),
        Err(error) => eprintln!(
            "foretell: the node does not search all blocks, so proposals for unknown addresses are missing in this list. \
             Watch the event ExecutorProposed of the Gate. ({error})"
        ),
    }
    let mut records = Vec::new();
    for address in known {
        let state = find(ctx, address).await?;
        let lane = lanes.iter().find(|lane| lane.executor == address);
        // An address that was removed or vetoed is neither an executor nor proposed.
        if state.volume.is_some() || state.proposal.is_some() || lane.is_some() {
            records.push(executor_lane::shown(ctx, &state, lane).await?);
        }
    }
    let columns = &[
        "lane",
        "state",
        "address",
        "hourlyCapUsdc",
        "usedUsdc",
        "paused",
        "openTrades",
        "balanceWei",
        "proposedHourlyCapUsdc",
        "enactableAt",
    ];
    Ok(CommandOutput::Many(records, columns))
}

pub async fn find(ctx: &Ctx, address: Address) -> Result<ExecutorState, StartError> {
    Ok(ctx.chain.executor(address).await.map_err(AppError::from)?)
}

pub fn record(state: &ExecutorState) -> OutputRecord {
    let (volume, proposal) = (state.volume, state.proposal);
    OutputRecord::new()
        .with("address", state.address)
        .with("isExecutor", volume.is_some())
        .with("hourlyCapUsdc", volume.map(|volume| cap_text(volume.cap_usdc_atomic)))
        .with("usedUsdc", volume.map(|volume| usdc_text(Usdc::from_atomic(volume.used_usdc_atomic))))
        .with("paused", volume.map(|_| state.is_paused))
        .with("proposedHourlyCapUsdc", proposal.map(|proposal| cap_text(proposal.hourly_cap_usdc_atomic)))
        .with("enactableAt", proposal.map(|proposal| Timestamp::from_s(proposal.enactable_at_s)))
}

/// An hourly cap in the form of `--hourly-cap`.
pub fn cap_text(atomic: u64) -> String {
    if atomic == u64::MAX { "none".to_owned() } else { usdc_text(Usdc::from_atomic(atomic)) }
}
