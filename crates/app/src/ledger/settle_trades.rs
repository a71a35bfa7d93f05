//! Ends trades from the contracts' final events.
//!
//! Events carry the trade's id. It does not matter which transaction carried the intent, or whether
//! this process knows it.

use std::collections::HashMap;

use chain::Revert;
use domain::ids::{MarketId, TradeId};
use domain::trade::{Failure, Settlement, Status, Transition};
use domain::{ErrorCode, Timestamp};
use store::movements::{IntentFailure, Movement};
use store::trades::{Moved, Trade};
use store::{StoreError, Tx};

use crate::AppError;
use crate::error::revert;

/// The final event of an intent.
#[derive(Debug, Clone, Copy)]
enum Outcome<'e> {
    Executed(&'e Movement),
    Failed(&'e IntentFailure),
}

/// Ends the trades that final blocks have decided. Returns how many.
///
/// The caller notes the settled block in the same transaction, so that each event is used once.
pub async fn settle(tx: &mut Tx, from_block: u64, to_block: u64, now: Timestamp) -> Result<usize, AppError> {
    let movements = store::movements::list_settled(tx, from_block, to_block).await?;
    let failures = store::movements::list_failures(tx, from_block, to_block).await?;
    let failed = failures.iter().map(|failure| (failure.trade_id, Outcome::Failed(failure)));
    end(tx, rounds(executed(&movements).chain(failed)), now).await
}

/// Ends the trades of one market that an earlier settlement missed, for example while the market
/// was quarantined.
pub async fn settle_market(
    tx: &mut Tx,
    market_id: MarketId,
    from_block: u64,
    to_block: u64,
    now: Timestamp,
) -> Result<usize, AppError> {
    let movements = store::movements::list_unsettled(tx, market_id, from_block, to_block).await?;
    end(tx, rounds(executed(&movements)), now).await
}

/// Returns the movements of trades. The others come from other callers of the contracts.
fn executed(movements: &[Movement]) -> impl Iterator<Item = (TradeId, Outcome<'_>)> {
    movements.iter().filter_map(|movement| Some((movement.trade_id?, Outcome::Executed(movement))))
}

/// Ends the trades of these events. Returns how many.
///
/// All trades of a round end together, whether they have succeeded or failed, so that the rows of their
/// keys and accounts are locked in the order of their ids. A second round is rare.
async fn end(tx: &mut Tx, rounds: Vec<Round<'_>>, now: Timestamp) -> Result<usize, AppError> {
    let mut ended = 0;
    for round in rounds {
        let mut moves = Vec::with_capacity(round.len());
        for (trade, outcome) in load(tx, round).await? {
            if let Some(transition) = transition_of(tx, &trade, outcome, now).await? {
                moves.push((trade, transition));
            }
        }
        ended += apply(tx, &moves).await?;
    }
    Ok(ended)
}

/// Returns the end of a trade. `None` if the event ends nothing.
async fn transition_of(
    tx: &mut Tx,
    trade: &Trade,
    outcome: Outcome<'_>,
    now: Timestamp,
) -> Result<Option<Transition>, AppError> {
    let transition = match outcome {
        Outcome::Executed(movement) => {
            let settlement = Settlement {
                tx_hash: movement.tx_hash,
                block_number: movement.block_number,
                usdc: movement.usdc,
                tokens: movement.tokens,
                fee: movement.fee,
            };
            Transition::complete(Status::Executing, settlement, now)
        }
        Outcome::Failed(failure) => {
            let Some(code) = failure_of(tx, trade, failure, now).await? else { return Ok(None) };
            let message = code.default_detail().to_owned();
            let failed = Failure { code, message, tx_hash: Some(failure.tx_hash) };
            Transition::fail(Status::Executing, failed, now)
        }
    };
    Ok(Some(transition.map_err(AppError::internal)?))
}

/// Events of different trades, in the order of the chain.
type Round<'e> = Vec<(TradeId, Outcome<'e>)>;

/// Divides events into rounds in which each trade occurs once, because a later event of a trade must
/// see the effect of an earlier one.
fn rounds<'e>(events: impl Iterator<Item = (TradeId, Outcome<'e>)>) -> Vec<Round<'e>> {
    let mut rounds: Vec<Round<'_>> = Vec::new();
    let mut counts: HashMap<TradeId, usize> = HashMap::new();
    for (id, event) in events {
        let earlier = counts.entry(id).or_default();
        match rounds.get_mut(*earlier) {
            Some(round) => round.push((id, event)),
            None => rounds.push(vec![(id, event)]),
        }
        *earlier += 1;
    }
    rounds
}

/// Loads the trades of these events, in order. Leaves out events of trades that are not known here.
async fn load<'e>(tx: &mut Tx, round: Round<'e>) -> Result<Vec<(Trade, Outcome<'e>)>, StoreError> {
    let ids: Vec<TradeId> = round.iter().map(|(id, _)| *id).collect();
    let trades = store::trades::find_all(tx, &ids).await?;
    let mut trades: HashMap<TradeId, Trade> = trades.into_iter().map(|trade| (trade.id, trade)).collect();
    Ok(round.into_iter().filter_map(|(id, event)| Some((trades.remove(&id)?, event))).collect())
}

/// Returns the reason of a trade's failure. `None` if the event ends nothing.
async fn failure_of(
    tx: &mut Tx,
    trade: &Trade,
    failure: &IntentFailure,
    now: Timestamp,
) -> Result<Option<ErrorCode>, AppError> {
    // A second event of a trade that has ended, e.g. a duplicate after its success, changes
    // nothing.
    if trade.state.status() != Status::Executing {
        return Ok(None);
    }
    Ok(match failure.reason.as_str() {
        // The trade was already given another nonce; the event is about the old one.
        DUPLICATE if is_superseded(trade, failure) => None,
        DUPLICATE if renewed(tx, trade, now).await? => None,
        DUPLICATE => Some(ErrorCode::RequestTimeout),
        reason => {
            Some(reason.parse::<Revert>().map_or(ErrorCode::InternalError, |revert| revert::code_of(&revert)))
        }
    })
}

/// Returns whether the trade has received another nonce since the intent of this event.
fn is_superseded(trade: &Trade, duplicate: &IntentFailure) -> bool {
    duplicate.nonce.is_some_and(|nonce| trade.nonce != Some(nonce))
}

/// Gives a trade another nonce, at most once and only before its deadline. Returns whether it did.
///
/// No event of the trade precedes its duplicate. So either another intent used the nonce, or the
/// nonce fell out of the Gate's window. In both cases the trade's own intent never ran and never
/// will.
async fn renewed(tx: &mut Tx, trade: &Trade, now: Timestamp) -> Result<bool, AppError> {
    match trade.nonce {
        Some(nonce) if trade.deadline > now => Ok(store::trades::renew(tx, trade.id, nonce, now).await?),
        _ => Ok(false),
    }
}

/// The stored failure reason of an intent whose nonce had been used before.
pub const DUPLICATE: &str = "duplicate";

async fn apply(tx: &mut Tx, moves: &[(Trade, Transition)]) -> Result<usize, AppError> {
    if moves.is_empty() {
        return Ok(0);
    }
    let moves: Vec<_> = moves.iter().map(|(trade, transition)| (trade, transition)).collect();
    let mut ended = 0;
    for ((trade, _), moved) in moves.iter().zip(store::trades::apply_all(tx, &moves).await?) {
        match moved {
            Moved::Moved => ended += 1,
            Moved::Stale { current } => {
                tracing::warn!(trade.id = %trade.id, %current, "the chain has decided a trade that is not executing");
            }
        }
    }
    Ok(ended)
}
