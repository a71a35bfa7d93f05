//! The unit of work that creates a group of trades.

use domain::trade::Transition;
use domain::{Usdc, limits};
use store::trades::{Group, load, take_keys, write};
use store::{StoreError, Tx};

use crate::AppError;
use crate::keys::stopped;
use crate::process::desk::{Refused, Submitted};
use crate::trades::funds::insufficient;

/// A unit whose changes are rolled back.
#[derive(Debug)]
pub(super) enum Undone {
    /// No request was accepted. These are the rejections.
    Rejected(Vec<Result<(), Refused>>),
    Store(StoreError),
}

impl From<StoreError> for Undone {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Whether a request runs without others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alone {
    /// Its idempotency key is taken by a statement of its own: if it stays locked, the request is
    /// in progress elsewhere.
    Yes,
    No,
}

/// Checks the requests in their order and creates the trades of those that are accepted. No two of
/// them may have the same idempotency key. Returns the outcome of each.
pub(super) async fn create_all(
    tx: &mut Tx,
    submitted: &[Submitted],
    alone: Alone,
) -> Result<Vec<Result<(), Refused>>, Undone> {
    let creations: Vec<_> = submitted.iter().map(|submitted| &submitted.creation).collect();
    let has_key = creations.iter().any(|creation| creation.idempotency.is_some());
    let taken = if alone == Alone::Yes && has_key {
        // First, so that a concurrent duplicate stops here, before it locks the rows that all
        // trades of the key use.
        match take_keys(tx, &creations).await {
            Ok(taken) => Some(taken),
            Err(StoreError::Locked(_)) => return Err(Undone::Rejected(vec![Err(Refused::InProgress)])),
            Err(error) => return Err(error.into()),
        }
    } else {
        None
    };
    let mut group = load(tx, &creations, taken).await?;
    let (mut outcomes, mut accepted, mut rejected) = (Vec::new(), Vec::new(), Vec::new());
    for submitted in submitted {
        let creation = &submitted.creation;
        let outcome = check(&group, submitted);
        if outcome.is_ok() {
            group.accept(&creation.trade)?;
            let created = Transition::created(&creation.trade.state, creation.trade.created_at);
            accepted.push((&creation.trade, created));
        } else {
            rejected.push(creation);
        }
        outcomes.push(outcome);
    }
    if accepted.is_empty() {
        return Err(Undone::Rejected(outcomes));
    }
    write(tx, group, &accepted, &rejected).await?;
    Ok(outcomes)
}

/// Checks a request against the rows of its group.
fn check(group: &Group, Submitted { creation, limits, spendable }: &Submitted) -> Result<(), Refused> {
    let trade = &creation.trade;
    // Before everything else: a replay must succeed even if the caps or the balance are used up.
    if !group.has_key(creation) || group.is_taken(trade) {
        return Err(Refused::Raced);
    }
    if trade.reserved > Usdc::ZERO {
        limits::check_daily(limits, group.spent(trade)?, trade.reserved).map_err(AppError::from)?;
        if creation.settled.is_some() && group.settled() != creation.settled {
            return Err(Refused::Settled);
        }
        let before = group.reserved(trade)?;
        if before.checked_add(trade.reserved).is_none_or(|needed| needed > *spendable) {
            return Err(insufficient(trade.reserved, *spendable, before).into());
        }
    }
    match group.stop(trade) {
        Some(stop) => Err(stopped(stop).into()),
        None => Ok(()),
    }
}
