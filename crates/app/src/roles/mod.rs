//! Acts of the deployment's roles on the contracts.
//!
//! The holder of a role is the address of a key, of a Safe or of another wallet. An act is sent with
//! the key, or checked and returned unsent for the wallet. Both ways share everything up to the
//! transaction.

mod change;

use alloy_primitives::Address;
use chain::{Call, ChainError, Receipt, Revert, Role, Signer};
use domain::ErrorCode;
use serde_json::{Value, json};
use store::audit_log::{Act, Phase};

use crate::audit_log::{around, record};
use crate::{AppError, Ctx};

pub use change::RoleChange;

/// The sender of an act.
#[derive(Debug, Clone, Copy)]
pub enum ActSender<'a> {
    /// The act is sent with this key.
    Key(&'a Signer),
    /// The act is not sent. This address sends it later.
    Wallet(Address),
}

impl ActSender<'_> {
    pub fn address(self) -> Address {
        match self {
            Self::Key(signer) => signer.address(),
            Self::Wallet(address) => address,
        }
    }
}

impl<'a> From<&'a Signer> for ActSender<'a> {
    fn from(signer: &'a Signer) -> Self {
        Self::Key(signer)
    }
}

/// The result of an act.
#[derive(Debug, Clone)]
pub enum ActResult {
    /// The act is in a block.
    Mined(Receipt),
    /// The act would succeed now. The wallet has to send this call.
    Printed(Call),
}

/// The addresses that may send an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Senders {
    /// The holders of these roles, the usual one first.
    Roles(&'static [Role]),
    /// The address that a proposal names.
    Proposed(Address),
    /// Any address.
    Anyone,
}

/// An act that is ready to be sent.
pub(crate) struct RoleAct {
    /// The entry in the audit log, without `terms`.
    pub act: Act,
    /// The parameters of the act for the audit log, or null.
    pub terms: Value,
    pub call: Call,
    /// A revert that an earlier transaction of the same wallet prevents. It is ignored when the act
    /// is printed.
    pub prevented: Option<Revert>,
}

/// Sends an act, or checks it and returns it unsent. Logs it in the audit log in both cases.
/// `explain` returns the error for a revert, or `None` to use the general one.
pub(crate) async fn perform(
    ctx: &Ctx,
    sender: ActSender<'_>,
    act: RoleAct,
    explain: impl AsyncFnOnce(&Revert) -> Result<Option<AppError>, AppError>,
) -> Result<ActResult, AppError> {
    let RoleAct { act, terms, call, prevented } = act;
    let act = if terms.is_null() { act } else { act.after(&terms) };
    let sent = async {
        let error = match send(ctx, sender, call, prevented).await {
            Ok(sent) => return Ok(sent),
            Err(error) => error,
        };
        let ChainError::Reverted(revert) = &error else { return Err(error.into()) };
        Err(match explain(revert).await? {
            Some(explained) => explained,
            None if *revert == Revert::NotAuthorized => not_authorized(ctx, sender.address()).await?,
            None => error.into(),
        })
    };
    match sender {
        ActSender::Key(_) => {
            let after = |sent: &ActResult| match sent {
                ActResult::Mined(receipt) => merged(sent_as(receipt), terms),
                ActResult::Printed(_) => terms,
            };
            around(ctx, act, sent, after).await
        }
        ActSender::Wallet(address) => {
            let sent = sent.await?;
            let printed = merged(json!({ "from": address.to_string().to_lowercase() }), terms);
            record(ctx, act.after(printed).in_phase(Phase::Printed)).await?;
            Ok(sent)
        }
    }
}

/// Sends a call with the sender's key, or checks that it would succeed from the sender's wallet.
/// Writes no audit log.
pub(crate) async fn send(
    ctx: &Ctx,
    sender: ActSender<'_>,
    call: Call,
    prevented: Option<Revert>,
) -> Result<ActResult, ChainError> {
    match sender {
        ActSender::Key(signer) => {
            ctx.chain.transact(signer, Some(call.target), call.data).await.map(ActResult::Mined)
        }
        ActSender::Wallet(from) => {
            match ctx.chain.estimate_gas(from, Some(call.target), call.data.clone()).await {
                Err(ChainError::Reverted(revert)) if prevented.as_ref() == Some(&revert) => {}
                checked => drop(checked?),
            }
            Ok(ActResult::Printed(call))
        }
    }
}

/// The error of an act that the contracts do not allow this address.
async fn not_authorized(ctx: &Ctx, from: Address) -> Result<AppError, AppError> {
    let is_suspended = ctx.chain.is_resolver_suspended().await?;
    Ok(invalid(match is_suspended && from == ctx.chain.role_holder(Role::Resolver).await? {
        true => "the resolver is suspended".to_owned(),
        false => format!("{from} does not hold a role that may do this"),
    }))
}

/// The error of an act that the state of the roles does not allow.
fn invalid(state: String) -> AppError {
    AppError::invalid_state(ErrorCode::ValidationFailed, state)
}

/// The state after an act, with the act's parameters.
fn merged(mut after: Value, terms: Value) -> Value {
    if let (Value::Object(after), Value::Object(terms)) = (&mut after, terms) {
        after.extend(terms);
    }
    after
}

/// A mined transaction in the form of the audit log.
fn sent_as(receipt: &Receipt) -> Value {
    json!({ "txHash": receipt.tx_hash.to_string(), "block": receipt.block_number })
}
