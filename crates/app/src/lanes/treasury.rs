//! The gas treasury: sends native currency to executors that are low on gas, up to a daily cap.
//!
//! It writes `gas_topups`. A payment is stored before it is sent, with the most that it can cost, and
//! counts toward the cap from then on. After a crash in between, the money may not have been sent but
//! still counts, so the cap holds. If the executor is still low, it gets another payment.

use alloy_primitives::U256;
use async_trait::async_trait;
use chain::Signer;
use domain::ids::BatchId;
use domain::time::DAY_MS;
use store::gas_topups::GasTopup;
use store::lanes::Lane;
use store::leases::Lease;

use super::gas::batch_cost;
use crate::lease::{self, LeaseHolder};
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The number of batches below which an executor is low on gas.
const LOW_BATCHES: u128 = 1_000;
/// The number of batches that an executor can pay for after a payment.
const TARGET_BATCHES: u128 = 2 * LOW_BATCHES;
/// The most gas that a payment is counted with, times the current fee: the fee may rise before it is
/// sent.
const PAYMENT_GAS: u128 = 2 * 21_000;

/// The worker.
pub struct GasTreasury {
    signer: Signer,
    /// In wei per 24 hours, with the payments' own gas.
    daily_cap: u128,
    lease: LeaseHolder,
}

impl GasTreasury {
    /// Creates the worker. `owner` identifies this process in leases.
    pub fn new(signer: Signer, daily_cap: u128, owner: String) -> Self {
        Self { signer, daily_cap, lease: LeaseHolder::new("gas-treasury".to_owned(), owner) }
    }

    /// Pays the first executor that is low. Returns whether there was one, and money for it.
    async fn pay_next(&self, ctx: &Ctx, lease: &Lease) -> Result<bool, AppError> {
        // Money must not be sent because of a node of another chain.
        ctx.chain.confirm().await?;
        let fees = ctx.chain.fees().await?;
        let of_batch = batch_cost(fees);
        for Lane { lane, executor, .. } in ctx.process.lanes.in_use() {
            let balance = saturated(ctx.chain.native_balance(executor).await?);
            if balance >= of_batch.saturating_mul(LOW_BATCHES) {
                continue;
            }
            // An executor without its right sends nothing, and its key may be stolen.
            if ctx.chain.executor(executor).await?.volume.is_none() {
                continue;
            }
            let gas = fees.max_fee_per_gas.saturating_mul(PAYMENT_GAS);
            // Checked before it is counted: a payment counts toward the cap even if the node rejects it.
            let funds = saturated(ctx.chain.native_balance(self.signer.address()).await?).saturating_sub(gas);
            let wanted = of_batch.saturating_mul(TARGET_BATCHES).saturating_sub(balance).min(funds);
            if wanted == 0 {
                tracing::error!(lane, "the gas treasury has no native currency left");
                return Ok(false);
            }
            let topup = GasTopup {
                id: BatchId(ctx.uuid()),
                lane,
                executor,
                wei: wanted,
                spent_wei: wanted.saturating_add(gas),
                created_at: ctx.now(),
            };
            let Some(topup) = self.reserve(ctx, lease, topup, gas).await? else {
                tracing::error!(lane, "the daily cap of the gas treasury is used up");
                return Ok(false);
            };
            self.pay(ctx, &topup).await?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Stores a payment, lowered to what the cap leaves. `None` if it leaves nothing.
    async fn reserve(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        topup: GasTopup,
        gas: u128,
    ) -> Result<Option<GasTopup>, AppError> {
        let input = (lease.clone(), topup, self.daily_cap, gas);
        ctx.store
            .try_write(input, |tx, (lease, topup, daily_cap, gas)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    let since = topup.created_at.plus_ms(-DAY_MS);
                    let spent = store::gas_topups::sum_spent(tx, since).await?;
                    let left = daily_cap.saturating_sub(spent).saturating_sub(*gas);
                    let wei = topup.wei.min(left);
                    if wei == 0 {
                        return Ok(None);
                    }
                    let topup = GasTopup { wei, spent_wei: wei.saturating_add(*gas), ..topup.clone() };
                    store::gas_topups::insert(tx, &topup).await?;
                    Ok(Some(topup))
                })
            })
            .await
    }

    async fn pay(&self, ctx: &Ctx, topup: &GasTopup) -> Result<(), AppError> {
        let receipt = ctx.chain.send_native(&self.signer, topup.executor, U256::from(topup.wei)).await?;
        tracing::info!(lane = topup.lane, wei = %topup.wei, tx.hash = %receipt.tx_hash, "an executor was topped up");
        let input = (topup.id, receipt.tx_hash);
        Ok(ctx
            .store
            .write(input, |tx, (id, hash)| Box::pin(store::gas_topups::put_tx_hash(tx, *id, *hash)))
            .await?)
    }
}

#[async_trait]
impl Worker for GasTreasury {
    fn name(&self) -> &'static str {
        "gas treasury"
    }

    async fn release(&self, ctx: &Ctx) -> Result<(), AppError> {
        self.lease.release(ctx).await
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let Some(lease) = self.lease.claim(ctx).await? else { return Ok(Progress::Idle) };
        let paid = self.lease.keep(ctx, &lease, self.pay_next(ctx, &lease)).await?;
        Ok(if paid { Progress::More } else { Progress::Idle })
    }
}

fn saturated(wei: U256) -> u128 {
    u128::try_from(wei).unwrap_or(u128::MAX)
}
