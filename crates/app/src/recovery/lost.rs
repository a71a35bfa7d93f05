//! Rebuilds lost trades from the transactions that carried them.

use std::collections::{BTreeMap, HashMap};

use alloy_primitives::{B256, U256};
use chain::{Intent, IntentSide};
use domain::ids::{CorrelationId, TradeId};
use domain::lane::assign;
use domain::trade::{AmountType, Side, State};
use domain::{Timestamp, Usdc, Wad};
use store::trades::Trade;
use store::{StoreError, Tx};

use crate::lost_data::Decision;
use crate::{AppError, Ctx};

/// A cache of the last transaction's intents. Trades of one batch are adjacent, so one transaction
/// is enough.
#[derive(Debug, Default)]
pub struct Carriers {
    last: Option<(B256, HashMap<TradeId, Intent>)>,
}

impl Carriers {
    /// Returns the intent that the decision is about.
    pub async fn intent_of(&mut self, ctx: &Ctx, decision: &Decision) -> Result<Option<Intent>, AppError> {
        if self.last.as_ref().is_none_or(|(hash, _)| *hash != decision.tx_hash) {
            let intents = ctx.chain.intents_of(decision.tx_hash).await?;
            let by_trade = intents.into_iter().map(|intent| (TradeId(intent.trade_id), intent)).collect();
            self.last = Some((decision.tx_hash, by_trade));
        }
        let intents = self.last.as_ref().map(|(_, intents)| intents);
        Ok(intents.and_then(|intents| intents.get(&decision.trade_id)).cloned())
    }
}

/// Rebuilds the trade in the state `executing`. `None` if the database lacks its user, key or
/// market.
pub async fn rebuild(
    tx: &mut Tx,
    decision: &Decision,
    intent: &Intent,
    chain_id: u64,
) -> Result<Option<Trade>, StoreError> {
    let account = decision.account;
    let Some(user_id) = store::users::find_by_address(tx, account).await? else { return Ok(None) };
    let Some(key_id) = store::keys::find_by_index(tx, user_id, intent.key_index).await? else {
        return Ok(None);
    };
    let market = store::markets::find_by_chain_id(tx, chain_id, intent.market_id).await?;
    let Some(market) = market else { return Ok(None) };
    let (side, amount_type, amount_text) = asked(intent);
    let intent_usdc = Usdc::from_atomic(intent.usdc_atomic);
    let created_at = created_at(decision);
    Ok(Some(Trade {
        id: decision.trade_id,
        user_id,
        key_id,
        lane: assign(intent.account, &store::lanes::list_assignable(tx).await?),
        account,
        market_id: market.id,
        outcome_index: intent.outcome,
        side,
        amount_text,
        amount_type,
        metadata: BTreeMap::new(),
        client_request_id: None,
        // The request is unknown, and no request has an empty fingerprint.
        request_hash: String::new(),
        correlation_id: CorrelationId::of(decision.trade_id),
        intent_side: intent.side as u8,
        intent_usdc,
        intent_tokens: Wad(U256::from(intent.tokens_wad)),
        max_slippage_bps: None,
        volume: intent_usdc,
        waiting_for: None,
        deadline: Timestamp::from_s(intent.deadline_s.into()),
        key_index: intent.key_index,
        nonce: Some(intent.nonce),
        batch_id: None,
        reserved: if intent.side.is_buy() { intent_usdc } else { Usdc::ZERO },
        state: State::Executing,
        held_until: None,
        created_at,
        updated_at: decision.at,
        ended_at: None,
        recovered_at: None,
        is_from_agent: false,
    }))
}

/// Returns the side, amount type and amount that a request for this intent would have. The amount
/// is formatted like a request's.
fn asked(intent: &Intent) -> (Side, AmountType, String) {
    let usdc = || decimal(intent.usdc_atomic.into());
    // WAD (1e-18) to millionths.
    let tokens = || decimal(intent.tokens_wad / 1_000_000_000_000);
    match intent.side {
        IntentSide::BuyForUsdc => (Side::Buy, AmountType::Usdc, usdc()),
        IntentSide::BuyTokens => (Side::Buy, AmountType::Tokens, tokens()),
        IntentSide::SellTokens => (Side::Sell, AmountType::Tokens, tokens()),
        IntentSide::SellForUsdc => (Side::Sell, AmountType::Usdc, usdc()),
        IntentSide::SellAll => (Side::Sell, AmountType::All, String::new()),
    }
}

/// Formats millionths as a decimal with two to six fraction digits.
fn decimal(millionths: u128) -> String {
    let (whole, rest) = (millionths / 1_000_000, millionths % 1_000_000);
    let rest = format!("{rest:06}");
    let digits = rest.trim_end_matches('0').len().max(2);
    format!("{whole}.{}", rest.get(..digits).unwrap_or(&rest))
}

/// Returns the creation time in the trade's id (a UUID version 7), if it is not after its block.
fn created_at(decision: &Decision) -> Timestamp {
    let named = decision.trade_id.0.get_timestamp().map(|time| {
        let (seconds, nanos) = time.to_unix();
        Timestamp::from_ms(i64::try_from(seconds * 1_000 + u64::from(nanos) / 1_000_000).unwrap_or(i64::MAX))
    });
    // Ignore an implausible id, whose time is after its block.
    named.filter(|named| *named <= decision.at.plus_ms(1_000)).unwrap_or(decision.at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_two_to_six_decimals() {
        let written: Vec<String> =
            [0, 1, 10_000, 1_500_000, 25_000_000, 12_345_678].into_iter().map(decimal).collect();
        assert_eq!(written, ["0.00", "0.000001", "0.01", "1.50", "25.00", "12.345678"]);
    }
}
