//! Changes of sums, collected from movements. Transfers change none of these sums. Holdings are in
//! [`crate::movements::put_positions`].

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::Address;
use domain::ids::MarketId;

use super::windows::{self, BUCKET_MS, Edges, InWindow};
use super::{backlog, leaderboard, lock};
use crate::movements::Movement;
use crate::{SqlValue, StoreError, Tx, listed, params};

/// A change of an account's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    pub trades: i64,
    /// USDC traded, in atomic units.
    pub volume: i64,
    /// Realized profit, in atomic units of USDC.
    pub realized: i64,
}

impl Figures {
    fn of(movement: &Movement, sign: i64) -> Self {
        let is_trade = movement.kind.is_trade();
        let volume = i64::try_from(movement.usdc.atomic()).unwrap_or(i64::MAX);
        Self {
            trades: if is_trade { sign } else { 0 },
            volume: if is_trade { sign * volume } else { 0 },
            realized: sign * movement.realized_pnl.0,
        }
    }

    /// Adds another change.
    pub const fn plus(self, other: Self) -> Self {
        Self {
            trades: self.trades + other.trades,
            volume: self.volume + other.volume,
            realized: self.realized + other.realized,
        }
    }

    pub const fn is_none(&self) -> bool {
        self.trades == 0 && self.volume == 0 && self.realized == 0
    }
}

/// An account's stored figures in a market.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Trader {
    figures: Figures,
    last_trade_ms: i64,
}

impl Trader {
    const fn takes_part(&self) -> bool {
        self.figures.trades > 0
    }

    const fn is_in(&self, start_ms: i64) -> bool {
        self.takes_part() && self.last_trade_ms >= start_ms
    }
}

/// The collected changes of a number of movements.
#[derive(Debug, Default)]
pub struct Deeds {
    /// The figures, and the time of the last added trade.
    of_traders: BTreeMap<(MarketId, Address), (Figures, i64)>,
    of_buckets: BTreeMap<(i64, MarketId), Figures>,
    of_spans: BTreeMap<(MarketId, i64, i64, Address), Figures>,
}

impl Deeds {
    /// Adds a movement.
    pub fn add(&mut self, movement: &Movement) {
        self.count(movement, 1);
    }

    /// Removes a movement, because its block was removed from the chain.
    pub fn take_back(&mut self, movement: &Movement) {
        self.count(movement, -1);
    }

    fn count(&mut self, movement: &Movement, sign: i64) {
        let figures = Figures::of(movement, sign);
        if figures.is_none() {
            return;
        }
        let at = movement.created_at.ms();
        let key = (movement.market_id, movement.account);
        let (sum, last) = self.of_traders.entry(key).or_default();
        *sum = sum.plus(figures);
        if figures.trades != 0 {
            // Removals leave the time as it is. `write_all` reads the last remaining trade instead.
            *last = if sign > 0 { at.max(*last) } else { *last };
            let bucket = self.of_buckets.entry((windows::bucket_of(at), movement.market_id)).or_default();
            *bucket = bucket.plus(figures);
        }
        for span in leaderboard::SPANS_MS {
            let start = at.div_euclid(span) * span;
            let key = (movement.market_id, span, start, movement.account);
            let sum = self.of_spans.entry(key).or_default();
            *sum = sum.plus(figures);
        }
    }

    /// Applies the changes to the sums. Removed movements must already be deleted from `movements`.
    /// Skips markets in the backlog, because their rebuild will count everything.
    pub async fn write(mut self, tx: &mut Tx) -> Result<(), StoreError> {
        self.pass_over_behind(tx).await?;
        self.write_all(tx).await
    }

    /// Like [`Self::write`], for the rebuild of a market in the backlog with all its movements.
    pub async fn write_all(self, tx: &mut Tx) -> Result<(), StoreError> {
        if self.of_traders.is_empty() {
            return Ok(());
        }
        let edges = lock(tx).await?;
        leaderboard::add(tx, &self.of_accounts()).await?;
        leaderboard::add_spans(tx, &self.of_spans_of_accounts(), &edges).await?;
        windows::add_buckets(tx, &self.of_buckets, &edges).await?;
        let mut in_windows = self.in_windows(&edges);
        let mut comings = Vec::new();
        let mut rows = Vec::new();
        for ((market_id, account), (figures, last)) in &self.of_traders {
            let old = find(tx, *market_id, *account).await?;
            let mut new =
                Trader { figures: old.figures.plus(*figures), last_trade_ms: old.last_trade_ms.max(*last) };
            // The last trade may have been removed, so find the one before it.
            if figures.trades < 0 {
                new.last_trade_ms = last_trade(tx, *market_id, *account).await?;
            }
            for (window_ms, start_ms) in &edges.0 {
                let change = i64::from(new.is_in(*start_ms)) - i64::from(old.is_in(*start_ms));
                in_windows.entry((*window_ms, *market_id)).or_default().unique_traders += change;
            }
            if new.takes_part() != old.takes_part() {
                comings.push((*market_id, *account, new.takes_part()));
            }
            rows.push((*market_id, *account, new));
        }
        put(tx, &rows).await?;
        listed::come_and_go(tx, &comings).await?;
        windows::add(tx, &in_windows).await
    }

    async fn pass_over_behind(&mut self, tx: &mut Tx) -> Result<(), StoreError> {
        let markets: BTreeSet<MarketId> = self.of_traders.keys().map(|(id, _)| *id).collect();
        let mut behind = BTreeSet::new();
        for id in markets {
            if backlog::is_behind(tx, id).await? {
                behind.insert(id);
            }
        }
        if !behind.is_empty() {
            self.of_traders.retain(|(id, _), _| !behind.contains(id));
            self.of_buckets.retain(|(_, id), _| !behind.contains(id));
            self.of_spans.retain(|(id, ..), _| !behind.contains(id));
        }
        Ok(())
    }

    fn of_accounts(&self) -> BTreeMap<Address, Figures> {
        let mut sums: BTreeMap<Address, Figures> = BTreeMap::new();
        for ((_, account), (figures, _)) in &self.of_traders {
            let sum = sums.entry(*account).or_default();
            *sum = sum.plus(*figures);
        }
        sums
    }

    fn of_spans_of_accounts(&self) -> BTreeMap<(i64, i64, Address), Figures> {
        let mut sums: BTreeMap<(i64, i64, Address), Figures> = BTreeMap::new();
        for ((_, span, start, account), figures) in &self.of_spans {
            let sum = sums.entry((*span, *start, *account)).or_default();
            *sum = sum.plus(*figures);
        }
        sums
    }

    fn in_windows(&self, edges: &Edges) -> BTreeMap<(i64, MarketId), InWindow> {
        let mut changes: BTreeMap<(i64, MarketId), InWindow> = BTreeMap::new();
        for ((start, market_id), figures) in &self.of_buckets {
            for (window_ms, _) in edges.0.iter().filter(|(_, edge)| start >= edge) {
                let change = changes.entry((*window_ms, *market_id)).or_default();
                change.trades += figures.trades;
                change.volume += figures.volume;
            }
        }
        changes
    }
}

// An hour must consist of whole buckets, so that windows and hours have common boundaries.
const _: () = assert!(leaderboard::SPANS_MS[0] % BUCKET_MS == 0);

async fn find(tx: &mut Tx, market_id: MarketId, account: Address) -> Result<Trader, StoreError> {
    const SQL: &str =
        "SELECT trade_count, volume_usdc_atomic, realized_pnl_usdc_atomic, last_trade_ms FROM traders
        WHERE market_id = $1 AND account = $2";
    let bound = params![market_id, account];
    let found = tx.find(SQL, &bound, |row| {
        let figures = Figures {
            trades: row.get("trade_count")?,
            volume: row.get("volume_usdc_atomic")?,
            realized: row.get("realized_pnl_usdc_atomic")?,
        };
        Ok(Trader { figures, last_trade_ms: row.get("last_trade_ms")? })
    });
    Ok(found.await?.unwrap_or_default())
}

async fn last_trade(tx: &mut Tx, market_id: MarketId, account: Address) -> Result<i64, StoreError> {
    const SQL: &str = "SELECT created_at_ms FROM movements WHERE account = $1 AND market_id = $2
        AND kind IN ('buy', 'sell') ORDER BY id DESC LIMIT 1";
    Ok(tx.find(SQL, &params![account, market_id], |row| row.only()).await?.unwrap_or_default())
}

async fn put(tx: &mut Tx, traders: &[(MarketId, Address, Trader)]) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO traders (market_id, account, trade_count, volume_usdc_atomic, realized_pnl_usdc_atomic,
        last_trade_ms) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (market_id, account) DO UPDATE SET
        trade_count = excluded.trade_count, volume_usdc_atomic = excluded.volume_usdc_atomic,
        realized_pnl_usdc_atomic = excluded.realized_pnl_usdc_atomic, last_trade_ms = excluded.last_trade_ms";
    const FORGET: &str = "DELETE FROM traders WHERE market_id = $1 AND account = $2";
    let (gone, kept): (Vec<_>, Vec<_>) =
        traders.iter().copied().partition(|(_, _, trader)| trader.figures.is_none());
    let rows: Vec<Vec<SqlValue<'_>>> = kept
        .into_iter()
        .map(|(id, account, trader)| {
            let Figures { trades, volume, realized } = trader.figures;
            params![id, account, trades, volume, realized, trader.last_trade_ms].to_vec()
        })
        .collect();
    tx.exec_each(SQL, &rows).await?;
    let rows: Vec<Vec<SqlValue<'_>>> =
        gone.into_iter().map(|(id, account, _)| params![id, account].to_vec()).collect();
    tx.exec_each(FORGET, &rows).await.map(drop)
}
