//! Derived rows for lists of markets: a narrow row for each market on chain, and totals over such
//! rows.
//!
//! The row is a copy. Every change of a market's row must call [`refresh`] in the same transaction.
//! It reads the market, writes the copy, and updates totals, search words and participants by the
//! difference. An extra call changes nothing. Reading the old copy is only safe under
//! `traders::lock`, because another transaction may be rebuilding all copies.

mod participants;
mod place;
mod totals;

use std::collections::BTreeMap;

use domain::ids::MarketId;

use crate::{SqlValue, StoreError, Tx, params, search};
pub(crate) use participants::come_and_go;
use place::Place;
pub use place::{ListStatus, REFUNDS_PAID, Scope, ScopeKind};
use totals::TotalsChange;
pub(crate) use totals::count;
pub use totals::{Totals, find_totals, list_categories};

/// Updates the list row of a market from its current row. The caller must hold `traders::lock`.
pub async fn refresh(tx: &mut Tx, id: MarketId) -> Result<(), StoreError> {
    let new = place::read(tx, id).await?;
    let old = place::find(tx, id).await?;
    if new == old {
        return Ok(());
    }
    let of = |place: &Option<Place>| place.as_ref().map_or_else(Vec::new, Place::scopes);
    let (from, to) = (of(&old), of(&new));
    if old.is_some() && from != to {
        participants::move_participants(tx, id, &from, &to).await?;
    }
    let mut changes: BTreeMap<Scope, TotalsChange> = BTreeMap::new();
    if let Some(old) = &old {
        from.into_iter().for_each(|scope| changes.entry(scope).or_default().take(old));
    }
    if let Some(new) = &new {
        to.into_iter().for_each(|scope| changes.entry(scope).or_default().give(new));
    }
    totals::add(tx, &changes).await?;
    let words = |place: &Option<Place>| place.as_ref().map(Place::words);
    // Most calls follow a trade, which changes no words.
    if words(&old) != words(&new) {
        search::put(tx, search::SearchKind::Market, &id.to_string(), &words(&new).unwrap_or_default())
            .await?;
    }
    match &new {
        Some(new) => place::put(tx, new).await,
        None => place::delete(tx, id).await,
    }
}

/// Compares a market's list row and search words with the market. Returns the stored and the
/// expected content if they differ. Used by verification.
pub(crate) async fn compare(tx: &mut Tx, id: MarketId) -> Result<Option<(String, String)>, StoreError> {
    let new = place::read(tx, id).await?;
    let old = place::find(tx, id).await?;
    if new != old {
        return Ok(Some((format!("{old:?}"), format!("{new:?}"))));
    }
    let expected = new.as_ref().map(Place::words).unwrap_or_default().weights();
    let words = search::find(tx, search::SearchKind::Market, &id.to_string()).await?;
    Ok((words != expected).then(|| (format!("{words:?}"), format!("{expected:?}"))))
}

/// Returns a listed market's status, traded USDC and scopes.
pub async fn counted_as(
    tx: &mut Tx,
    id: MarketId,
) -> Result<Option<(ListStatus, domain::Usdc, Vec<Scope>)>, StoreError> {
    let place = place::find(tx, id).await?;
    Ok(place.map(|place| (place.status, place.volume, place.scopes())))
}

/// Calls [`refresh`] for all markets of a thread.
pub async fn refresh_thread(tx: &mut Tx, thread_id: domain::ids::ThreadId) -> Result<(), StoreError> {
    const SQL: &str = "SELECT id FROM markets WHERE thread_id = $1 ORDER BY id";
    let ids: Vec<MarketId> = tx.list(SQL, &params![thread_id], |row| row.only()).await?;
    for id in ids {
        refresh(tx, id).await?;
    }
    Ok(())
}

/// The scopes in which a market is counted. Empty if it is not listed.
async fn scopes_of(tx: &mut Tx, id: MarketId) -> Result<Vec<Scope>, StoreError> {
    Ok(place::find(tx, id).await?.as_ref().map_or_else(Vec::new, Place::scopes))
}

/// Adds to the numbers of participants of markets and scopes.
async fn add_participants(
    tx: &mut Tx,
    of_markets: &BTreeMap<MarketId, i64>,
    of_scopes: &BTreeMap<Scope, i64>,
) -> Result<(), StoreError> {
    const MARKET: &str = "UPDATE listed_markets SET participants = participants + $1 WHERE market_id = $2";
    let rows: Vec<Vec<SqlValue<'_>>> = of_markets
        .iter()
        .filter(|(_, change)| **change != 0)
        .map(|(id, change)| params![*change, *id].to_vec())
        .collect();
    tx.exec_each(MARKET, &rows).await?;
    let participants =
        |(scope, change): (&Scope, &i64)| (scope.clone(), TotalsChange::of_participants(*change));
    totals::add(tx, &of_scopes.iter().map(participants).collect()).await
}
