//! A database of a chosen size, for tests and benchmarks of what lists and sums cost when there is much of everything.
//!
//! Markets are written row by row, trades and what is summed of them by statements over whole tables: five million trades
//! take minutes and not hours. Sums and list rows are made to be what the service itself would keep. Trades come in
//! pairs, a buy of two tokens for 1 USDC and a sale of one of them, so that positions follow from counts. Two pairs of
//! nine are made on market 0, all others go round. Of candles, market 0 alone has any.

mod markets;
mod sums;
mod trades;

use domain::Timestamp;
use domain::ids::{MarketId, OrganizationId, PartnerId, ThreadId};

use crate::{Engine, Store, StoreError, Tx};

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Markets on chain; a thread for each fifty of them.
    pub markets: u32,
    /// Movements, half of them buys and half sales.
    pub trades: u32,
}

/// Over how long the trades are spread: the last of them is made now.
const TRADED_MS: i64 = 60 * domain::time::DAY_MS;
/// Markets of a thread.
const OF_THREAD: u32 = 50;
/// What the ids of all these markets begin with.
const MARKETS: &str = "00000000-0000-7000-9000-";
const THREADS: &str = "00000000-0000-7000-a000-";
const ORGANIZATIONS: &str = "00000000-0000-7000-b000-";
const PARTNERS: &str = "00000000-0000-7000-c000-";
/// The most organizations: each has a thread in so many.
const MOST_ORGANIZATIONS: u32 = 20;
/// The partners that the first organization has beside its own one, none of them active; they own nothing.
pub const FURTHER_PARTNERS: u32 = 230;
/// The chapters that the first thread has beside its own one; they have no markets.
pub const FURTHER_CHAPTERS: u32 = 60;
/// The most markets that are featured: the first ones.
const MOST_FEATURED: u32 = 300;
/// Categories of markets.
const CATEGORIES: u32 = 7;

impl Size {
    /// A hundred markets.
    pub const SMALL: Self = Self { markets: 100, trades: 1_000 };
    /// What lists and trading must bear.
    pub const WHOLE: Self = Self { markets: 100_000, trades: 5_000_000 };

    /// So many times less of everything.
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

/// The partner with this number, from 0: the organization's of the same number.
pub fn partner(number: u32) -> Option<PartnerId> {
    format!("{PARTNERS}{number:012}").parse().ok()
}

/// The account with this number, from 0.
pub fn account(number: u32) -> String {
    format!("0x{number:040x}")
}

/// Fills a migrated database. What it held before stays.
///
/// # Errors
/// What the database refuses: it is filled once.
pub async fn fill(store: &Store, size: Size, now: Timestamp) -> Result<(), StoreError> {
    markets::fill(store, size, now).await?;
    trades::fill(store, size, now).await?;
    sums::fill(store, now).await?;
    if store.engine() == Engine::Postgres {
        run(store, vec!["ANALYZE".to_owned()]).await?;
    }
    Ok(())
}

/// Runs statements without parameters in one unit.
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

/// Keeps PostgreSQL from looking up every reference: what is written here refers to what was written before it.
async fn trust_references(tx: &mut Tx) -> Result<(), StoreError> {
    match tx.engine() {
        Engine::Sqlite => Ok(()),
        Engine::Postgres => tx.batch("SET LOCAL session_replication_role = replica").await,
    }
}

/// SQL for a number as so many digits.
fn digits(engine: Engine, number: &str, width: u32) -> String {
    match engine {
        Engine::Sqlite => format!("printf('%0{width}d', {number})"),
        Engine::Postgres => format!("LPAD(CAST({number} AS TEXT), {width}, '0')"),
    }
}

/// SQL for a number as so many hexadecimal digits behind `0x`.
fn hex(engine: Engine, number: &str, width: u32) -> String {
    match engine {
        Engine::Sqlite => format!("printf('0x%0{width}x', {number})"),
        Engine::Postgres => format!("'0x' || LPAD(TO_HEX({number}), {width}, '0')"),
    }
}
