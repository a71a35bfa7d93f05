//! Totals over listed markets, updated by differences.

use std::collections::BTreeMap;

use domain::Usdc;

use super::place::{ListStatus, Place, Scope, ScopeKind};
use crate::record::{Record, record};
use crate::{SqlValue, StoreError, Tx, params};

record! {
    /// The totals of a scope.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Totals {
        /// The number of its markets on chain, of any status.
        pub markets: u64 = "COALESCE(open_markets + frozen_markets + resolved_markets + cancelled_markets + refunded_markets, 0) AS markets",
        /// USDC traded on them.
        pub volume: Usdc = "COALESCE(volume_usdc_atomic, 0) AS volume_usdc_atomic",
        /// The number of accounts that have traded on at least one of them.
        pub participants: u64 = "COALESCE(participants, 0) AS participants",
    }
}

/// A change of a scope's totals.
#[derive(Debug, Clone, Copy, Default)]
pub struct TotalsChange {
    markets: [i64; ListStatus::ALL.len()],
    volume: i64,
    participants: i64,
}

impl TotalsChange {
    /// A change of only the number of participants.
    pub const fn of_participants(participants: i64) -> Self {
        Self { markets: [0; ListStatus::ALL.len()], volume: 0, participants }
    }

    /// Removes a market with this list row.
    pub fn take(&mut self, place: &Place) {
        self.add(place, -1);
    }

    /// Adds a market with this list row.
    pub fn give(&mut self, place: &Place) {
        self.add(place, 1);
    }

    fn add(&mut self, place: &Place, sign: i64) {
        for (status, markets) in ListStatus::ALL.into_iter().zip(&mut self.markets) {
            *markets += if status == place.status { sign } else { 0 };
        }
        self.volume += sign * i64::try_from(place.volume.atomic()).unwrap_or(i64::MAX);
    }

    fn is_none(&self) -> bool {
        self.markets.iter().all(|markets| *markets == 0) && self.volume == 0 && self.participants == 0
    }
}

/// Applies changes to totals.
pub async fn add(tx: &mut Tx, changes: &BTreeMap<Scope, TotalsChange>) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO totals (scope, scope_id, open_markets, frozen_markets, resolved_markets,
        cancelled_markets, refunded_markets, volume_usdc_atomic, participants)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (scope, scope_id) DO UPDATE SET
        open_markets = totals.open_markets + excluded.open_markets,
        frozen_markets = totals.frozen_markets + excluded.frozen_markets,
        resolved_markets = totals.resolved_markets + excluded.resolved_markets,
        cancelled_markets = totals.cancelled_markets + excluded.cancelled_markets,
        refunded_markets = totals.refunded_markets + excluded.refunded_markets,
        volume_usdc_atomic = totals.volume_usdc_atomic + excluded.volume_usdc_atomic,
        participants = totals.participants + excluded.participants";
    let rows: Vec<Vec<SqlValue<'_>>> = changes
        .iter()
        .filter(|(_, change)| !change.is_none())
        .map(|((kind, id), c)| {
            let [open, frozen, resolved, cancelled, refunded] = c.markets;
            let scope = kind.as_str();
            params![scope, id, open, frozen, resolved, cancelled, refunded, c.volume, c.participants].to_vec()
        })
        .collect();
    tx.exec_each(SQL, &rows).await.map(drop)
}

/// Returns a scope's totals, zero if no market was ever counted in it.
pub async fn find_totals(tx: &mut Tx, kind: ScopeKind, id: &str) -> Result<Totals, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Totals::COLUMNS,
        " FROM totals WHERE scope = $1 AND scope_id = $2"
    );
    let bound = params![kind.as_str(), id];
    let found = tx.find(SQL, &bound, Totals::from_row);
    Ok(found.await?.unwrap_or_default())
}

/// Lists the categories that have open markets, those with the highest volume first, at most `limit`.
pub async fn list_categories(tx: &mut Tx, limit: u32) -> Result<Vec<String>, StoreError> {
    const SQL: &str = "SELECT scope_id FROM totals WHERE scope = 'category' AND open_markets > 0
        ORDER BY volume_usdc_atomic DESC, scope_id LIMIT $1";
    tx.list(SQL, &params![limit], |row| row.only()).await
}

/// Counts a scope's markets with one of these statuses.
pub(crate) async fn count(tx: &mut Tx, scope: &Scope, statuses: &[ListStatus]) -> Result<u64, StoreError> {
    const SQL: &str =
        "SELECT open_markets, frozen_markets, resolved_markets, cancelled_markets, refunded_markets
        FROM totals WHERE scope = $1 AND scope_id = $2";
    let counts: Option<[u64; 5]> = tx
        .find(SQL, &params![scope.0.as_str(), &scope.1], |row| {
            Ok([
                row.get("open_markets")?,
                row.get("frozen_markets")?,
                row.get("resolved_markets")?,
                row.get("cancelled_markets")?,
                row.get("refunded_markets")?,
            ])
        })
        .await?;
    let counts = ListStatus::ALL.into_iter().zip(counts.unwrap_or_default());
    Ok(counts.filter(|(status, _)| statuses.contains(status)).map(|(_, count)| count).sum())
}
