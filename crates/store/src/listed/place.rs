//! The list's row of one market.

use domain::Timestamp;
use domain::Usdc;
use domain::Wad;
use domain::ids::MarketId;
use domain::market::{MarketFilter, MarketStatus, payout_ppm, probability_ppm};

use crate::{Row, StoreError, Tx, params};

/// Where a market stands, with cancelled markets told apart by whether they still owe refunds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListStatus {
    /// Tradeable.
    Open,
    /// Not tradeable for the moment.
    Frozen,
    /// Its result stands.
    Resolved,
    /// Called off; refunds are still owed.
    Cancelled,
    /// Called off; every refund is paid.
    Refunded,
}

impl ListStatus {
    /// Every status.
    pub const ALL: [Self; 5] = [Self::Open, Self::Frozen, Self::Resolved, Self::Cancelled, Self::Refunded];

    /// The word of the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "OPEN",
            Self::Frozen => "FROZEN",
            Self::Resolved => "RESOLVED",
            Self::Cancelled => "CANCELLED",
            Self::Refunded => "REFUNDED",
        }
    }

    /// The statuses that a filter of the public API means.
    pub const fn of(filter: MarketFilter) -> &'static [Self] {
        match filter {
            MarketFilter::Active => &[Self::Open],
            MarketFilter::Paused => &[Self::Frozen],
            MarketFilter::Resolved => &[Self::Resolved],
            MarketFilter::Cancelled => &[Self::Cancelled, Self::Refunded],
            MarketFilter::Refunded => &[Self::Refunded],
            MarketFilter::All => &[Self::Open, Self::Resolved],
        }
    }
}

/// What markets are counted and listed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScopeKind {
    /// All of them.
    All,
    /// Those of a thread.
    Thread,
    /// Those of an organization.
    Organization,
    /// Those of a partner.
    Partner,
    /// Those of a chapter.
    Chapter,
    /// Those of a category.
    Category,
}

impl ScopeKind {
    /// The word of the store.
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

    /// Whether the accounts that take part in it are counted.
    pub const fn has_participants(self) -> bool {
        !matches!(self, Self::All | Self::Category)
    }
}

/// A kind and an id: one thread's markets, say. The id of all markets is empty.
pub type Scope = (ScopeKind, String);

/// What the list's row holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub status: ListStatus,
    category: Option<String>,
    thread_id: Option<String>,
    organization_id: Option<String>,
    partner_id: Option<String>,
    chapter_id: Option<String>,
    tags: String,
    title_key: String,
    probability_ppm: u32,
    pub volume: Usdc,
    end_time: Timestamp,
    resolved_at: Option<Timestamp>,
    created_at: Timestamp,
}

impl Place {
    /// What the market is counted in.
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

    /// The texts that it is found by.
    pub fn words(&self) -> crate::search::Texts {
        let tags = serde_json::from_str::<Vec<String>>(&self.tags).unwrap_or_default();
        crate::search::Texts { title: self.title_key.clone(), tags, category: self.category.clone() }
    }
}

/// The row as the market is now; `None` where there is no such market on chain.
pub async fn read(tx: &mut Tx, id: MarketId) -> Result<Option<Place>, StoreError> {
    const SQL: &str = "SELECT m.id, m.status, CASE WHEN m.status = 'CANCELLED' AND NOT EXISTS (SELECT 1 FROM positions p
        WHERE p.market_id = m.id AND p.tokens_wad <> '0' AND p.cost_basis_usdc_atomic > 0) THEN 1 ELSE 0 END,
        m.category, m.thread_id, m.organization_id, m.partner_id, m.chapter_id, m.tags, m.question, m.cost_wad,
        m.liquidity_usdc_atomic, o.quantity_wad, m.volume_usdc_atomic, m.end_time_ms, m.resolved_at_ms, m.created_at_ms,
        m.payouts FROM markets m JOIN outcomes o ON o.market_id = m.id AND o.outcome_index = 0
        WHERE m.id = $1 AND m.chain_market_id IS NOT NULL";
    tx.find(SQL, &params![id], |row| {
        let (cost, liquidity, quantity): (Wad, Usdc, Wad) = (row.parse(10)?, row.usdc(11)?, row.parse(12)?);
        Ok(Place {
            status: match row.parse(1)? {
                MarketStatus::Open => ListStatus::Open,
                MarketStatus::Frozen => ListStatus::Frozen,
                MarketStatus::Resolved => ListStatus::Resolved,
                MarketStatus::Cancelled if row.int(2)? == 1 => ListStatus::Refunded,
                MarketStatus::Cancelled => ListStatus::Cancelled,
            },
            category: row.opt_text(3)?,
            thread_id: row.opt_text(4)?,
            organization_id: row.opt_text(5)?,
            partner_id: row.opt_text(6)?,
            chapter_id: row.opt_text(7)?,
            tags: row.text(8)?,
            title_key: row.str(9)?.to_lowercase(),
            probability_ppm: match first_payout(row, 17)? {
                Some(payout) => payout_ppm(payout),
                None => probability_ppm(quantity, cost, liquidity),
            },
            volume: row.usdc(13)?,
            end_time: row.timestamp(14)?,
            resolved_at: row.opt_timestamp(15)?,
            created_at: row.timestamp(16)?,
        })
    })
    .await
}

/// What the first outcome of a settled market pays.
fn first_payout(row: &Row<'_>, column: usize) -> Result<Option<Wad>, StoreError> {
    if row.opt_str(column)?.is_none() {
        return Ok(None);
    }
    let payouts = row.texts(column)?;
    let first = payouts.first().map(|text| text.parse());
    first.transpose().map_err(|_| row.corrupt(column, "not a list of WAD"))
}

/// The row as it is.
pub async fn find(tx: &mut Tx, id: MarketId) -> Result<Option<Place>, StoreError> {
    const SQL: &str =
        "SELECT market_id, list_status, category, thread_id, organization_id, partner_id, chapter_id,
        tags, title_key, probability_ppm, volume_usdc_atomic, end_time_ms, resolved_at_ms, created_at_ms
        FROM listed_markets WHERE market_id = $1";
    tx.find(SQL, &params![id], from_row).await
}

fn from_row(row: &Row<'_>) -> Result<Place, StoreError> {
    let word = row.str(1)?;
    let status = ListStatus::ALL.into_iter().find(|status| status.as_str() == word);
    Ok(Place {
        status: status.ok_or_else(|| row.corrupt(1, "not a status of lists"))?,
        category: row.opt_text(2)?,
        thread_id: row.opt_text(3)?,
        organization_id: row.opt_text(4)?,
        partner_id: row.opt_text(5)?,
        chapter_id: row.opt_text(6)?,
        tags: row.text(7)?,
        title_key: row.text(8)?,
        probability_ppm: row.number(9)?,
        volume: row.usdc(10)?,
        end_time: row.timestamp(11)?,
        resolved_at: row.opt_timestamp(12)?,
        created_at: row.timestamp(13)?,
    })
}

/// Writes the row; the number of participants stays as it is.
pub async fn put(tx: &mut Tx, id: MarketId, p: &Place) -> Result<(), StoreError> {
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
        id,
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

/// Forgets the row.
pub async fn delete(tx: &mut Tx, id: MarketId) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM listed_markets WHERE market_id = $1";
    tx.exec(SQL, &params![id]).await.map(drop)
}
