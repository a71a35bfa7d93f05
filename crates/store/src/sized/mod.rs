//! A database of a chosen size, for tests and benchmarks of the cost of lists and sums.
//!
//! Markets are written row by row. Trades and sums are written by statements over whole tables, so
//! that five million trades take minutes instead of hours. The derived rows equal those that the
//! service itself would write. Trades come in pairs, a buy of two tokens for 1 USDC and a sale of
//! one of them, so that positions follow from counts. Two of nine pairs are on market 0, the others
//! are spread over all markets. Only market 0 has candles.

mod markets;
mod sums;
mod trades;

use alloy_primitives::Address;
use domain::Timestamp;
use domain::ids::{MarketId, OrganizationId, PartnerId, ThreadId};

use crate::engine::dialect::sized as dialect;
use crate::{Store, StoreError, Tx};

/// The size of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Markets on chain. There is a thread for every fifty of them.
    pub markets: u32,
    /// Movements, half of them buys and half sales.
    pub trades: u32,
}

/// The time over which the trades are spread. The last one is made now.
const TRADED_MS: i64 = 60 * domain::time::DAY_MS;
/// Markets per thread.
const OF_THREAD: u32 = 50;
/// The common prefixes of ids.
const MARKETS: &str = "00000000-0000-7000-9000-";
const THREADS: &str = "00000000-0000-7000-a000-";
const ORGANIZATIONS: &str = "00000000-0000-7000-b000-";
const PARTNERS: &str = "00000000-0000-7000-c000-";
/// The number of organizations. Threads are assigned to them in turn.
const MOST_ORGANIZATIONS: u32 = 20;
/// Additional inactive partners of the first organization. They own nothing.
pub const FURTHER_PARTNERS: u32 = 230;
/// Additional chapters of the first thread. They have no markets.
pub const FURTHER_CHAPTERS: u32 = 60;
/// The number of featured markets, which are the first ones.
const MOST_FEATURED: u32 = 300;
/// The number of categories.
const CATEGORIES: u32 = 7;

impl Size {
    /// A hundred markets.
    pub const SMALL: Self = Self { markets: 100, trades: 1_000 };
    /// The size that lists and trading must handle.
    pub const WHOLE: Self = Self { markets: 100_000, trades: 5_000_000 };

    /// Divides both numbers by `parts`.
    #[must_use]
    pub const fn divided_by(self, parts: u32) -> Self {
        Self { markets: self.markets / parts, trades: self.trades / parts }
    }

    const fn threads(self) -> u32 {
        self.markets.div_ceil(OF_THREAD)
    }

    fn accounts(self) -> u32 {
        (self.markets / 10).max(50)
    }
}

/// The market with this number, from 0. Market 0 has more than a fifth of all trades.
pub fn market(number: u32) -> Option<MarketId> {
    format!("{MARKETS}{number:012}").parse().ok()
}

/// The thread with this number, from 0.
pub fn thread(number: u32) -> Option<ThreadId> {
    format!("{THREADS}{number:012}").parse().ok()
}

/// The organization with this number, from 0.
pub fn organization(number: u32) -> Option<OrganizationId> {
    format!("{ORGANIZATIONS}{number:012}").parse().ok()
}

/// The partner with this number, from 0. It belongs to the organization with the same number.
pub fn partner(number: u32) -> Option<PartnerId> {
    format!("{PARTNERS}{number:012}").parse().ok()
}

/// The account with this number, from 0.
pub fn account(number: u32) -> Address {
    Address::left_padding_from(&number.to_be_bytes())
}

/// Fills a migrated database, in addition to its existing rows.
///
/// # Errors
/// Errors of the database. A second call fails, because the ids are fixed.
pub async fn fill(store: &Store, size: Size, now: Timestamp) -> Result<(), StoreError> {
    markets::fill(store, size, now).await?;
    trades::fill(store, size, now).await?;
    sums::fill(store, now).await?;
    update_statistics(store).await
}

/// Updates the statistics, as PostgreSQL's autovacuum does after a minute. Without them PostgreSQL
/// chooses plans that no production database has.
///
/// # Errors
/// Errors of the database.
pub async fn update_statistics(store: &Store) -> Result<(), StoreError> {
    let statements = dialect::analyze(store.engine()).map(str::to_owned);
    run(store, statements.into_iter().collect()).await
}

/// Runs statements without parameters in one unit of work.
async fn run(store: &Store, statements: Vec<String>) -> Result<(), StoreError> {
    store
        .write(statements, |tx, statements| {
            Box::pin(async move {
                for sql in statements {
                    tx.batch(sql).await?;
                }
                Ok(())
            })
        })
        .await
}

/// Disables the checks of foreign keys, if they are slow. All references are to rows that were
/// written before.
async fn trust_references(tx: &mut Tx) -> Result<(), StoreError> {
    match dialect::without_reference_checks(tx.engine()) {
        Some(sql) => tx.batch(sql).await,
        None => Ok(()),
    }
}
