//! Changes of the roles' holders and of executors.

use alloy_primitives::{Address, Bytes};
use chain::{Call, Revert, Role, calls};
use domain::{Timestamp, Usdc};
use serde_json::{Value, json};
use store::audit_log::Act;

use super::{ActResult, ActSender, RoleAct, Senders, invalid, perform};
use crate::{AppError, Ctx};

/// A change of a role or of an executor. Hourly caps are atomic USDC; `u64::MAX` is no cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleChange {
    /// Proposes a new holder of a role.
    ProposeRole(Role, Address),
    /// The proposed holder takes the role.
    AcceptRole(Role),
    /// Removes the proposal of a new holder.
    VetoRole(Role),
    /// The guardian proposes a new owner.
    ProposeRecovery(Address),
    /// The owner that the guardian proposed takes the role.
    AcceptRecovery,
    /// Removes the guardian's proposal of a new owner.
    VetoRecovery,
    /// Takes away the resolver's power over markets until a successor accepts.
    SuspendResolver,
    /// Proposes an executor, or another hourly cap for one.
    ProposeExecutor(Address, u64),
    /// Makes the proposal for an executor take effect.
    EnactExecutor(Address),
    /// Removes the proposal for an executor.
    VetoExecutor(Address),
    /// Lowers an executor's hourly cap.
    LowerExecutor(Address, u64),
    /// Removes an executor.
    RemoveExecutor(Address),
    /// Stops all executors.
    Pause,
    /// Starts all executors again.
    Resume,
}

/// The object of a change.
#[derive(Clone, Copy)]
enum Subject {
    Role(Role),
    Recovery,
    Executor(Address),
    Gate,
}

impl RoleChange {
    /// Returns the addresses that may make the change.
    ///
    /// # Errors
    /// `InvalidState` if there is no proposal to accept.
    pub async fn senders(&self, ctx: &Ctx) -> Result<Senders, AppError> {
        let proposal = match self {
            Self::AcceptRole(role) => ctx.chain.role_proposal(*role).await?,
            Self::AcceptRecovery => ctx.chain.recovery_proposal().await?,
            Self::EnactExecutor(_) => return Ok(Senders::Anyone),
            Self::ProposeRole(..) | Self::ProposeExecutor(..) => return Ok(Senders::Roles(&[Role::Owner])),
            Self::ProposeRecovery(_) | Self::Resume => return Ok(Senders::Roles(&[Role::Guardian])),
            Self::VetoRole(Role::Guardian) => return Ok(Senders::Roles(&[Role::Resolver, Role::Owner])),
            Self::VetoRecovery => return Ok(Senders::Roles(&[Role::Resolver, Role::Guardian])),
            Self::VetoRole(_)
            | Self::SuspendResolver
            | Self::VetoExecutor(_)
            | Self::LowerExecutor(..)
            | Self::RemoveExecutor(_)
            | Self::Pause => return Ok(Senders::Roles(&[Role::Guardian, Role::Owner])),
        };
        let proposal = proposal.ok_or_else(|| invalid(self.subject().not_proposed()))?;
        Ok(Senders::Proposed(proposal.to))
    }

    const fn subject(&self) -> Subject {
        match self {
            Self::ProposeRole(role, _) | Self::AcceptRole(role) | Self::VetoRole(role) => {
                Subject::Role(*role)
            }
            Self::ProposeRecovery(_) | Self::AcceptRecovery | Self::VetoRecovery => Subject::Recovery,
            Self::SuspendResolver => Subject::Role(Role::Resolver),
            Self::ProposeExecutor(executor, _)
            | Self::EnactExecutor(executor)
            | Self::VetoExecutor(executor)
            | Self::LowerExecutor(executor, _)
            | Self::RemoveExecutor(executor) => Subject::Executor(*executor),
            Self::Pause | Self::Resume => Subject::Gate,
        }
    }

    /// The action in the audit log.
    const fn action(&self) -> &'static str {
        match self {
            Self::ProposeRole(..) => "role.propose",
            Self::AcceptRole(_) => "role.accept",
            Self::VetoRole(_) => "role.veto",
            Self::ProposeRecovery(_) => "role.propose-recovery",
            Self::AcceptRecovery => "role.accept-recovery",
            Self::VetoRecovery => "role.veto-recovery",
            Self::SuspendResolver => "role.suspend-resolver",
            Self::ProposeExecutor(..) => "executor.propose",
            Self::EnactExecutor(_) => "executor.enact",
            Self::VetoExecutor(_) => "executor.veto",
            Self::LowerExecutor(..) => "executor.lower",
            Self::RemoveExecutor(_) => "executor.remove",
            Self::Pause => "executor.pause",
            Self::Resume => "executor.resume",
        }
    }

    fn terms(&self) -> Value {
        match self {
            Self::ProposeRole(_, to) | Self::ProposeRecovery(to) => json!({ "to": lower(*to) }),
            Self::ProposeExecutor(_, cap) | Self::LowerExecutor(_, cap) => {
                json!({ "hourlyCapUsdcAtomic": cap.to_string() })
            }
            _ => Value::Null,
        }
    }

    fn data(&self) -> Bytes {
        match *self {
            Self::ProposeRole(role, to) => calls::propose_role(role, to),
            Self::AcceptRole(role) => calls::accept_role(role),
            Self::VetoRole(role) => calls::veto_role(role),
            Self::ProposeRecovery(to) => calls::propose_recovery(to),
            Self::AcceptRecovery => calls::accept_recovery(),
            Self::VetoRecovery => calls::veto_recovery(),
            Self::SuspendResolver => calls::suspend_resolver(),
            Self::ProposeExecutor(executor, cap) => calls::propose_executor(executor, cap),
            Self::EnactExecutor(executor) => calls::enact_executor(executor),
            Self::VetoExecutor(executor) => calls::veto_executor(executor),
            Self::LowerExecutor(executor, cap) => calls::lower_executor(executor, cap),
            Self::RemoveExecutor(executor) => calls::lower_executor(executor, 0),
            Self::Pause => calls::set_paused(true),
            Self::Resume => calls::set_paused(false),
        }
    }

    /// Makes the change, or checks it and returns it unsent.
    ///
    /// # Errors
    /// `InvalidState` if the contracts do not allow the change now.
    pub async fn make<'a>(self, ctx: &Ctx, sender: impl Into<ActSender<'a>>) -> Result<ActResult, AppError> {
        let subject = self.subject();
        let contracts = ctx.chain.contracts();
        let (target, name) = match subject {
            Subject::Role(role) => (contracts.authority, format!("role:{role}")),
            Subject::Recovery => (contracts.authority, format!("role:{}", Role::Owner)),
            Subject::Executor(executor) => (contracts.gate, format!("executor:{}", lower(executor))),
            Subject::Gate => (contracts.gate, format!("gate:{}", lower(contracts.gate))),
        };
        let act = RoleAct {
            act: Act::new(self.action(), name).before(subject.state(ctx).await?),
            terms: self.terms(),
            call: Call::new(target, self.data()),
            prevented: None,
        };
        perform(ctx, sender.into(), act, async |revert| subject.explain(ctx, revert).await).await
    }
}

impl Subject {
    /// The state before a change, for the audit log.
    async fn state(self, ctx: &Ctx) -> Result<Value, AppError> {
        Ok(match self {
            Self::Role(role) => json!({ "holder": lower(ctx.chain.role_holder(role).await?) }),
            Self::Recovery => json!({ "holder": lower(ctx.chain.role_holder(Role::Owner).await?) }),
            Self::Executor(executor) => {
                let volume = ctx.chain.executor(executor).await?.volume;
                json!({ "hourlyCapUsdcAtomic": volume.map(|volume| volume.cap_usdc_atomic.to_string()) })
            }
            Self::Gate => json!({ "paused": ctx.chain.is_gate_paused().await? }),
        })
    }

    fn not_proposed(self) -> String {
        match self {
            Self::Role(role) => format!("there is no proposal of a new {role}"),
            Self::Recovery => "there is no proposal of the guardian for a new owner".to_owned(),
            Self::Executor(executor) => format!("there is no proposal of the present owner for {executor}"),
            Self::Gate => "there is no proposal".to_owned(),
        }
    }

    /// Returns the error for a revert that has a known state as its cause.
    async fn explain(self, ctx: &Ctx, revert: &Revert) -> Result<Option<AppError>, AppError> {
        let state = match (revert, self) {
            (Revert::NotProposed, _) => self.not_proposed(),
            (Revert::DelayNotOver, _) => {
                let at_s = match self {
                    Self::Role(role) => ctx.chain.role_proposal(role).await?.map(|it| it.acceptable_at_s),
                    Self::Recovery => ctx.chain.recovery_proposal().await?.map(|it| it.acceptable_at_s),
                    Self::Executor(executor) => {
                        ctx.chain.executor(executor).await?.proposal.map(|it| it.enactable_at_s)
                    }
                    Self::Gate => None,
                };
                let at = Timestamp::from_s(at_s.unwrap_or_default());
                format!("the delay of the proposal is not over before {at}")
            }
            (Revert::CapNotLower, Self::Executor(executor)) => {
                match ctx.chain.executor(executor).await?.volume {
                    Some(volume) => {
                        let cap = Usdc::from_atomic(volume.cap_usdc_atomic).to_decimal();
                        format!("the hourly cap of {executor} is {cap} USDC, and can only be lowered at once")
                    }
                    None => format!("{executor} is not an executor"),
                }
            }
            (Revert::TooManyExecutors, _) => "the Gate has as many executors as it can have".to_owned(),
            _ => return Ok(None),
        };
        Ok(Some(invalid(state)))
    }
}

fn lower(address: Address) -> String {
    address.to_string().to_lowercase()
}
