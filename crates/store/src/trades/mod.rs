//! Trades: the row, its creation, its status changes, and the lists.
//!
//! The USDC of an open trade is counted in two places: in the key's spending of the last 24 hours
//! (buys only) and in the account's reservation. `reserved_usdc_atomic` is the trade's share of the
//! first. The second is released when the trade ends.

mod create;
mod elsewhere;
mod group;
mod handover;
mod holds;
mod list;
mod moves;
mod queue;
mod recovered;
mod row;
mod spend;
mod trace;

pub use create::{Reuse, delete_expired_idempotency, find_by_client_request, find_reuse};
pub use elsewhere::{Elsewhere, list_elsewhere, list_open_accounts};
pub use group::{Creation, Group, Idempotency, load, take_keys, write};
pub use handover::hand_over;
pub use holds::{count_held, hold, put_volume, sum_signed};
pub use list::{TradeListFilter, find, find_all, find_any, list};
pub use moves::{
    Moved, apply, apply_all, assign_intent, clear_batch, count_open, enqueue_confirmed,
    find_oldest_executing, leave_batch, list_oldest_open, list_stuck, list_unbatched, list_unconfirmed,
    put_renewed_nonce, renew, set_batch, trace_batch,
};
pub use queue::{ClaimedTrades, LOOK_AHEAD, claim_pending, has_work, list_unclaimed, list_validating};
pub use recovered::{insert_recovered, list_statuses, reopen};
pub use row::{StatusHistory, Trade, history};
pub use trace::{Traced, append_trace, find_traced, list_trace, lock};
