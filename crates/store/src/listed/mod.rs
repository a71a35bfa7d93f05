//! Markets as lists know them: a narrow row for each market on chain, and the sums over such rows.
//!
//! The row is a copy. Whatever changes a market's row says so with [`refresh`] in the same transaction: it reads the market
//! as it is now, writes the copy, and moves the sums, the search's words and the participants by the difference. A call too
//! many changes nothing. What the copy was is only known once [`traders::lock`] is taken: another transaction may be about to
//! forget all of them.

mod place;
mod totals;

use std::collections::BTreeMap;

use domain::ids::MarketId;

use crate::{StoreError, Tx, Value, params, search, traders};
use place::Place;
pub use place::{ListStatus, Scope, ScopeKind};
use totals::Change;
pub(crate) use totals::count;
pub use totals::{Totals, find_totals};

/// Writes the list's row of a market as its row is now. The transaction has taken [`traders::lock`].
pub async fn refresh(tx: &mut Tx, id: MarketId) -> Result<(), StoreError> {
    let new = place::read(tx, id).await?;
    let old = place::find(tx, id).await?;
    if new == old {
        return Ok(());
    }
    let of = |place: &Option<Place>| place.as_ref().map_or_else(Vec::new, Place::scopes);
    let (from, to) = (of(&old), of(&new));
    if old.is_some() && from != to {
        traders::move_participants(tx, id, &from, &to).await?;
    }
    let mut changes: BTreeMap<Scope, Change> = BTreeMap::new();
    if let Some(old) = &old {
        from.into_iter().for_each(|scope| changes.entry(scope).or_default().take(old));
    }
    if let Some(new) = &new {
        to.into_iter().for_each(|scope| changes.entry(scope).or_default().give(new));
    }
    totals::add(tx, &changes).await?;
    let words = |place: &Option<Place>| place.as_ref().map(Place::words);
    if words(&old) != words(&new) {
        search::put(tx, search::Kind::Market, &id.to_string(), &words(&new).unwrap_or_default()).await?;
    }
    match &new {
        Some(new) => place::put(tx, id, new).await,
        None => place::delete(tx, id).await,
    }
}

/// Where the list's row of a market differs from the market: what the list has, and what it should have. The search's words
/// are compared too.
pub(crate) async fn compare(tx: &mut Tx, id: MarketId) -> Result<Option<(String, String)>, StoreError> {
    let new = place::read(tx, id).await?;
    let old = place::find(tx, id).await?;
    if new != old {
        return Ok(Some((format!("{old:?}"), format!("{new:?}"))));
    }
    let expected = new.as_ref().map(Place::words).unwrap_or_default().weights();
    let words = search::find(tx, search::Kind::Market, &id.to_string()).await?;
    Ok((words != expected).then(|| (format!("{words:?}"), format!("{expected:?}"))))
}

/// A listed market's status, USDC traded and scopes.
pub async fn counted_as(
    tx: &mut Tx,
    id: MarketId,
) -> Result<Option<(ListStatus, domain::Usdc, Vec<Scope>)>, StoreError> {
    let place = place::find(tx, id).await?;
    Ok(place.map(|place| (place.status, place.volume, place.scopes())))
}

/// As [`refresh`], of all markets of a thread.
pub async fn refresh_thread(tx: &mut Tx, thread_id: domain::ids::ThreadId) -> Result<(), StoreError> {
    const SQL: &str = "SELECT id FROM markets WHERE thread_id = $1 ORDER BY id";
    let ids: Vec<MarketId> = tx.list(SQL, &params![thread_id], |row| row.parse(0)).await?;
    for id in ids {
        refresh(tx, id).await?;
    }
    Ok(())
}

/// The scopes that a market is counted in; none for a market that is not listed.
pub(crate) async fn scopes_of(tx: &mut Tx, id: MarketId) -> Result<Vec<Scope>, StoreError> {
    Ok(place::find(tx, id).await?.as_ref().map_or_else(Vec::new, Place::scopes))
}

/// Adds to the numbers of participants of a market and of scopes.
pub(crate) async fn add_participants(
    tx: &mut Tx,
    of_markets: &BTreeMap<MarketId, i64>,
    of_scopes: &BTreeMap<Scope, i64>,
) -> Result<(), StoreError> {
    const MARKET: &str = "UPDATE listed_markets SET participants = participants + $1 WHERE market_id = $2";
    let rows: Vec<Vec<Value<'_>>> = of_markets
        .iter()
        .filter(|(_, change)| **change != 0)
        .map(|(id, change)| params![*change, *id].to_vec())
        .collect();
    tx.exec_each(MARKET, &rows).await?;
    let participants = |(scope, change): (&Scope, &i64)| (scope.clone(), Change::of_participants(*change));
    totals::add(tx, &of_scopes.iter().map(participants).collect()).await
}
