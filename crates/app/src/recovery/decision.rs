//! What the chain decided of trades.

use alloy_primitives::{Address, B256};
use chain::{BlockEvents, Event, EventKind};
use domain::ids::TradeId;
use domain::trade::{Failure, Status};
use domain::{ErrorCode, Timestamp, Usdc, Wad};
use store::{StoreError, Tx};

use crate::{AppError, Ctx, chain_errors};

/// Blocks whose logs are asked for at once.
const BLOCKS: u64 = 1_000;

/// One decision of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The trade.
    pub trade_id: TradeId,
    /// The account that traded.
    pub account: Address,
    /// The block.
    pub block_number: u64,
    /// The block's time.
    pub at: Timestamp,
    /// The transaction.
    pub tx_hash: B256,
    /// What was decided.
    pub verdict: Verdict,
}

/// What the chain can decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The trade was made.
    Made(Made),
    /// It failed.
    Failed(Failure),
    /// Its nonce had been used before.
    Duplicate(Failure),
}

/// What a trade moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    /// The hub's number of the market.
    pub chain_market_id: u64,
    /// The outcome.
    pub outcome_index: u8,
    /// USDC, fee included.
    pub usdc: Usdc,
    /// Outcome tokens.
    pub tokens: Wad,
    /// The fee.
    pub fee: Usdc,
}

impl Verdict {
    /// Whether a trade of this status is one that the tables signed, and ended as the chain says if it has ended.
    pub fn fits(&self, status: Status) -> bool {
        match self {
            Self::Made(_) => matches!(status, Status::Executing | Status::Completed),
            Self::Failed(_) | Self::Duplicate(_) => status == Status::Executing || status.is_terminal(),
        }
    }
}

impl Decision {
    /// The decision that an event tells of, if it tells of one.
    pub fn of(event: &Event, at: Timestamp) -> Option<Self> {
        let failure = |code: ErrorCode| Failure {
            code,
            message: code.default_detail().to_owned(),
            tx_hash: Some(event.tx_hash),
        };
        let (trade_id, account, verdict) = match &event.kind {
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
                (trade_id, account, Verdict::Made(made))
            }
            EventKind::IntentFailed { trade_id, account, reason, .. } => {
                (trade_id, account, Verdict::Failed(failure(chain_errors::code_of(reason))))
            }
            EventKind::IntentDuplicate { trade_id, account, .. } => {
                (trade_id, account, Verdict::Duplicate(failure(ErrorCode::RequestTimeout)))
            }
            _ => return None,
        };
        Some(Self {
            trade_id: TradeId(*trade_id),
            account: *account,
            block_number: event.block_number,
            at,
            tx_hash: event.tx_hash,
            verdict,
        })
    }

    /// The account as the tables write it.
    pub fn account_text(&self) -> String {
        self.account.to_string().to_lowercase()
    }
}

/// The decisions in these blocks, in order.
pub fn decisions_in(blocks: &[BlockEvents]) -> Vec<Decision> {
    let of_block = |block: &BlockEvents| {
        let at = Timestamp::from_s(block.timestamp_s);
        block.events.iter().filter_map(|event| Decision::of(event, at)).collect::<Vec<_>>()
    };
    blocks.iter().flat_map(of_block).collect()
}

/// The decisions of the blocks `from..=to`, read from the chain some blocks at a time.
pub struct Decisions {
    next: u64,
    to: u64,
}

impl Decisions {
    /// Nothing read yet.
    pub const fn new(from: u64, to: u64) -> Self {
        Self { next: from, to }
    }

    /// Those of the next blocks; `None` after the last block.
    pub async fn next(&mut self, ctx: &Ctx) -> Result<Option<Vec<Decision>>, AppError> {
        if self.next > self.to {
            return Ok(None);
        }
        let until = self.to.min(self.next + BLOCKS - 1);
        // Checked against the headers: an empty list that is believed here would let a trade be made twice.
        let blocks = ctx.chain.read_blocks(self.next, until, &[]).await?.blocks;
        self.next = until + 1;
        Ok(Some(decisions_in(&blocks)))
    }
}

/// The decisions that do not fit the tables, each with the status of the trade if it is there.
pub async fn unknown(
    tx: &mut Tx,
    decisions: &[Decision],
) -> Result<Vec<(Decision, Option<Status>)>, StoreError> {
    let ids: Vec<TradeId> = decisions.iter().map(|decision| decision.trade_id).collect();
    let statuses = store::trades::list_statuses(tx, &ids).await?;
    let unknown = decisions.iter().filter_map(|decision| {
        let status = statuses.get(&decision.trade_id).copied();
        let fits = status.is_some_and(|status| decision.verdict.fits(status));
        (!fits).then(|| (decision.clone(), status))
    });
    Ok(unknown.collect())
}
