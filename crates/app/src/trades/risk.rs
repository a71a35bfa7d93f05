//! The risk engine: each trade against the chain as it is now, just before it is signed. What it refuses never reaches the
//! chain; what it lets through the chain itself judges again.

use std::collections::HashMap;

use alloy_primitives::{Address, U256};
use chain::{AccountState, Chain, ChainError, Fill, Revert, Side};
use domain::risk::RiskRefusal;
use domain::time::DAY_MS;
use domain::trade::HoldReason;
use domain::{ErrorCode, Timestamp, Usdc};
use futures::StreamExt;
use store::trades::Trade;

use super::intents::{account_of, side_of};
use crate::{AppError, Ctx, chain_errors, markets};

/// What becomes of a trade before it is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// To be sent, with a nonce above the highest one that the Gate has seen from the key.
    Send {
        /// That highest nonce.
        highest_nonce: u32,
        /// What it would move.
        usdc: Usdc,
    },
    /// Refused.
    Reject(RiskRefusal),
    /// Too late.
    Expired,
    /// The chain does not answer: to be judged again.
    Later,
}

const EXPIRED: &str = "The deadline passed before the trade was sent.";
/// Questions to the chain that are open at once.
const CONCURRENT: usize = 16;

/// A trade with the chain's number of its market.
pub type Candidate = (Trade, u64);

/// Judges trades in their order; what earlier ones of the same account take is taken off for the later ones.
///
/// A refusal cannot be taken back, and one backend of a node may be behind. So a trade is refused only if it would be after
/// the last block that was read, too; until then it waits.
pub async fn judge(ctx: &Ctx, trades: &[Candidate]) -> Result<Vec<Verdict>, AppError> {
    let verdicts = judge_on(&ctx.chain, trades, ctx.now()).await;
    let refuses = verdicts.iter().any(|verdict| matches!(verdict, Verdict::Reject(_)));
    if !refuses || ctx.chain.is_embedded() {
        return Ok(verdicts);
    }
    let known = match markets::last_read_block(ctx).await? {
        Some(block) => judge_on(&ctx.chain.at_block(block), trades, ctx.now()).await,
        None => vec![Verdict::Later; trades.len()],
    };
    let confirmed = verdicts.into_iter().zip(known).map(|(newest, known)| match (&newest, &known) {
        (Verdict::Reject(_), Verdict::Reject(_)) => known,
        (Verdict::Reject(_), _) => Verdict::Later,
        _ => newest,
    });
    Ok(confirmed.collect())
}

async fn judge_on(chain: &Chain, trades: &[Candidate], now: Timestamp) -> Vec<Verdict> {
    let mut accounts: Vec<(Address, u32)> =
        trades.iter().filter_map(|(trade, _)| Some((account_of(trade).ok()?, trade.key_index))).collect();
    accounts.sort_unstable();
    accounts.dedup();
    let mut states: HashMap<(Address, u32), Result<AccountState, ChainError>> =
        futures::stream::iter(accounts)
            .map(async |(account, key)| ((account, key), chain.account_state(account, key).await))
            .buffer_unordered(CONCURRENT)
            .collect()
            .await;
    let quotes: Vec<_> = trades.iter().map(|candidate| quote(chain, candidate)).collect();
    let quotes: Vec<Result<Fill, ChainError>> =
        futures::stream::iter(quotes).buffered(CONCURRENT).collect().await;

    let mut verdicts = Vec::with_capacity(trades.len());
    for ((trade, _), quote) in trades.iter().zip(quotes) {
        let state = account_of(trade).ok().and_then(|account| states.get_mut(&(account, trade.key_index)));
        verdicts.push(match (state, quote) {
            (Some(Ok(state)), quote) => judge_one(trade, state, quote, now),
            _ => Verdict::Later,
        });
    }
    verdicts
}

async fn quote(chain: &Chain, (trade, chain_market_id): &Candidate) -> Result<Fill, ChainError> {
    let internal = |error: AppError| ChainError::Rejected(error.to_string());
    let side = side_of(trade).map_err(internal)?;
    let account = account_of(trade).map_err(internal)?;
    let held = if side.is_buy() {
        U256::ZERO
    } else {
        chain.position(account, *chain_market_id, trade.outcome_index).await?.tokens_wad
    };
    let amount = match side {
        Side::BuyForUsdc | Side::SellForUsdc => U256::from(trade.intent_usdc.atomic()),
        Side::BuyTokens | Side::SellTokens => trade.intent_tokens.0,
        Side::SellAll => held,
    };
    if side == Side::SellAll && held.is_zero() {
        return Err(ChainError::Reverted(Revert::InsufficientPosition));
    }
    let fill = chain.quote(*chain_market_id, trade.outcome_index, side, amount).await?;
    if !side.is_buy() && held < fill.tokens_wad {
        return Err(ChainError::Reverted(Revert::InsufficientPosition));
    }
    Ok(fill)
}

fn judge_one(
    trade: &Trade,
    state: &mut AccountState,
    quote: Result<Fill, ChainError>,
    now: Timestamp,
) -> Verdict {
    if trade.deadline <= now {
        return Verdict::Expired;
    }
    let fill = match quote {
        Ok(fill) => fill,
        Err(ChainError::Reverted(revert)) => return refused(&revert),
        Err(_) => return Verdict::Later,
    };
    if !state.policy.is_live(now.s()) || state.gate_allowance_atomic.is_zero() {
        return Verdict::Reject(RiskRefusal::DelegationInactive);
    }
    let Ok(side) = side_of(trade) else { return Verdict::Later };
    let within_bound = match side {
        Side::BuyForUsdc => fill.tokens_wad >= trade.intent_tokens.0,
        Side::SellForUsdc => fill.tokens_wad <= trade.intent_tokens.0,
        Side::BuyTokens => fill.usdc_atomic <= trade.intent_usdc.atomic(),
        Side::SellTokens | Side::SellAll => fill.usdc_atomic >= trade.intent_usdc.atomic(),
    };
    if !within_bound {
        return refused(&Revert::SlippageExceeded);
    }
    let policy = &mut state.policy;
    let usdc = Usdc::from_atomic(fill.usdc_atomic);
    let send = Verdict::Send { highest_nonce: policy.nonce_top, usdc };
    if !side.is_buy() {
        return send;
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

fn refused(revert: &Revert) -> Verdict {
    chain_errors::risk_of(revert).map_or(Verdict::Later, Verdict::Reject)
}

/// The failure of a trade that came too late, with what it waited for.
pub fn expired(trade: &Trade) -> domain::trade::Failure {
    let message = trade.waiting_for.map_or(EXPIRED, HoldReason::expiry_message);
    domain::trade::Failure { code: ErrorCode::RequestTimeout, message: message.to_owned(), tx_hash: None }
}
