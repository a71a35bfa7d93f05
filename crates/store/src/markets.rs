//! Markets and their outcomes, with the last known state on chain.

use std::cmp::Reverse;
use std::collections::HashMap;

use alloy_primitives::{Address, B256, U256};
use domain::ids::{MarketId, OrganizationId, PartnerId, ThreadId};
use domain::market::MarketStatus;
use domain::page::Page;
use domain::{Timestamp, Usdc, Wad};

use crate::bind::position_or_end;
use crate::record::{Record, record};
use crate::{SqlValue, StoreError, Tx, listed, params, redemptions};

record! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Market {
        pub id: MarketId,
        /// The id of the market's chain.
        pub chain_id: u64,
        /// The hub's address.
        pub contract_address: Address,
        /// The market's number on the hub. `None` until it is created on chain.
        pub chain_market_id: Option<u64>,
        pub question: String,
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
        pub status: MarketStatus,
        /// The fee in basis points.
        pub fee_bps: u16,
        /// The market maker's `b`.
        pub liquidity: Usdc = "liquidity_usdc_atomic",
        /// The market maker's cost at the opening, in WAD.
        pub opening_cost: Wad = "opening_cost_wad",
        /// The market maker's cost, in WAD.
        pub cost: Wad = "cost_wad",
        /// USDC traded.
        pub volume: Usdc = "volume_usdc_atomic",
        /// The number of trades.
        pub trade_count: u64,
        /// The payout per token of each outcome, in WAD, once settled.
        pub payouts: Option<Vec<Wad>>,
        /// The transaction that settled the market.
        pub resolution_tx_hash: Option<B256>,
        /// The source of the result.
        pub resolution_source: Option<String>,
        /// The time at which trading ends.
        pub end_time: Timestamp = "end_time_ms",
        /// The time since which trading is frozen.
        pub frozen_at: Option<Timestamp> = "frozen_at_ms",
        /// The time of the settlement.
        pub resolved_at: Option<Timestamp> = "resolved_at_ms",
        /// The block up to which this row is current.
        pub as_of_block: u64,
        /// That block's time.
        pub as_of: Timestamp = "as_of_ms",
        pub created_at: Timestamp = "created_at_ms",
        /// The position among the featured markets, in ascending order. `None` if it is not featured.
        pub featured_position: Option<u32>,
        /// The time since which the market's events cannot be applied. It is not tradable until it is
        /// repaired.
        pub quarantined_at: Option<Timestamp> = "quarantined_at_ms",
    }
}

record! {
    /// An outcome of a market.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Outcome {
        pub market_id: MarketId,
        /// The position, from 0.
        pub index: u8 = "outcome_index",
        pub label: String,
        /// The market maker's quantity at the opening, in WAD.
        pub opening: Wad = "opening_wad",
        /// The market maker's current quantity, in WAD.
        pub quantity: Wad = "quantity_wad",
        /// USDC traded on this outcome.
        pub volume: Usdc = "volume_usdc_atomic",
        /// The number of trades on this outcome.
        pub trade_count: u64,
    }
}

impl Outcome {
    /// The tokens held by all holders, in WAD.
    pub fn supply(&self) -> Wad {
        self.quantity.checked_sub(self.opening).unwrap_or_default()
    }
}

impl Market {
    /// The status at `now` by the rules of the contracts: an open market past its end time no
    /// longer trades, even if the stored status is not updated yet.
    pub fn status_at(&self, now: Timestamp) -> MarketStatus {
        if self.status == MarketStatus::Open && self.end_time <= now {
            MarketStatus::Frozen
        } else {
            self.status
        }
    }

    /// The token's id on chain: the market's number shifted left by eight bits, plus the outcome.
    pub fn token_id(&self, outcome_index: u8) -> Option<U256> {
        self.chain_market_id.map(|id| (U256::from(id) << 8) | U256::from(outcome_index))
    }
}

/// Inserts a market that is about to be created on chain. The outcomes' quantities are set later,
/// from the chain's event.
pub async fn insert(tx: &mut Tx, market: &Market, labels: &[String]) -> Result<(), StoreError> {
    const MARKET: &str = "INSERT INTO markets (id, chain_id, contract_address, question, description, category, tags,
        thread_id, organization_id, partner_id, chapter_id, source_url, status, fee_bps, liquidity_usdc_atomic,
        opening_cost_wad, cost_wad, volume_usdc_atomic, trade_count, end_time_ms, as_of_block, as_of_ms, created_at_ms,
        featured_position)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $16, 0, 0, $17, $18, $19, $20, $21)";
    const OUTCOME: &str = "INSERT INTO outcomes (market_id, outcome_index, label, opening_wad, quantity_wad,
        volume_usdc_atomic, trade_count) VALUES ($1, $2, $3, '0', '0', 0, 0)";
    tx.mark_market_changed(market.id);
    let tags = serde_json::to_string(&market.tags).map_err(|error| StoreError::unwritable(&error))?;
    let bound = params![
        market.id,
        SqlValue::try_from(market.chain_id)?,
        market.contract_address,
        &market.question,
        market.description.as_deref(),
        market.category.as_deref(),
        tags,
        market.thread_id,
        market.organization_id,
        market.partner_id,
        market.chapter_id.as_deref(),
        market.source_url.as_deref(),
        market.status.as_str(),
        market.fee_bps,
        market.liquidity,
        market.cost,
        market.end_time,
        SqlValue::try_from(market.as_of_block)?,
        market.as_of,
        market.created_at,
        market.featured_position
    ];
    tx.exec(MARKET, &bound).await?;
    let indexed = labels.iter().zip(0u8..).map(|(label, index)| params![market.id, index, label].to_vec());
    let rows: Vec<_> = indexed.collect();
    tx.exec_each(OUTCOME, &rows).await.map(drop)
}

/// Returns the market with this id, whether or not it is on chain.
pub async fn find(tx: &mut Tx, id: MarketId) -> Result<Option<Market>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", Market::COLUMNS, " FROM markets WHERE id = $1");
    tx.find(SQL, &params![id], Market::from_row).await
}

/// Locks a market's row until the transaction ends.
pub async fn lock(tx: &mut Tx, id: MarketId) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE markets SET as_of_ms = as_of_ms WHERE id = $1";
    tx.exec(SQL, &params![id]).await.map(drop)
}

/// Lists ids of markets, on chain or not, starting after `after`.
pub async fn list_ids(tx: &mut Tx, after: Option<MarketId>, limit: u32) -> Result<Vec<MarketId>, StoreError> {
    const SQL: &str = "SELECT id FROM markets WHERE id > $1 ORDER BY id LIMIT $2";
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    tx.list(SQL, &params![after, limit], |row| row.only()).await
}

/// Lists the hub numbers of a chain's markets.
pub async fn list_numbers(tx: &mut Tx, chain_id: u64) -> Result<Vec<(u64, MarketId)>, StoreError> {
    const SQL: &str =
        "SELECT chain_market_id, id FROM markets WHERE chain_id = $1 AND chain_market_id IS NOT NULL";
    tx.list(SQL, &[SqlValue::try_from(chain_id)?], |row| Ok((row.get("chain_market_id")?, row.get("id")?)))
        .await
}

/// Returns the market with this number on the hub.
pub async fn find_by_chain_id(tx: &mut Tx, chain_id: u64, number: u64) -> Result<Option<Market>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Market::COLUMNS,
        " FROM markets WHERE chain_id = $1 AND chain_market_id = $2"
    );
    tx.find(SQL, &[SqlValue::try_from(chain_id)?, SqlValue::try_from(number)?], Market::from_row).await
}

/// Returns a market's outcomes, in order.
pub async fn outcomes(tx: &mut Tx, id: MarketId) -> Result<Vec<Outcome>, StoreError> {
    // A market has at most 250 outcomes.
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Outcome::COLUMNS,
        " FROM outcomes WHERE market_id = $1 ORDER BY outcome_index LIMIT 250"
    );
    tx.list(SQL, &params![id], Outcome::from_row).await
}

/// A filter for lists of markets.
#[derive(Debug, Clone, Default)]
pub struct MarketListFilter {
    /// Allowed statuses. Empty means all.
    pub statuses: Vec<MarketStatus>,
    pub category: Option<String>,
    pub thread_id: Option<ThreadId>,
    pub organization_id: Option<OrganizationId>,
    pub partner_id: Option<PartnerId>,
    /// Markets whose question contains this text, case-insensitive.
    pub text: Option<String>,
}

/// Reports whether a market is cancelled and has paid every refund.
pub async fn is_refunded(tx: &mut Tx, id: MarketId) -> Result<bool, StoreError> {
    const SQL: &str =
        const_format::concatcp!("SELECT 1 FROM markets WHERE id = $1 AND ", listed::REFUNDS_PAID);
    tx.exists(SQL, &params![id]).await
}

/// The rows that a filter and a page select. An unused filter is the empty string. Its length is
/// tested instead of its value, because the database evaluates `LENGTH($n)` only once and not for
/// each row.
const CHOSEN: &str = "FROM markets WHERE (created_at_ms, id) < ($1, $2) AND chain_market_id IS NOT NULL
    AND (LENGTH($3) = 0 OR $3 LIKE '%,' || status || ',%') AND (LENGTH($4) = 0 OR category = $4)
    AND (LENGTH($5) = 0 OR thread_id = $5) AND (LENGTH($6) = 0 OR organization_id = $6) AND (LENGTH($7) = 0 OR partner_id = $7)
    AND (LENGTH($8) = 0 OR LOWER(question) LIKE LOWER($8) ESCAPE '!')
    ORDER BY created_at_ms DESC, id DESC LIMIT $9";

fn chosen<'a>(filter: &'a MarketListFilter, page: &'a Page) -> [SqlValue<'a>; 9] {
    let (created_at, id) = position_or_end(page.after.as_ref());
    let statuses = match filter.statuses.as_slice() {
        [] => String::new(),
        some => format!(",{},", some.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(",")),
    };
    params![
        created_at,
        id,
        statuses,
        filter.category.as_deref().unwrap_or_default(),
        filter.thread_id.map(|id| id.to_string()).unwrap_or_default(),
        filter.organization_id.map(|id| id.to_string()).unwrap_or_default(),
        filter.partner_id.map(|id| id.to_string()).unwrap_or_default(),
        filter.text.as_deref().map(like_pattern).unwrap_or_default(),
        page.limit + 1
    ]
}

record! {
    /// The identity and version of a listed market, without its data.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Named {
        pub id: MarketId,
        pub status: MarketStatus,
        /// The block up to which the market's row is current.
        pub as_of_block: u64,
    }
}

/// Lists the identities of the markets that [`list`] would return. For callers that have cached the
/// data.
pub async fn name(tx: &mut Tx, filter: &MarketListFilter, page: &Page) -> Result<Vec<Named>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", Named::COLUMNS, " ", CHOSEN);
    tx.list(SQL, &chosen(filter, page), Named::from_row).await
}

/// Lists markets on chain with their outcomes, newest first. Returns up to `limit + 1` rows: the
/// extra row shows that there is a next page.
pub async fn list(
    tx: &mut Tx,
    filter: &MarketListFilter,
    page: &Page,
) -> Result<Vec<(Market, Vec<Outcome>)>, StoreError> {
    // One statement, so that the filters are evaluated once. A market's columns are decoded only
    // from the row of its first outcome.
    const SQL: &str = const_format::concatcp!(
        "SELECT o.*, m.* FROM (SELECT ",
        Market::COLUMNS,
        " ",
        CHOSEN,
        ") m JOIN (SELECT ",
        Outcome::COLUMNS,
        " FROM outcomes) o ON o.market_id = m.id"
    );
    let bound = chosen(filter, page);
    let rows = tx.list(SQL, &bound, |row| {
        let mut columns = row.columns();
        let outcome = Outcome::read(&mut columns)?;
        let market = if outcome.index == 0 { Some(Market::read(&mut columns)?) } else { None };
        Ok((market, outcome))
    });
    let rows = rows.await?;
    let mut markets = Vec::with_capacity(page.limit as usize + 1);
    let mut of_market: HashMap<MarketId, Vec<Outcome>> = HashMap::with_capacity(markets.capacity());
    for (market, outcome) in rows {
        markets.extend(market);
        of_market.entry(outcome.market_id).or_default().push(outcome);
    }
    markets.sort_unstable_by_key(|market| Reverse((market.created_at, market.id)));
    let with_outcomes = |market: Market| {
        let mut outcomes = of_market.remove(&market.id).unwrap_or_default();
        outcomes.sort_unstable_by_key(|outcome| outcome.index);
        (market, outcomes)
    };
    Ok(markets.into_iter().map(with_outcomes).collect())
}

// SQLite's LIKE has no default escape character, so the statement declares `!`.
pub(crate) fn like_pattern(text: &str) -> String {
    let escaped = text.replace('!', "!!").replace('%', "!%").replace('_', "!_");
    format!("%{escaped}%")
}

/// Applies the chain's creation event. From here on the market is on chain and visible. Returns
/// false if it already was.
pub async fn mark_created(
    tx: &mut Tx,
    id: MarketId,
    chain_market_id: u64,
    cost: Wad,
    quantities: &[Wad],
    at: ChangeBlock,
) -> Result<bool, StoreError> {
    const MARKET: &str =
        "UPDATE markets SET chain_market_id = $1, opening_cost_wad = $2, cost_wad = $2, as_of_block = $3,
        as_of_ms = $4 WHERE id = $5 AND chain_market_id IS NULL";
    const OUTCOME: &str =
        "UPDATE outcomes SET opening_wad = $1, quantity_wad = $1 WHERE market_id = $2 AND outcome_index = $3";
    let bound = [
        SqlValue::try_from(chain_market_id)?,
        SqlValue::from(cost),
        SqlValue::try_from(at.block)?,
        SqlValue::from(at.time),
        SqlValue::from(id),
    ];
    tx.mark_market_changed(id);
    // The market already has a number: the event was applied before.
    if tx.exec(MARKET, &bound).await? == 0 {
        return Ok(false);
    }
    let rows: Vec<_> =
        quantities.iter().zip(0u8..).map(|(q, index)| params![*q, id, index].to_vec()).collect();
    tx.exec_each(OUTCOME, &rows).await?;
    listed::refresh(tx, id).await?;
    Ok(true)
}

/// The block of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeBlock {
    pub block: u64,
    pub time: Timestamp,
}

/// Updates a market and the given outcomes with changes from the chain. Changed positions must be
/// written before, because a market's status in lists may depend on them.
pub async fn put_state(tx: &mut Tx, market: &Market, outcomes: &[Outcome]) -> Result<(), StoreError> {
    const MARKET: &str =
        "UPDATE markets SET status = $1, cost_wad = $2, volume_usdc_atomic = $3, trade_count = $4,
        payouts = $5, resolution_tx_hash = $6, frozen_at_ms = $7, resolved_at_ms = $8,
        as_of_block = $9, as_of_ms = $10 WHERE id = $11";
    const OUTCOME: &str = "UPDATE outcomes SET quantity_wad = $1, volume_usdc_atomic = $2, trade_count = $3
        WHERE market_id = $4 AND outcome_index = $5";
    let payouts = market
        .payouts
        .as_ref()
        .map(serde_json::to_string)
        .transpose()
        .map_err(|error| StoreError::unwritable(&error))?;
    let bound = params![
        market.status.as_str(),
        market.cost,
        market.volume,
        SqlValue::try_from(market.trade_count)?,
        payouts.as_deref(),
        market.resolution_tx_hash,
        market.frozen_at,
        market.resolved_at,
        SqlValue::try_from(market.as_of_block)?,
        market.as_of,
        market.id
    ];
    tx.mark_market_changed(market.id);
    tx.exec(MARKET, &bound).await?;
    let rows: Result<Vec<_>, StoreError> = outcomes
        .iter()
        .map(|o| {
            Ok(params![o.quantity, o.volume, SqlValue::try_from(o.trade_count)?, market.id, o.index].to_vec())
        })
        .collect();
    tx.exec_each(OUTCOME, &rows?).await?;
    // Also on repeated updates: both calls do nothing if the work was already started for this
    // result.
    if matches!(market.status, MarketStatus::Resolved | MarketStatus::Cancelled) {
        redemptions::begin_announcement(tx, market.id).await?;
        redemptions::begin_scan(tx, market.id, payouts.as_deref().unwrap_or_default()).await?;
    }
    // Last, because it reads the rows that were written above.
    listed::refresh(tx, market.id).await
}

/// Lists open markets whose end time has passed at `now`. The contracts no longer accept trades in
/// them.
pub async fn list_past_end(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<Vec<Market>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Market::COLUMNS,
        " FROM markets WHERE status = 'OPEN' AND end_time_ms <= $1 AND chain_market_id IS NOT NULL
        ORDER BY end_time_ms, id LIMIT $2"
    );
    tx.list(SQL, &params![now, limit], Market::from_row).await
}

/// Sets or clears the time since which a market's events cannot be applied.
pub(crate) async fn put_quarantined(
    tx: &mut Tx,
    id: MarketId,
    since: Option<Timestamp>,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE markets SET quarantined_at_ms = $1 WHERE id = $2";
    tx.mark_market_changed(id);
    tx.exec(SQL, &params![since, id]).await.map(drop)
}

/// Sets the source of a settled market's result.
pub async fn set_resolution_source(
    tx: &mut Tx,
    id: MarketId,
    source: Option<&str>,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE markets SET resolution_source = $1 WHERE id = $2";
    tx.mark_market_changed(id);
    tx.exec(SQL, &params![source, id]).await.map(drop)
}

/// Lists the markets that changed after a block, which a reorganization from there may affect.
pub async fn list_changed_after(tx: &mut Tx, chain_id: u64, block: u64) -> Result<Vec<Market>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Market::COLUMNS,
        " FROM markets WHERE chain_id = $1 AND as_of_block > $2 AND chain_market_id IS NOT NULL
        ORDER BY id"
    );
    tx.list(SQL, &[SqlValue::try_from(chain_id)?, SqlValue::try_from(block)?], Market::from_row).await
}

/// Marks a market as not on chain, because its creation was undone by a reorganization.
pub async fn clear_created(tx: &mut Tx, id: MarketId) -> Result<(), StoreError> {
    // The row remains, because its creation may be mined again.
    const SQL: &str = "UPDATE markets SET chain_market_id = NULL WHERE id = $1";
    tx.mark_market_changed(id);
    tx.exec(SQL, &params![id]).await?;
    listed::refresh(tx, id).await
}
