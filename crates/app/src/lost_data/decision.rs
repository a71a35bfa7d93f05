//! The decisions of the chain about trades, read from contract events.

use alloy_primitives::{Address, B256};
use chain::{BlockEvents, ChainEvent, EventKind};
use domain::ids::TradeId;
use domain::trade::{Failure, Status};
use domain::{ErrorCode, Timestamp, Usdc, Wad};
use store::{StoreError, Tx};

use crate::error::revert;
use crate::{AppError, Ctx};

/// The number of blocks per log query.
const BLOCKS: u64 = 1_000;

/// The chain's decision about one trade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub trade_id: TradeId,
    pub account: Address,
    pub block_number: u64,
    /// The block's time.
    pub at: Timestamp,
    pub tx_hash: B256,
    pub result: LostTradeResult,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LostTradeResult {
    /// The trade was executed.
    Made(Made),
    Failed(Failure),
    /// Its nonce had been used before.
    Duplicate(Failure),
}

/// The amounts of an executed trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    /// The market's number on chain.
    pub chain_market_id: u64,
    pub outcome_index: u8,
    /// Includes the fee.
    pub usdc: Usdc,
    pub tokens: Wad,
    pub fee: Usdc,
}

impl LostTradeResult {
    /// Returns whether the tables agree: the trade was signed and, if it has ended, ended as the
    /// chain says.
    pub fn fits(&self, status: Status) -> bool {
        match self {
            Self::Made(_) => matches!(status, Status::Executing | Status::Completed),
            Self::Failed(_) | Self::Duplicate(_) => status == Status::Executing || status.is_terminal(),
        }
    }
}

impl Decision {
    /// Returns the decision that an event reports, if it reports one.
    pub fn of(event: &ChainEvent, at: Timestamp) -> Option<Self> {
        let failure = |code: ErrorCode| Failure {
            code,
            message: code.default_detail().to_owned(),
            tx_hash: Some(event.tx_hash),
        };
        let (trade_id, account, result) = match &event.kind {
            EventKind::Trade {
                trade_id: Some(trade_id),
                account,
                market_id,
                outcome,
                usdc_atomic,
                tokens_wad,
                fee_atomic,
                ..
            } => {
                let made = Made {
                    chain_market_id: *market_id,
                    outcome_index: *outcome,
                    usdc: Usdc::from_atomic(*usdc_atomic),
                    tokens: Wad::from(*tokens_wad),
                    fee: Usdc::from_atomic(*fee_atomic),
                };
                (trade_id, account, LostTradeResult::Made(made))
            }
            EventKind::IntentFailed { trade_id, account, reason, .. } => {
                (trade_id, account, LostTradeResult::Failed(failure(revert::code_of(reason))))
            }
            EventKind::IntentDuplicate { trade_id, account, .. } => {
                (trade_id, account, LostTradeResult::Duplicate(failure(ErrorCode::RequestTimeout)))
            }
            _ => return None,
        };
        Some(Self {
            trade_id: TradeId(*trade_id),
            account: *account,
            block_number: event.block_number,
            at,
            tx_hash: event.tx_hash,
            result,
        })
    }
}

/// Returns the decisions in these blocks, in order.
pub fn decisions_in(blocks: &[BlockEvents]) -> Vec<Decision> {
    let of_block = |block: &BlockEvents| {
        let at = Timestamp::from_s(block.timestamp_s);
        block.events.iter().filter_map(|event| Decision::of(event, at)).collect::<Vec<_>>()
    };
    blocks.iter().flat_map(of_block).collect()
}

/// Reads the decisions of the blocks `from..=to`, in chunks.
pub struct Decisions {
    next: u64,
    to: u64,
}

impl Decisions {
    pub const fn new(from: u64, to: u64) -> Self {
        Self { next: from, to }
    }

    /// Returns the decisions of the next chunk. `None` after the last block.
    pub async fn next(&mut self, ctx: &Ctx) -> Result<Option<Vec<Decision>>, AppError> {
        if self.next > self.to {
            return Ok(None);
        }
        let until = self.to.min(self.next + BLOCKS - 1);
        // `read_blocks` checks the logs against the headers. An incomplete list here could make a
        // trade execute twice.
        let blocks = ctx.chain.read_blocks(self.next, until, &[]).await?.blocks;
        self.next = until + 1;
        Ok(Some(decisions_in(&blocks)))
    }
}

/// Returns the decisions that the tables do not agree with, each with the trade's status if the
/// trade exists.
pub async fn unknown(
    tx: &mut Tx,
    decisions: &[Decision],
) -> Result<Vec<(Decision, Option<Status>)>, StoreError> {
    let ids: Vec<TradeId> = decisions.iter().map(|decision| decision.trade_id).collect();
    let statuses = store::trades::list_statuses(tx, &ids).await?;
    let unknown = decisions.iter().filter_map(|decision| {
        let status = statuses.get(&decision.trade_id).copied();
        let fits = status.is_some_and(|status| decision.result.fits(status));
        (!fits).then(|| (decision.clone(), status))
    });
    Ok(unknown.collect())
}
