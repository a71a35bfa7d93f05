//! The deposits, withdrawals and other changes of an account's USDC, read from the chain when
//! somebody asks for them.
//!
//! Every transfer of USDC names its two sides in indexed fields, so a node finds those of one
//! account quickly, and the service needs no transfers of strangers. Only final blocks are stored,
//! and only if the sum of all stored flows is the balance that the chain reports.

use alloy_primitives::{Address, U256};
use chain::{ChainError, UsdcTransfer};
use domain::ids::UserId;
use domain::page::Page;
use domain::{ErrorCode, Timestamp, Usdc, UsdcDelta};
use store::cash_flows::CashFlow;
use store::movements::Movement;
use store::users::Account;

use crate::accounts::account_of;
use crate::finality::final_block;
use crate::{AppError, Ctx};

/// The number of blocks in one request at first. A node that rejects it is asked for fewer.
const MOST_BLOCKS: u64 = 100_000;
const LEAST_BLOCKS: u64 = 1_000;
/// The maximum number of requests per call.
const MOST_ROUNDS: u32 = 50;
/// The retry time, in seconds, while flows are being read.
const RETRY_AFTER_S: u32 = 5;

/// Lists the user's deposits and withdrawals, newest first. Returns up to `limit + 1` rows.
pub async fn list_deposits(ctx: &Ctx, user_id: UserId, page: &Page) -> Result<Vec<CashFlow>, AppError> {
    let account = account_of(ctx, user_id).await?;
    update_cash_flows(ctx, &account).await?;
    let input = (account.address, page.clone());
    let listed = ctx
        .store
        .read(input, |tx, (account, page)| Box::pin(store::cash_flows::list_external(tx, *account, page)));
    Ok(listed.await?)
}

/// Returns the USDC that the account has received from outside of this service, in final blocks. Reads
/// the chain only if less than `enough` is known.
pub(crate) async fn outside_deposits(ctx: &Ctx, account: &Account, enough: Usdc) -> Result<Usdc, AppError> {
    let known = sum_outside_deposits(ctx, account).await?;
    if known >= enough {
        return Ok(known);
    }
    update_cash_flows(ctx, account).await?;
    sum_outside_deposits(ctx, account).await
}

async fn sum_outside_deposits(ctx: &Ctx, account: &Account) -> Result<Usdc, AppError> {
    let address = account.address;
    let sum = ctx
        .store
        .read(address, |tx, account| Box::pin(store::cash_flows::sum_outside_deposits(tx, *account)))
        .await?;
    Ok(Usdc::from_atomic(sum.max(0).unsigned_abs()))
}

/// Stores the account's flows up to the newest final block.
///
/// # Errors
/// `DEPENDENCY_UNAVAILABLE` if the account has more blocks behind it than one call reads. The next
/// call continues.
pub(super) async fn update_cash_flows(ctx: &Ctx, account: &Account) -> Result<(), AppError> {
    let head = ctx.chain.head().await?;
    let Some(end) = final_block(ctx, head.number).await? else { return Ok(()) };
    let address = account.address;
    let mut last =
        ctx.store.read(address, |tx, account| Box::pin(store::cash_flows::find_end(tx, *account))).await?;
    let mut blocks = MOST_BLOCKS;
    for _ in 0..MOST_ROUNDS {
        let from = match last {
            Some(last) if last >= end => return Ok(()),
            Some(last) => last + 1,
            None => first_block_of(ctx, account, end).await?,
        };
        let to = end.min(from.saturating_add(blocks - 1));
        let transfers = match ctx.chain.usdc_transfers(address, from, to).await {
            Ok(transfers) => transfers,
            Err(ChainError::Rejected(_)) if blocks > LEAST_BLOCKS => {
                blocks = (blocks / 4).max(LEAST_BLOCKS);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let flows = transfers.iter().map(|transfer| flow_of(ctx, address, transfer)).collect();
        last = append(ctx, address, flows, (last, to)).await?;
    }
    Err(AppError::new(ErrorCode::DependencyUnavailable)
        .detail("The account's transfers are still being read. Try again in a few seconds.")
        .retry_after_s(RETRY_AFTER_S))
}

/// Returns the first block that can hold a transfer of the account. Nobody knew its address before the
/// user existed.
async fn first_block_of(ctx: &Ctx, account: &Account, end: u64) -> Result<u64, AppError> {
    // Its time may be set by hand, and it is read without a network.
    if ctx.chain.is_embedded() {
        return Ok(0);
    }
    let user = ctx.store.read(account.user_id, |tx, id| Box::pin(store::users::find(tx, *id))).await?;
    // A day earlier, because the clocks of the service and of the chain differ.
    let since = user.map_or(0, |user| user.created_at.plus_ms(-domain::time::DAY_MS).s());
    Ok(ctx.chain.first_block_since(since, end).await?)
}

fn flow_of(ctx: &Ctx, account: Address, transfer: &UsdcTransfer) -> CashFlow {
    let amount = i64::try_from(transfer.usdc_atomic).unwrap_or(i64::MAX);
    let (counterparty, usdc) = match (transfer.sender == account, transfer.receiver == account) {
        (true, true) => (account, 0),
        (true, false) => (transfer.receiver, -amount),
        (false, _) => (transfer.sender, amount),
    };
    let contracts = ctx.chain.contracts();
    let log_index = u32::try_from(transfer.log_index).unwrap_or(u32::MAX);
    CashFlow {
        account,
        id: Movement::id_at(transfer.block_number, log_index),
        tx_hash: transfer.tx_hash,
        counterparty,
        usdc: UsdcDelta(usdc),
        is_external: ![contracts.hub, contracts.gate, account].contains(&counterparty),
        at: Timestamp::from_s(transfer.timestamp_s),
    }
}

/// Stores flows if the balance agrees with them. Returns the last block that is stored now.
async fn append(
    ctx: &Ctx,
    account: Address,
    flows: Vec<CashFlow>,
    (after, to): (Option<u64>, u64),
) -> Result<Option<u64>, AppError> {
    let (stored, end) = ctx
        .store
        .read(account, |tx, account| {
            Box::pin(async move {
                let sums = store::cash_flows::sums_before(tx, *account, Timestamp::from_ms(i64::MAX)).await?;
                Ok((sums.balance, store::cash_flows::find_end(tx, *account).await?))
            })
        })
        .await?;
    if end != after {
        // Another request was faster.
        return Ok(end);
    }
    let sum = flows.iter().fold(i128::from(stored), |sum, flow| sum + i128::from(flow.usdc.0));
    match ctx.chain.usdc_balance_at(account, to).await {
        Ok(balance) if u128::try_from(sum).is_ok_and(|sum| U256::from(sum) == balance) => {}
        // The chain has taken back a block that was final, or a node has answered wrongly before.
        Ok(_) if after.is_some() => {
            tracing::warn!(%account, block = to, "the stored transfers of an account do not sum up to its balance: reading them again");
            let reset =
                ctx.store.write(account, |tx, account| Box::pin(store::cash_flows::delete(tx, *account)));
            reset.await?;
            return Ok(None);
        }
        Ok(balance) => {
            let detail = format!(
                "{account} has {balance} atomic USDC after block {to}, its transfers sum up to {sum}"
            );
            return Err(ChainError::Inconsistent(detail).into());
        }
        // Some nodes keep no state of older blocks.
        Err(ChainError::Rejected(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let written = ctx.store.write((account, flows, after, to), |tx, (account, flows, after, to)| {
        Box::pin(store::cash_flows::append(tx, *account, flows, (*after, *to)))
    });
    written.await?;
    Ok(ctx.store.read(account, |tx, account| Box::pin(store::cash_flows::find_end(tx, *account))).await?)
}
