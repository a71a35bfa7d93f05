//! Limits of the acts whose gas the service pays: otherwise anyone could empty a lane's key.

use std::net::IpAddr;

use domain::ids::UserId;
use domain::key::Tier;
use domain::owner_act::OwnerActKind;
use domain::rate::Scope;
use domain::time::DAY_MS;
use domain::{ErrorCode, Timestamp, Usdc};
use store::Tx;
use store::users::Account;

use crate::limits::NotSpent;
use crate::limits::budget::Budget;
use crate::{AppError, Ctx, accounts, portfolio};

/// The initiator of an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActOrigin {
    /// The user at this address, within the limits.
    User(IpAddr),
    /// The operator, who pays for the act and has no limits.
    Operator,
}

/// Rejects an act of an account for which the service does not pay: it holds too little, or its money
/// came from other accounts of this service.
///
/// Without the second rule one USDC that is passed on from fresh account to fresh account would pay
/// for an act of each. So only what comes from outside counts, and it counts once: where it goes
/// later makes no other account eligible.
pub(super) async fn check_sponsored(ctx: &Ctx, origin: ActOrigin, account: &Account) -> Result<(), AppError> {
    let minimum = ctx.config.owner_acts.min_balance;
    if origin == ActOrigin::Operator || minimum == Usdc::ZERO {
        return Ok(());
    }
    let balance = accounts::balance_of(ctx, account.address).await?;
    if balance < minimum {
        return Err(not_sponsored(minimum, balance)
            .detail("Deposit USDC first: the service pays the gas only for accounts that hold some."));
    }
    let deposited = portfolio::outside_deposits(ctx, account, minimum).await?;
    if deposited < minimum {
        return Err(not_sponsored(minimum, deposited).detail(format!(
            "Deposit {} USDC from outside first, and wait until it is final: the service pays the gas only for accounts \
             that received as much, and transfers from other accounts of this service do not count. An owner can \
             also send the account's calls without the service.",
            minimum.to_decimal()
        )));
    }
    Ok(())
}

fn not_sponsored(minimum: Usdc, available: Usdc) -> AppError {
    AppError::new(ErrorCode::InsufficientBalance)
        .with("requiredUsdc", minimum.to_string())
        .with("availableUsdc", available.to_string())
}

/// Runs `signing`, which lets the service pay for an act of this kind, within the budgets of gas.
pub(super) async fn within_gas_budgets<T>(
    ctx: &Ctx,
    origin: ActOrigin,
    user_id: UserId,
    (kind, gas): (OwnerActKind, u64),
    signing: impl Future<Output = Result<T, AppError>>,
) -> Result<T, AppError> {
    let ActOrigin::User(ip) = origin else { return signing.await };
    let (client, now) = ((ip, user_id), ctx.now());
    let user = ctx.store.read(user_id, |tx, id| Box::pin(store::users::find(tx, *id))).await?;
    let tier = user.map_or(Tier::Free, |user| user.tier);
    let budget = take_gas(ctx, client, tier, (kind, gas), now).await?;
    let signed = signing.await;
    if signed.is_err() {
        // Otherwise signatures that are refused would use up the gas of others.
        ctx.budgets().give_back(budget, client, gas, now).await;
    }
    signed
}

/// Takes the gas of an act. Returns the budget that it was taken from.
///
/// An act that leaves or protects, such as a withdrawal, must not depend on what strangers have used of
/// the total. So it then has a budget of its own.
async fn take_gas(
    ctx: &Ctx,
    client: (IpAddr, UserId),
    tier: Tier,
    (kind, gas): (OwnerActKind, u64),
    now: Timestamp,
) -> Result<Budget, AppError> {
    use OwnerActKind::{EndApproval, RemoveOwner, Withdraw};
    let budgets = ctx.budgets();
    let (budget, taken) = match tier {
        Tier::Free => (Budget::ActGas, budgets.spend_amount(Budget::ActGas, client, gas, now).await),
        _ => (Budget::PaidActGas, budgets.spend_amount(Budget::PaidActGas, client, gas, now).await),
    };
    match taken {
        Ok(()) => Ok(budget),
        Err(NotSpent::Refused(refused))
            if refused.scope == Scope::Total && matches!(kind, Withdraw | RemoveOwner | EndApproval) =>
        {
            match budgets.spend_amount(Budget::LeavingGas, client, gas, now).await {
                Ok(()) => Ok(Budget::LeavingGas),
                Err(_) => Err(refused.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// Rejects an act of a user who has signed the maximum number of acts within 24 hours.
pub(super) async fn check_count(
    tx: &mut Tx,
    origin: ActOrigin,
    user_id: UserId,
    per_day: u32,
    now: Timestamp,
) -> Result<(), AppError> {
    if origin == ActOrigin::Operator {
        return Ok(());
    }
    let refuse = |retry_at: Timestamp| {
        let seconds = u32::try_from(retry_at.since_ms(now) / 1_000 + 1).unwrap_or(1);
        Err(AppError::new(ErrorCode::RateLimitExceeded)
            .detail(format!("The service sends at most {per_day} acts of a user within 24 hours."))
            .retry_after_s(seconds))
    };
    if per_day == 0 {
        return refuse(now.plus_ms(DAY_MS));
    }
    let counted = store::owner_acts::find_nth_last_signed(tx, user_id, per_day).await?;
    match counted.map(|at| at.plus_ms(DAY_MS)) {
        Some(free_at) if free_at > now => refuse(free_at),
        _ => Ok(()),
    }
}
