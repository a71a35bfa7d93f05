//! The risk engine: checks each trade against the current chain state just before it is signed.
//!
//! A rejected trade never reaches the chain. The contracts check every accepted trade again.

use std::collections::{HashMap, HashSet};

use alloy_primitives::{Address, B256, U256};
use async_trait::async_trait;
use chain::{
    AccountState, Chain, ChainError, Fill, IntentSide, QuoteRequest, Revert, face_value_usdc_atomic,
};
use domain::risk::RiskRefusal;
use domain::time::DAY_MS;
use domain::trade::HoldReason;
use domain::{ErrorCode, Timestamp, Usdc};
use futures::StreamExt;
use store::trades::Trade;

use super::intents::side_of;
use crate::error::revert;
use crate::{AppError, Ctx};

/// The decision about a trade before it is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RiskDecision {
    /// Sign it, with a nonce above `highest_nonce`.
    Send {
        /// The highest nonce of the key that the Gate has seen.
        highest_nonce: u32,
        /// The USDC that a buy would move at the current price. Zero for sales.
        usdc: Usdc,
    },
    Reject(RiskRefusal),
    /// The deadline has passed.
    Expired,
    /// The chain did not give a clear answer: check again in the next tick.
    Later,
}

const EXPIRED: &str = "The deadline passed before the trade was sent.";
/// The longest time that a rejection waits for a block that is as new as the trade.
const QUIET_CHAIN_MS: i64 = 10_000;

/// A trade and its market's number on chain.
pub type Candidate = (Trade, u64);

/// Decides about trades before they are signed.
#[async_trait]
pub trait TradeCheck: Send + Sync {
    /// Returns one decision per trade, in order.
    async fn check(&self, ctx: &Ctx, trades: &[Candidate]) -> Result<Vec<RiskDecision>, AppError>;
}

/// The check of every executor outside of a sandbox: see [`check`].
#[derive(Debug)]
pub struct RiskCheck;

#[async_trait]
impl TradeCheck for RiskCheck {
    async fn check(&self, ctx: &Ctx, trades: &[Candidate]) -> Result<Vec<RiskDecision>, AppError> {
        check(ctx, trades).await
    }
}

/// Decides about trades in order. Amounts that earlier trades of the same account take are not
/// available to later ones.
///
/// A rejection is final, and one backend of a node may lag behind. So a trade is rejected only if
/// the last block that the sync read gives a rejection too, and if that block is at least as new as
/// the trade. The trade may have been accepted on a newer block than the executor's node has; until
/// that block is read it waits.
async fn check(ctx: &Ctx, trades: &[Candidate]) -> Result<Vec<RiskDecision>, AppError> {
    let decisions = check_on(&ctx.chain, trades, ctx.now()).await;
    let refuses = decisions.iter().any(|decision| matches!(decision, RiskDecision::Reject(_)));
    // The embedded chain cannot lag behind itself.
    if !refuses || ctx.chain.is_embedded() {
        return Ok(decisions);
    }
    let Some((block, block_time)) = last_read_block(ctx).await? else {
        return Ok(vec![RiskDecision::Later; trades.len()]);
    };
    let now = ctx.now();
    let known = check_on(&ctx.chain.at_block(block), trades, now).await;
    let confirmed = trades.iter().zip(decisions).zip(known).map(|(((trade, _), newest), known)| {
        match (&newest, &known) {
            (RiskDecision::Reject(_), RiskDecision::Reject(_))
                if is_covered(trade.updated_at, block_time, now) =>
            {
                known
            }
            (RiskDecision::Reject(_), _) => RiskDecision::Later,
            _ => newest,
        }
    });
    Ok(confirmed.collect())
}

/// Returns the hash and time of the last block read, if there is one.
async fn last_read_block(ctx: &Ctx) -> Result<Option<(B256, Timestamp)>, AppError> {
    let last = ctx.store.read((), |tx, ()| Box::pin(store::sync::find_last(tx, None))).await;
    let Some(last) = last? else { return Ok(None) };
    Ok(Some((last.hash, last.at)))
}

/// Returns whether a block of this time includes every state that a trade was accepted on.
///
/// A chain without recent blocks is not waited for: see [`QUIET_CHAIN_MS`].
fn is_covered(accepted_at: Timestamp, block_time: Timestamp, now: Timestamp) -> bool {
    // Block times are whole seconds, so the block may be up to 999 ms newer than its timestamp
    // says.
    block_time.plus_ms(999) >= accepted_at || now.since_ms(accepted_at) >= QUIET_CHAIN_MS
}

async fn check_on(chain: &Chain, trades: &[Candidate], now: Timestamp) -> Vec<RiskDecision> {
    let mut accounts: Vec<(Address, u32)> =
        trades.iter().map(|(trade, _)| (trade.account, trade.key_index)).collect();
    accounts.sort_unstable();
    accounts.dedup();
    let mut states: HashMap<(Address, u32), Result<AccountState, ChainError>> =
        futures::stream::iter(accounts)
            .map(async |(account, key)| ((account, key), chain.account_state(account, key).await))
            .buffer_unordered(chain::MAX_CONCURRENT_CALLS)
            .collect()
            .await;
    let quotes = quote_all(chain, trades).await;

    let mut decisions = Vec::with_capacity(trades.len());
    for ((trade, _), quote) in trades.iter().zip(quotes) {
        let state = states.get_mut(&(trade.account, trade.key_index));
        decisions.push(match (state, quote) {
            // A failed account read gives no state: no decision without one.
            (Some(Ok(state)), quote) => check_one(trade, state, quote, now),
            _ => RiskDecision::Later,
        });
    }
    decisions
}

/// Returns the quote of each trade, in order, each as if it were the only one.
async fn quote_all(chain: &Chain, trades: &[Candidate]) -> Vec<Result<Fill, ChainError>> {
    let held = list_held(chain, trades).await;
    let requests: Vec<_> = trades.iter().map(|candidate| request_of(candidate, &held)).collect();
    let quotes = chain.quotes(requests.iter().flatten().copied()).await;
    let quotes = trades.iter().zip(requests).map(|(candidate, request)| {
        let request = request?;
        let fill = quotes.get(&request).cloned().unwrap_or_else(|| Err(unanswered()))?;
        if !request.side.is_buy() && held_of(candidate, &held)? < fill.tokens_wad {
            return Err(ChainError::Reverted(Revert::InsufficientPosition));
        }
        Ok(fill)
    });
    quotes.collect()
}

/// An account, a market's number and an outcome.
type Position = (Address, u64, u8);
/// The tokens of positions, if the chain answered.
type Held = Result<HashMap<Position, U256>, ChainError>;

/// Returns the tokens of the positions that the trades sell.
async fn list_held(chain: &Chain, trades: &[Candidate]) -> Held {
    let sales = trades.iter().filter(|(trade, _)| side_of(trade).is_ok_and(|side| !side.is_buy()));
    let positions: HashSet<Position> = sales.map(position_of).collect();
    let positions = Vec::from_iter(positions);
    let tokens = chain.tokens_of(&positions).await?;
    Ok(positions.into_iter().zip(tokens).collect())
}

fn position_of((trade, chain_market_id): &Candidate) -> Position {
    (trade.account, *chain_market_id, trade.outcome_index)
}

fn held_of(candidate: &Candidate, held: &Held) -> Result<U256, ChainError> {
    held.as_ref().map_err(ChainError::clone)?.get(&position_of(candidate)).copied().ok_or_else(unanswered)
}

fn unanswered() -> ChainError {
    ChainError::Decode("the chain did not answer for one of the trades".to_owned())
}

fn request_of(candidate: &Candidate, held: &Held) -> Result<QuoteRequest, ChainError> {
    let (trade, chain_market_id) = candidate;
    let side = side_of(trade).map_err(|error| ChainError::Rejected(error.to_string()))?;
    let amount = match side {
        IntentSide::BuyForUsdc | IntentSide::SellForUsdc => U256::from(trade.intent_usdc.atomic()),
        IntentSide::BuyTokens | IntentSide::SellTokens => trade.intent_tokens.0,
        IntentSide::SellAll => held_of(candidate, held)?,
    };
    if side == IntentSide::SellAll && amount.is_zero() {
        return Err(ChainError::Reverted(Revert::InsufficientPosition));
    }
    Ok(QuoteRequest { market_id: *chain_market_id, outcome: trade.outcome_index, side, amount })
}

fn check_one(
    trade: &Trade,
    state: &mut AccountState,
    quote: Result<Fill, ChainError>,
    now: Timestamp,
) -> RiskDecision {
    if trade.deadline <= now {
        return RiskDecision::Expired;
    }
    let fill = match quote {
        Ok(fill) => fill,
        Err(ChainError::Reverted(revert)) => return refused(&revert),
        Err(_) => return RiskDecision::Later,
    };
    // Checked here because a quote knows nothing of the account.
    if !state.policy.is_live(now.s()) || state.gate_allowance_atomic.is_zero() {
        return RiskDecision::Reject(RiskRefusal::DelegationInactive);
    }
    let Ok(side) = side_of(trade) else { return RiskDecision::Later };
    let within_bound = match side {
        IntentSide::BuyForUsdc => fill.tokens_wad >= trade.intent_tokens.0,
        IntentSide::SellForUsdc => fill.tokens_wad <= trade.intent_tokens.0,
        IntentSide::BuyTokens => fill.usdc_atomic <= trade.intent_usdc.atomic(),
        IntentSide::SellTokens | IntentSide::SellAll => fill.usdc_atomic >= trade.intent_usdc.atomic(),
    };
    if !within_bound {
        return refused(&Revert::SlippageExceeded);
    }
    let policy = &mut state.policy;
    let usdc = Usdc::from_atomic(fill.usdc_atomic);
    let send = RiskDecision::Send { highest_nonce: policy.nonce_top, usdc };
    if !side.is_buy() {
        let left = policy.sale_left_usdc_atomic(now.s());
        // The Gate first charges the whole token bound against the cap, then refunds the part that
        // the sale did not use.
        let bound = face_value_usdc_atomic(trade.intent_tokens.0);
        if fill.tokens_wad > trade.intent_tokens.0 {
            return refused(&Revert::SaleBoundExceeded);
        }
        if bound > policy.sale_per_trade_usdc_atomic {
            return refused(&Revert::SalePerTradeCapExceeded);
        }
        if bound > left {
            return refused(&Revert::SaleDailyCapExceeded);
        }
        // Later trades of this account see the caps as this sale would leave them.
        let sold = policy.sale_daily_usdc_atomic - left + face_value_usdc_atomic(fill.tokens_wad);
        if now.s() >= policy.sale_window_start_s + (DAY_MS / 1_000) as u64 {
            policy.sale_window_start_s = now.s();
        }
        policy.sold_usdc_atomic = sold;
        return RiskDecision::Send { highest_nonce: policy.nonce_top, usdc: Usdc::ZERO };
    }
    let window_is_over = now.s() >= policy.window_start_s + (DAY_MS / 1_000) as u64;
    let spent = if window_is_over { 0 } else { policy.spent_usdc_atomic };
    if fill.usdc_atomic > policy.per_trade_usdc_atomic {
        return refused(&Revert::PerTradeCapExceeded);
    }
    if spent.saturating_add(fill.usdc_atomic) > policy.daily_usdc_atomic {
        return refused(&Revert::DailyCapExceeded);
    }
    let usdc = U256::from(fill.usdc_atomic);
    if state.usdc_balance_atomic < usdc || state.gate_allowance_atomic < usdc {
        return refused(&Revert::InsufficientBalance);
    }
    policy.spent_usdc_atomic = spent + fill.usdc_atomic;
    state.usdc_balance_atomic -= usdc;
    state.gate_allowance_atomic -= usdc;
    send
}

fn refused(revert: &Revert) -> RiskDecision {
    revert::risk_of(revert).map_or(RiskDecision::Later, RiskDecision::Reject)
}

/// Returns the failure of a trade whose deadline has passed. The message says what the trade was
/// waiting for.
pub fn expired(trade: &Trade) -> domain::trade::Failure {
    let message = trade.waiting_for.map_or(EXPIRED, HoldReason::expiry_message);
    domain::trade::Failure { code: ErrorCode::RequestTimeout, message: message.to_owned(), tx_hash: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejection_waits_for_a_recent_block_or_ten_seconds() {
        let at = Timestamp::from_ms;
        let is_covered = |accepted: i64, block: i64, now: i64| is_covered(at(accepted), at(block), at(now));
        assert!(!is_covered(100_500, 99_000, 100_600));
        assert!(is_covered(100_500, 100_000, 100_600));
        assert!(is_covered(100_500, 102_000, 102_100));
        assert!(!is_covered(100_500, 99_000, 110_499));
        assert!(is_covered(100_500, 99_000, 110_500));
    }
}
