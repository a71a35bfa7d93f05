//! Markets: created and changed on chain by the operator, and priced by the contracts. The
//! [ledger](crate::ledger) writes what the chain says of them.

mod create;
mod find;
mod funding;
mod history;
mod life;
mod price;
mod quote;

pub use create::{Created, NewMarket, check, check_odds, check_question, create, is_on_chain};
pub(crate) use create::{insert, row, wrong_terms};
pub use find::{CachedMarket, find, get, not_open, outcome_of, read};
pub use funding::{Funded, fund, funding_ceil};
pub use history::{MarketHistory, PoolState, Range, Span, history};
pub use life::{Cancelling, Move, cancel, cancel_reason, cancel_senders, make_move, proposal};
pub use price::{displayed_price, displayed_probability};
pub use quote::{Quote, QuoteRequest, quote, quote_usdc};

use alloy_primitives::B256;
use domain::ids::MarketId;

/// Returns a market's reference on chain: its id, padded with zeros on the left.
pub fn reference_of(id: MarketId) -> B256 {
    B256::left_padding_from(id.0.as_bytes())
}

/// Returns the market id in an on-chain reference. `None` for references that this service did not
/// create.
pub fn id_of(reference: B256) -> Option<MarketId> {
    let (padding, id) = reference.split_at(16);
    let id = uuid::Uuid::from_slice(id).ok()?;
    padding.iter().all(|byte| *byte == 0).then_some(MarketId(id))
}
