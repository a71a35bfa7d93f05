//! What the executors can pay for.

use alloy_primitives::{Address, U256};
use store::lanes::Lane;

use super::{Degradation, Reason};
use crate::lanes::gas::batch_cost;
use crate::trades::batch_gas;
use crate::{AppError, Ctx};

/// The number of intents in a full batch.
const FULL_BATCH: u64 = 100;

/// The balance of an executor, and what its transactions cost at the current fee, in wei.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecutorGas {
    pub lane: u16,
    pub executor: Address,
    pub balance: U256,
    /// The most that a batch of one trade can cost.
    pub trade_cost: U256,
    /// The most that a full batch can cost.
    pub batch_cost: U256,
    /// What a full batch usually costs.
    pub batch_price: U256,
}

impl ExecutorGas {
    /// Returns whether the executor cannot pay for any transaction.
    pub fn is_empty(&self) -> bool {
        self.balance < self.trade_cost
    }

    /// Returns whether the executor cannot pay for a full batch.
    pub fn is_low(&self) -> bool {
        self.balance < self.batch_cost
    }

    /// Returns the number of full batches that the balance usually pays for.
    pub fn batches(&self) -> U256 {
        self.balance.checked_div(self.batch_price).unwrap_or(U256::MAX)
    }
}

/// Reads the balances of the executors of all lanes.
pub async fn executors_gas(ctx: &Ctx) -> Result<Vec<ExecutorGas>, AppError> {
    let fees = ctx.chain.fees().await?;
    let cost = |intents| U256::from(batch_gas(intents)).saturating_mul(U256::from(fees.max_fee_per_gas));
    let mut executors = Vec::new();
    for Lane { lane, executor, .. } in ctx.process.lanes.in_use() {
        executors.push(ExecutorGas {
            lane,
            executor,
            balance: ctx.chain.native_balance(executor).await?,
            trade_cost: cost(1),
            batch_cost: cost(FULL_BATCH),
            batch_price: U256::from(batch_cost(fees)),
        });
    }
    Ok(executors)
}

/// Returns the problem of executors that cannot pay for any transaction.
pub(super) fn without(executors: &[ExecutorGas]) -> Option<Degradation> {
    let lanes = lanes_of(executors, ExecutorGas::is_empty);
    let detail = format!(
        "{} of {} executors cannot pay for a transaction. Lanes: {}.",
        lanes.len(),
        executors.len(),
        lanes.join(", ")
    );
    (!lanes.is_empty()).then(|| {
        Degradation::new(Reason::LaneWithoutGas, detail).stops_trading(lanes.len() == executors.len())
    })
}

/// Returns the problem of executors that can pay for a transaction, but not for a full batch.
pub(super) fn low(executors: &[ExecutorGas]) -> Option<Degradation> {
    let lanes = lanes_of(executors, |executor| executor.is_low() && !executor.is_empty());
    let detail = format!(
        "{} of {} executors cannot pay for a batch of {FULL_BATCH} trades. Lanes: {}.",
        lanes.len(),
        executors.len(),
        lanes.join(", ")
    );
    (!lanes.is_empty()).then(|| Degradation::new(Reason::LaneLowOnGas, detail))
}

fn lanes_of(executors: &[ExecutorGas], is: impl Fn(&ExecutorGas) -> bool) -> Vec<String> {
    executors.iter().filter(|executor| is(executor)).map(|executor| executor.lane.to_string()).collect()
}
