//! The list row of a market.

use std::borrow::Cow;

use domain::Timestamp;
use domain::Usdc;
use domain::Wad;
use domain::ids::MarketId;
use domain::market::{MarketStatus, payout_ppm, probability_ppm};

use crate::record::{Record, record};
use crate::{Cell, FromColumn, StoreError, Tx, params};

/// A market's status in lists. Unlike the status on chain, it distinguishes cancelled markets by
/// whether they still owe refunds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListStatus {
    /// Trading is possible.
    Open,
    /// Trading is paused.
    Frozen,
    /// The result is final.
    Resolved,
    /// Cancelled, with refunds still owed.
    Cancelled,
    /// Cancelled, with every refund paid.
    Refunded,
}

impl ListStatus {
    pub const ALL: [Self; 5] = [Self::Open, Self::Frozen, Self::Resolved, Self::Cancelled, Self::Refunded];

    /// The status as stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "OPEN",
            Self::Frozen => "FROZEN",
            Self::Resolved => "RESOLVED",
            Self::Cancelled => "CANCELLED",
            Self::Refunded => "REFUNDED",
        }
    }
}

impl FromColumn for ListStatus {
    fn from_column(cell: Cell<'_>) -> Result<Self, Cow<'static, str>> {
        let word = cell.text()?;
        let status = Self::ALL.into_iter().find(|status| status.as_str() == word);
        status.ok_or(Cow::Borrowed("not a status of lists"))
    }
}

/// The kind of a scope by which markets are counted and listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScopeKind {
    /// All markets.
    All,
    Thread,
    Organization,
    Partner,
    Chapter,
    Category,
}

impl ScopeKind {
    /// The kind as stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Thread => "thread",
            Self::Organization => "organization",
            Self::Partner => "partner",
            Self::Chapter => "chapter",
            Self::Category => "category",
        }
    }

    /// Reports whether the scope's participating accounts are counted.
    pub const fn has_participants(self) -> bool {
        !matches!(self, Self::All | Self::Category)
    }
}

/// A kind and an id, such as one thread's markets. The id of all markets is empty.
pub type Scope = (ScopeKind, String);

record! {
    /// The content of a list row.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Place {
        market_id: MarketId,
        pub status: ListStatus = "list_status",
        category: Option<String>,
        thread_id: Option<String>,
        organization_id: Option<String>,
        partner_id: Option<String>,
        chapter_id: Option<String>,
        tags: String,
        title_key: String,
        probability_ppm: u32,
        pub volume: Usdc = "volume_usdc_atomic",
        end_time: Timestamp = "end_time_ms",
        resolved_at: Option<Timestamp> = "resolved_at_ms",
        created_at: Timestamp = "created_at_ms",
    }
}

impl Place {
    /// The scopes in which the market is counted.
    pub fn scopes(&self) -> Vec<Scope> {
        let of = |kind, id: &Option<String>| id.clone().map(|id| (kind, id));
        let all = [
            Some((ScopeKind::All, String::new())),
            of(ScopeKind::Thread, &self.thread_id),
            of(ScopeKind::Organization, &self.organization_id),
            of(ScopeKind::Partner, &self.partner_id),
            of(ScopeKind::Chapter, &self.chapter_id),
            of(ScopeKind::Category, &self.category),
        ];
        all.into_iter().flatten().collect()
    }

    /// The texts by which search finds the market.
    pub fn words(&self) -> crate::search::Texts {
        let tags = serde_json::from_str::<Vec<String>>(&self.tags).unwrap_or_default();
        crate::search::Texts { title: self.title_key.clone(), tags, category: self.category.clone() }
    }
}

record! {
    /// The state of a market that its list row is computed from.
    struct Source {
        id: MarketId = "markets.id",
        status: MarketStatus = "markets.status",
        is_refunded: bool = IS_REFUNDED,
        category: Option<String> = "markets.category",
        thread_id: Option<String> = "markets.thread_id",
        organization_id: Option<String> = "markets.organization_id",
        partner_id: Option<String> = "markets.partner_id",
        chapter_id: Option<String> = "markets.chapter_id",
        tags: String = "markets.tags",
        question: String = "markets.question",
        cost: Wad = "markets.cost_wad",
        liquidity: Usdc = "markets.liquidity_usdc_atomic",
        /// The quantity of the first outcome.
        quantity: Wad = "o.quantity_wad",
        volume: Usdc = "markets.volume_usdc_atomic",
        end_time: Timestamp = "markets.end_time_ms",
        resolved_at: Option<Timestamp> = "markets.resolved_at_ms",
        created_at: Timestamp = "markets.created_at_ms",
        payouts: Option<Vec<Wad>> = "markets.payouts",
    }
}

/// A condition on rows of `markets`: the market is cancelled and no holder is owed a refund.
///
/// A token pays at most 1 USDC, so a position of at most 12 digits (less than a millionth of
/// a token) pays nothing.
pub const REFUNDS_PAID: &str = "markets.status = 'CANCELLED' AND NOT EXISTS (SELECT 1 FROM positions
    WHERE positions.market_id = markets.id AND LENGTH(positions.tokens_wad) > 12)";

const IS_REFUNDED: &str =
    const_format::concatcp!("CASE WHEN ", REFUNDS_PAID, " THEN 1 ELSE 0 END AS is_refunded");

impl From<Source> for Place {
    fn from(market: Source) -> Self {
        Self {
            market_id: market.id,
            status: match market.status {
                MarketStatus::Open => ListStatus::Open,
                MarketStatus::Frozen => ListStatus::Frozen,
                MarketStatus::Resolved => ListStatus::Resolved,
                MarketStatus::Cancelled if market.is_refunded => ListStatus::Refunded,
                MarketStatus::Cancelled => ListStatus::Cancelled,
            },
            category: market.category,
            thread_id: market.thread_id,
            organization_id: market.organization_id,
            partner_id: market.partner_id,
            chapter_id: market.chapter_id,
            tags: market.tags,
            // Compared by code points in both engines, so the case is folded here.
            title_key: market.question.to_lowercase(),
            probability_ppm: match market.payouts.as_ref().and_then(|payouts| payouts.first()) {
                Some(payout) => payout_ppm(*payout),
                None => probability_ppm(market.quantity, market.cost, market.liquidity),
            },
            volume: market.volume,
            end_time: market.end_time,
            resolved_at: market.resolved_at,
            created_at: market.created_at,
        }
    }
}

/// Computes the row from the market's current state. `None` if there is no such market on chain.
pub async fn read(tx: &mut Tx, id: MarketId) -> Result<Option<Place>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Source::COLUMNS,
        " FROM markets JOIN outcomes o ON o.market_id = markets.id AND o.outcome_index = 0
        WHERE markets.id = $1 AND markets.chain_market_id IS NOT NULL"
    );
    Ok(tx.find(SQL, &params![id], Source::from_row).await?.map(Place::from))
}

/// Returns the stored row.
pub async fn find(tx: &mut Tx, id: MarketId) -> Result<Option<Place>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("SELECT ", Place::COLUMNS, " FROM listed_markets WHERE market_id = $1");
    tx.find(SQL, &params![id], Place::from_row).await
}

/// Writes the row. The number of participants is unchanged.
pub async fn put(tx: &mut Tx, p: &Place) -> Result<(), StoreError> {
    // `participants` starts at 0 and is not updated here: it changes only by differences.
    const SQL: &str = "INSERT INTO listed_markets (market_id, list_status, category, thread_id, organization_id,
        partner_id, chapter_id, tags, title_key, probability_ppm, volume_usdc_atomic, participants, end_time_ms,
        resolved_at_ms, created_at_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, $12, $13, $14)
        ON CONFLICT (market_id) DO UPDATE SET list_status = excluded.list_status, category = excluded.category,
        thread_id = excluded.thread_id, organization_id = excluded.organization_id, partner_id = excluded.partner_id,
        chapter_id = excluded.chapter_id, tags = excluded.tags, title_key = excluded.title_key,
        probability_ppm = excluded.probability_ppm, volume_usdc_atomic = excluded.volume_usdc_atomic,
        end_time_ms = excluded.end_time_ms, resolved_at_ms = excluded.resolved_at_ms,
        created_at_ms = excluded.created_at_ms";
    let bound = params![
        p.market_id,
        p.status.as_str(),
        &p.category,
        &p.thread_id,
        &p.organization_id,
        &p.partner_id,
        &p.chapter_id,
        &p.tags,
        &p.title_key,
        p.probability_ppm,
        p.volume,
        p.end_time,
        p.resolved_at,
        p.created_at
    ];
    tx.exec(SQL, &bound).await.map(drop)
}

pub async fn delete(tx: &mut Tx, id: MarketId) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM listed_markets WHERE market_id = $1";
    tx.exec(SQL, &params![id]).await.map(drop)
}
