//! `foretell admin role`: shows the roles of the deployment and changes their holders.

use std::path::PathBuf;

use alloy_primitives::Address;
use app::roles::{ActResult, RoleChange};
use app::{AppError, Ctx};
use chain::{Role, RoleProposal};
use clap::{Args, Subcommand};
use domain::Timestamp;
use serde_json::{Value, json};

use super::act::ActArgs;
use super::consent::{ConsentArgs, WithoutTerminal};
use super::ctx::AdminCtx;
use super::output::{CommandOutput, OutputRecord};
use crate::start_error::StartError;

/// Commands for roles.
#[derive(Debug, Subcommand)]
pub enum RoleCommand {
    /// List the holders of the roles, the pending proposals and the delay
    List,
    /// Propose a new holder of a role. Acts as the owner
    Propose {
        #[command(flatten)]
        role: RoleArgs,
        /// The address of the new holder, which must accept the role
        #[arg(value_name = "ADDRESS")]
        to: Address,
        #[command(flatten)]
        act: ActArgs,
    },
    /// Accept a role after the delay of the proposal. Acts as the proposed holder
    Accept {
        #[command(flatten)]
        role: RoleArgs,
        #[command(flatten)]
        accept: AcceptArgs,
    },
    /// Remove the proposal of a new holder. Acts as the guardian (for a new guardian: the resolver)
    /// or the owner
    Veto {
        #[command(flatten)]
        role: RoleArgs,
        #[command(flatten)]
        remove: RemoveArgs,
    },
    /// Propose a new owner because the owner's key is lost or stolen. Acts as the guardian
    ProposeRecovery {
        /// The address of the new owner, which must accept the role
        #[arg(value_name = "ADDRESS")]
        to: Address,
        #[command(flatten)]
        act: ActArgs,
    },
    /// Accept the owner's role after the delay of the recovery. Acts as the proposed owner
    AcceptRecovery(AcceptArgs),
    /// Remove the guardian's proposal of a new owner. Acts as the resolver or the guardian
    VetoRecovery(RemoveArgs),
    /// Suspend the resolver until a successor accepts. Acts as the guardian or the owner
    SuspendResolver(RemoveArgs),
}

/// A role.
#[derive(Debug, Clone, Copy, Args)]
pub struct RoleArgs {
    /// The role: owner, resolver, guardian or treasury
    #[arg(value_name = "ROLE")]
    role: Role,
}

/// Options of commands that accept a role.
#[derive(Debug, Args)]
pub struct AcceptArgs {
    /// File with the private key of the new holder
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    #[command(flatten)]
    act: ActArgs,
    #[command(flatten)]
    consent: ConsentArgs,
}

/// Options of commands that remove power or a proposal.
#[derive(Debug, Args)]
pub struct RemoveArgs {
    #[command(flatten)]
    act: ActArgs,
    #[command(flatten)]
    consent: ConsentArgs,
}

pub async fn run(command: RoleCommand, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let ctx = admin.online().await?;
    match command {
        RoleCommand::List => show(&ctx).await.map(CommandOutput::One),
        RoleCommand::Propose { role: RoleArgs { role }, to, act } => {
            let title = format!("Propose {to} as the new {role}");
            make(RoleChange::ProposeRole(role, to), &title, &act, None, admin, &ctx).await
        }
        RoleCommand::Accept { role: RoleArgs { role }, accept } => {
            accept_role(RoleChange::AcceptRole(role), role, accept, admin, &ctx).await
        }
        RoleCommand::Veto { role: RoleArgs { role }, remove } => {
            let title = format!("Veto the proposal of a new {role}");
            remove_power(RoleChange::VetoRole(role), role, &title, remove, admin, &ctx).await
        }
        RoleCommand::ProposeRecovery { to, act } => {
            let title = format!("Propose {to} as the new owner, because the owner's key is lost or stolen");
            make(RoleChange::ProposeRecovery(to), &title, &act, None, admin, &ctx).await
        }
        RoleCommand::AcceptRecovery(accept) => {
            accept_role(RoleChange::AcceptRecovery, Role::Owner, accept, admin, &ctx).await
        }
        RoleCommand::VetoRecovery(remove) => {
            let title = "Veto the guardian's proposal of a new owner";
            remove_power(RoleChange::VetoRecovery, Role::Owner, title, remove, admin, &ctx).await
        }
        RoleCommand::SuspendResolver(remove) => {
            let title = "Suspend the resolver until a successor accepts";
            remove_power(RoleChange::SuspendResolver, Role::Resolver, title, remove, admin, &ctx).await
        }
    }
}

/// Accepts a role. This needs confirmation, because the former holder loses the role at once.
async fn accept_role(
    change: RoleChange,
    role: Role,
    accept: AcceptArgs,
    admin: &AdminCtx,
    ctx: &Ctx,
) -> Result<CommandOutput, StartError> {
    let title = format!("Accept the role of the {role}");
    if !accept.act.is_printed() {
        let act = format!("{title}. Its holder loses it, and only a new proposal can undo this.");
        accept.consent.obtain(&act, role.as_str(), WithoutTerminal::Refuse)?;
    }
    make(change, &title, &accept.act, accept.key_file, admin, ctx).await
}

/// Removes power or a proposal. A script must not be blocked by a prompt.
async fn remove_power(
    change: RoleChange,
    role: Role,
    title: &str,
    remove: RemoveArgs,
    admin: &AdminCtx,
    ctx: &Ctx,
) -> Result<CommandOutput, StartError> {
    if !remove.act.is_printed() {
        let act = format!("{title}. Only a new proposal can undo this, after the delay.");
        remove.consent.obtain(&act, role.as_str(), WithoutTerminal::Proceed)?;
    }
    make(change, title, &remove.act, None, admin, ctx).await
}

/// Makes a change and shows the roles, or prints the change's transaction.
async fn make(
    change: RoleChange,
    title: &str,
    act: &ActArgs,
    key_file: Option<PathBuf>,
    admin: &AdminCtx,
    ctx: &Ctx,
) -> Result<CommandOutput, StartError> {
    let acting = act.acting(admin, ctx, change.senders(ctx).await?, key_file.as_deref()).await?;
    match change.make(ctx, acting.sender()).await? {
        ActResult::Mined(receipt) => {
            let record = admin.deployment_hint(show(ctx).await?);
            Ok(CommandOutput::One(record.with("txHash", receipt.tx_hash.to_string())))
        }
        ActResult::Printed(call) => Ok(acting.print(ctx, title, &[call], OutputRecord::new())),
    }
}

async fn show(ctx: &Ctx) -> Result<OutputRecord, StartError> {
    let seats = ctx.chain.seats().await.map_err(AppError::from)?;
    let roles: Vec<Value> = seats
        .all
        .iter()
        .map(|seat| {
            let mut shown = json!({ "role": seat.role.as_str(), "holder": seat.holder });
            if seat.role == Role::Resolver {
                shown["suspended"] = seats.is_resolver_suspended.into();
            }
            shown["proposal"] = proposal(seat.proposal);
            shown
        })
        .collect();
    Ok(OutputRecord::new()
        .with("roles", roles)
        .with("recovery", proposal(seats.recovery))
        .with("delaySeconds", seats.delay_s))
}

fn proposal(proposal: Option<RoleProposal>) -> Value {
    proposal.map_or(Value::Null, |RoleProposal { to, acceptable_at_s }| {
        json!({ "to": to, "acceptableAt": Timestamp::from_s(acceptable_at_s) })
    })
}
