//! A market's listing: its description and its place in the catalog, which can change at any time.
//! Its terms are fixed on chain.

use domain::ids::{MarketId, OrganizationId, PartnerId, ThreadId};
use serde::Serialize;

use crate::record::{Record, record};
use crate::{StoreError, Tx, params};

record! {
    /// A market's listing.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "camelCase")]
    pub struct Listing {
        pub market_id: MarketId = "id",
        /// Markdown.
        pub description: Option<String>,
        /// A category such as `sports`.
        pub category: Option<String>,
        /// Free-form tags.
        pub tags: Vec<String>,
        pub thread_id: Option<ThreadId>,
        pub organization_id: Option<OrganizationId>,
        pub partner_id: Option<PartnerId>,
        /// The chapter, within the market's thread.
        pub chapter_id: Option<String>,
        /// The URL of the post that the market was created from.
        pub source_url: Option<String>,
        /// The position among the featured markets, in ascending order. `None` if it is not featured.
        pub featured_position: Option<u32>,
    }
}

/// Returns the ids and questions of all markets of a thread, except cancelled ones.
pub async fn questions_in(tx: &mut Tx, thread_id: ThreadId) -> Result<Vec<(MarketId, String)>, StoreError> {
    const SQL: &str =
        "SELECT id, question FROM markets WHERE thread_id = $1 AND status <> 'CANCELLED' ORDER BY id";
    tx.list(SQL, &params![thread_id], |row| Ok((row.get("id")?, row.get("question")?))).await
}

/// Locks a market's row and returns its listing.
pub async fn lock_listing(tx: &mut Tx, id: MarketId) -> Result<Option<Listing>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "UPDATE markets SET category = category WHERE id = $1 RETURNING ",
        Listing::COLUMNS
    );
    // Before the market's row: all changes of the catalog that move sums take this lock first.
    crate::traders::lock(tx).await?;
    tx.find(SQL, &params![id], Listing::from_row).await
}

/// Updates the listing of a locked market.
pub async fn put_listing(tx: &mut Tx, l: &Listing) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE markets SET description = $1, category = $2, tags = $3, thread_id = $4,
        organization_id = $5, partner_id = $6, chapter_id = $7, source_url = $8, featured_position = $9
        WHERE id = $10";
    let tags = serde_json::to_string(&l.tags).map_err(|error| StoreError::unwritable(&error))?;
    let bound = params![
        l.description.as_deref(),
        l.category.as_deref(),
        tags,
        l.thread_id,
        l.organization_id,
        l.partner_id,
        l.chapter_id.as_deref(),
        l.source_url.as_deref(),
        l.featured_position,
        l.market_id
    ];
    tx.mark_markets_changed();
    tx.exec(SQL, &bound).await?;
    // The listing's category and owner are part of the derived rows that lists and searches read.
    crate::listed::refresh(tx, l.market_id).await
}

/// Returns a market's organization and partner, and those of its thread, if they differ. Used by
/// verification.
pub async fn misfiled(tx: &mut Tx, id: MarketId) -> Result<Option<(String, String)>, StoreError> {
    const SQL: &str = "SELECT m.organization_id, m.partner_id, t.organization_id AS thread_organization_id,
        t.partner_id AS thread_partner_id FROM markets m
        JOIN threads t ON t.id = m.thread_id WHERE m.id = $1";
    type Owners = (Option<String>, Option<String>);
    let found: Option<(Owners, Owners)> = tx
        .find(SQL, &params![id], |row| {
            let of_market = (row.get("organization_id")?, row.get("partner_id")?);
            Ok((of_market, (row.get("thread_organization_id")?, row.get("thread_partner_id")?)))
        })
        .await?;
    let differ = found.filter(|(of_market, of_thread)| of_market != of_thread);
    Ok(differ.map(|(of_market, of_thread)| (format!("{of_market:?}"), format!("{of_thread:?}"))))
}
