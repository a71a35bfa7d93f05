//! Participants: accounts that have traded in a market, or in any market of a thread, organization,
//! partner or chapter.

use std::collections::BTreeMap;

use alloy_primitives::Address;
use domain::ids::MarketId;

use super::{Scope, add_participants, scopes_of};
use crate::{StoreError, Tx, params};

/// Adds (`true`) or removes participants of markets and their scopes.
pub async fn come_and_go(tx: &mut Tx, comings: &[(MarketId, Address, bool)]) -> Result<(), StoreError> {
    let mut scopes: BTreeMap<MarketId, Vec<Scope>> = BTreeMap::new();
    let mut of_markets: BTreeMap<MarketId, i64> = BTreeMap::new();
    let mut of_scopes: BTreeMap<Scope, i64> = BTreeMap::new();
    for (market_id, account, comes) in comings {
        *of_markets.entry(*market_id).or_default() += if *comes { 1 } else { -1 };
        if !scopes.contains_key(market_id) {
            scopes.insert(*market_id, scopes_of(tx, *market_id).await?);
        }
        let scopes = scopes.get(market_id).into_iter().flatten();
        for scope in scopes.filter(|(kind, _)| kind.has_participants()) {
            let change =
                if *comes { come(tx, scope, *account).await? } else { go(tx, scope, *account).await? };
            *of_scopes.entry(scope.clone()).or_default() += change;
        }
    }
    add_participants(tx, &of_markets, &of_scopes).await
}

async fn come(tx: &mut Tx, (kind, id): &Scope, account: Address) -> Result<i64, StoreError> {
    const SQL: &str = "INSERT INTO participants (scope, scope_id, account, markets) VALUES ($1, $2, $3, 1)
        ON CONFLICT (scope, scope_id, account) DO UPDATE SET markets = participants.markets + 1 RETURNING markets";
    let markets: Option<i64> = tx.find(SQL, &params![kind.as_str(), id, account], |row| row.only()).await?;
    // The account is new to the scope if this is its first market there.
    Ok(i64::from(markets == Some(1)))
}

async fn go(tx: &mut Tx, (kind, id): &Scope, account: Address) -> Result<i64, StoreError> {
    const SQL: &str =
        "UPDATE participants SET markets = markets - 1 WHERE scope = $1 AND scope_id = $2 AND account = $3
        RETURNING markets";
    const FORGET: &str = "DELETE FROM participants WHERE scope = $1 AND scope_id = $2 AND account = $3";
    let bound = params![kind.as_str(), id, account];
    match tx.find(SQL, &bound, |row| row.only::<i64>()).await? {
        Some(0) => tx.exec(FORGET, &bound).await.map(|_| -1),
        _ => Ok(0),
    }
}

/// Moves a market's participants from scopes to other scopes. Called before the market's list row
/// is updated.
pub async fn move_participants(
    tx: &mut Tx,
    market_id: MarketId,
    from: &[Scope],
    to: &[Scope],
) -> Result<(), StoreError> {
    const GO: &str = "UPDATE participants SET markets = markets - 1 WHERE scope = $1 AND scope_id = $2
        AND account IN (SELECT account FROM traders WHERE market_id = $3 AND trade_count > 0)";
    const GONE: &str = "DELETE FROM participants WHERE scope = $1 AND scope_id = $2 AND markets = 0";
    const NEW: &str =
        "SELECT COUNT(*) AS count FROM traders t WHERE t.market_id = $1 AND t.trade_count > 0 AND NOT EXISTS
        (SELECT 1 FROM participants p WHERE p.scope = $2 AND p.scope_id = $3 AND p.account = t.account)";
    const COME: &str = "INSERT INTO participants (scope, scope_id, account, markets)
        SELECT $1, $2, account, 1 FROM traders WHERE market_id = $3 AND trade_count > 0
        ON CONFLICT (scope, scope_id, account) DO UPDATE SET markets = participants.markets + 1";
    let mut changes: BTreeMap<Scope, i64> = BTreeMap::new();
    let counted = |scope: &&Scope| scope.0.has_participants();
    for scope in from.iter().filter(counted).filter(|scope| !to.contains(scope)) {
        // Only rows of this market's traders are decremented, but rows with zero markets never
        // remain, so the DELETE needs no filter by market.
        tx.exec(GO, &params![scope.0.as_str(), &scope.1, market_id]).await?;
        let gone = tx.exec(GONE, &params![scope.0.as_str(), &scope.1]).await?;
        changes.insert(scope.clone(), -i64::try_from(gone).unwrap_or(i64::MAX));
    }
    for scope in to.iter().filter(counted).filter(|scope| !from.contains(scope)) {
        let new = tx.find(NEW, &params![market_id, scope.0.as_str(), &scope.1], |row| row.only()).await?;
        tx.exec(COME, &params![scope.0.as_str(), &scope.1, market_id]).await?;
        changes.insert(scope.clone(), new.unwrap_or_default());
    }
    add_participants(tx, &BTreeMap::new(), &changes).await
}
