//! Markets: made and moved on chain by the operator, followed by the sync, quoted by the contracts.

mod apply;
mod candles;
mod create;
mod find;
mod funding;
mod history;
mod life;
mod on_chain;
mod quote;
mod reading;
mod rebuild;
mod reconcile;
mod repair;
mod reread;
mod sync;

pub(crate) use apply::Positions;
pub use create::{NewMarket, check, check_odds, create};
pub(crate) use create::{insert, row, wrong_terms};
pub use find::{Rows, find, get, outcome_of, read};
pub use funding::{Funded, fund, funding_ceil};
pub use history::{History, PoolState, Range, Span, history};
pub use life::{InvalidState, cancel, cancel_reason, finalize, freeze, open, resolve, unfreeze};
pub use quote::{Action, Quote, quote, quote_usdc};
pub use rebuild::rebuild;
pub(crate) use reconcile::compare_with_chain;
pub use reconcile::{Reconciler, quarantine_drifted, reconcile_all};
pub use repair::{Repaired, repair};
pub use reread::{AcceptReorganization, Reread, reread, reread_block};
pub use sync::{Sync, last_read_block};

use alloy_primitives::B256;
use domain::ids::MarketId;

/// A market's name on chain: its id, right-aligned.
pub fn reference_of(id: MarketId) -> B256 {
    B256::left_padding_from(id.0.as_bytes())
}

/// The market that a reference on chain names; `None` for references that were not made here.
pub fn id_of(reference: B256) -> Option<MarketId> {
    let (padding, id) = reference.split_at(16);
    let id = uuid::Uuid::from_slice(id).ok()?;
    padding.iter().all(|byte| *byte == 0).then_some(MarketId(id))
}
