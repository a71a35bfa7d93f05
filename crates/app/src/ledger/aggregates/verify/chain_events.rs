//! Compares the movements with the chain's events.

use std::collections::{BTreeMap, HashMap};

use chain::EventKind;
use store::movements::Movement;

use super::{AggregatesVerification, Difference};
use crate::ledger::aggregates::PAGE;
use crate::{AppError, Ctx};

/// The number of blocks per request.
const BLOCKS: u64 = 2_000;

/// Checks that every event up to `last` that moved a position of a known market has its movement,
/// and that there are no other movements.
pub async fn compare(ctx: &Ctx, last: u64, verified: &mut AggregatesVerification) -> Result<(), AppError> {
    let numbers = numbers(ctx).await?;
    let mut from = 0;
    let mut after = String::new();
    let mut read: Vec<Movement> = Vec::new();
    while from <= last {
        let to = last.min(from + BLOCKS - 1);
        let mut said: BTreeMap<String, String> = BTreeMap::new();
        for event in ctx.chain.events(from, to).await? {
            let log_index = u32::try_from(event.log_index).unwrap_or(u32::MAX);
            if let Some(words) = words_of_event(&event.kind, &numbers) {
                let id = Movement::id_at(event.block_number, log_index);
                said.insert(id, format!("{} {words}", event.tx_hash));
            }
        }
        while read.last().is_none_or(|movement| movement.block_number <= to) {
            let page = ctx
                .store
                .read(after.clone(), |tx, after| Box::pin(store::movements::list_all(tx, after, PAGE)))
                .await;
            let page = page?;
            let Some(last) = page.last() else { break };
            after.clone_from(&last.id);
            read.extend(page);
        }
        let rest = read.split_off(read.partition_point(|movement| movement.block_number <= to));
        let kept = std::mem::replace(&mut read, rest).into_iter();
        let kept: BTreeMap<String, String> = kept
            .filter(|m| !m.is_further_part())
            .map(|m| (m.id.clone(), format!("{} {}", m.tx_hash, words_of_movement(&m))))
            .collect();
        let ids: std::collections::BTreeSet<&String> = said.keys().chain(kept.keys()).collect();
        for id in ids.into_iter().filter(|id| said.get(*id) != kept.get(*id)) {
            let text = |words: Option<&String>| words.cloned().unwrap_or_default();
            verified.differences.push(Difference {
                what: format!("movement {id}"),
                kept: text(kept.get(id)),
                computed: text(said.get(id)),
            });
        }
        from = to + 1;
    }
    Ok(())
}

/// Returns the ids of this service's markets by their numbers on chain.
async fn numbers(ctx: &Ctx) -> Result<HashMap<u64, String>, AppError> {
    let chain_id = ctx.chain.chain_id();
    let numbers = ctx
        .store
        .read(chain_id, |tx, chain_id| Box::pin(store::markets::list_numbers(tx, *chain_id)))
        .await?;
    Ok(numbers.into_iter().map(|(number, id)| (number, id.to_string())).collect())
}

fn words_of_event(kind: &EventKind, markets: &HashMap<u64, String>) -> Option<String> {
    Some(match kind {
        EventKind::Trade {
            account,
            market_id,
            outcome,
            side,
            usdc_atomic,
            tokens_wad,
            fee_atomic,
            cost_wad,
            quantity_wad,
            ..
        } => {
            let (word, market) = (if side.is_buy() { "buy" } else { "sell" }, markets.get(market_id)?);
            format!(
                "{word} {market} {outcome} {account:#x} {usdc_atomic} {tokens_wad} {fee_atomic} {cost_wad} {quantity_wad}"
            )
        }
        EventKind::SetsMoved { account, market_id, is_split, usdc_atomic, cost_wad } => {
            let (word, market) = (if *is_split { "split" } else { "merge" }, markets.get(market_id)?);
            let tokens = domain::Wad::from_amount(domain::Usdc::from_atomic(*usdc_atomic));
            format!("{word} {market} 0 {account:#x} {tokens} {cost_wad}")
        }
        EventKind::Redeemed { account, market_id, outcome, tokens_wad, usdc_atomic } => {
            let market = markets.get(market_id)?;
            format!("redeem {market} {outcome} {account:#x} {usdc_atomic} {tokens_wad}")
        }
        EventKind::Transfer { sender, receiver, market_id, outcome, tokens_wad } if *tokens_wad > 0 => {
            let market = markets.get(market_id)?;
            format!("transfer {market} {outcome} {sender:#x} {receiver:#x} {tokens_wad}")
        }
        _ => return None,
    })
}

fn words_of_movement(m: &Movement) -> String {
    let place = format!("{} {} {} {:#x}", m.kind, m.market_id, m.outcome_index, m.account);
    match (m.cost, m.quantity, m.counterparty) {
        // The movement's USDC is only the first outcome's share, while the event has the total.
        (Some(cost), ..) if m.kind.moves_sets() => format!("{place} {} {cost}", m.tokens),
        (Some(cost), Some(quantity), _) => {
            format!("{place} {} {} {} {cost} {quantity}", m.usdc.atomic(), m.tokens, m.fee.atomic())
        }
        (_, _, Some(receiver)) => format!("{place} {receiver:#x} {}", m.tokens),
        _ => format!("{place} {} {}", m.usdc.atomic(), m.tokens),
    }
}
