//! Markets, their outcomes and what the chain last said of them.

use std::cmp::Reverse;
use std::collections::HashMap;

use alloy_primitives::U256;
use domain::ids::{MarketId, OrganizationId, PartnerId, ThreadId};
use domain::market::MarketStatus;
use domain::page::Page;
use domain::{Timestamp, Usdc, Wad};

use crate::bind::position_or_end;
use crate::{Row, StoreError, Tx, Value, listed, params, redemptions};

/// A market as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Market {
    /// The market's id.
    pub id: MarketId,
    /// The chain it lives on.
    pub chain_id: u64,
    /// The hub's address, lower-case hex.
    pub contract_address: String,
    /// The hub's number for it; absent until it is on chain.
    pub chain_market_id: Option<u64>,
    /// What is asked.
    pub question: String,
    /// Markdown.
    pub description: Option<String>,
    /// Such as `sports`.
    pub category: Option<String>,
    /// Free words.
    pub tags: Vec<String>,
    /// The thread it belongs to.
    pub thread_id: Option<ThreadId>,
    /// The organization it belongs to.
    pub organization_id: Option<OrganizationId>,
    /// The partner it belongs to.
    pub partner_id: Option<PartnerId>,
    /// The chapter of its thread.
    pub chapter_id: Option<String>,
    /// The post it came from.
    pub source_url: Option<String>,
    /// Where it stands.
    pub status: MarketStatus,
    /// The fee, hundredths of a percent.
    pub fee_bps: u16,
    /// The market maker's `b`.
    pub liquidity: Usdc,
    /// The market maker's cost at the opening, WAD.
    pub opening_cost: Wad,
    /// The market maker's cost, WAD.
    pub cost: Wad,
    /// USDC traded.
    pub volume: Usdc,
    /// Trades made.
    pub trade_count: u64,
    /// Payout of each outcome, WAD a token, once settled.
    pub payouts: Option<Vec<Wad>>,
    /// The transaction that settled it.
    pub resolution_tx_hash: Option<String>,
    /// Where the result was taken from.
    pub resolution_source: Option<String>,
    /// The part of the cost basis that a cancelled market refunds, WAD.
    pub refund_scale: Option<Wad>,
    /// When trading ends by itself.
    pub end_time: Timestamp,
    /// Since when it is frozen.
    pub frozen_at: Option<Timestamp>,
    /// When it was settled.
    pub resolved_at: Option<Timestamp>,
    /// The block up to which this row speaks.
    pub as_of_block: u64,
    /// That block's time.
    pub as_of: Timestamp,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its place among the featured markets, the least first; absent where it is not featured.
    pub featured_position: Option<u32>,
    /// Since when its events cannot be applied: until it is repaired it is not tradeable.
    pub quarantined_at: Option<Timestamp>,
}

/// One outcome of a market.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its market.
    pub market_id: MarketId,
    /// Its position, from zero.
    pub index: u8,
    /// Its name.
    pub label: String,
    /// The market maker's quantity at the opening, WAD.
    pub opening: Wad,
    /// The market maker's quantity now, WAD.
    pub quantity: Wad,
    /// USDC traded on it.
    pub volume: Usdc,
    /// Trades made on it.
    pub trade_count: u64,
}

impl Outcome {
    /// Tokens that holders have, WAD.
    pub fn supply(&self) -> Wad {
        self.quantity.checked_sub(self.opening).unwrap_or_default()
    }
}

impl Market {
    /// The status as the chain judges it at `now`: an open market past its end no longer trades, whatever has been noted
    /// of it so far.
    pub fn status_at(&self, now: Timestamp) -> MarketStatus {
        if self.status == MarketStatus::Open && self.end_time <= now {
            MarketStatus::Frozen
        } else {
            self.status
        }
    }

    /// The token's number on chain: the market's, shifted by eight bits, and the outcome's.
    pub fn token_id(&self, outcome_index: u8) -> Option<U256> {
        self.chain_market_id.map(|id| (U256::from(id) << 8) | U256::from(outcome_index))
    }
}

pub(crate) const COLUMNS: &str = "id, chain_id, contract_address, chain_market_id, question, description, category, tags, thread_id,
    organization_id, partner_id, chapter_id, source_url, status, fee_bps, liquidity_usdc_atomic, cost_wad,
    volume_usdc_atomic, trade_count, payouts, resolution_tx_hash, resolution_source, refund_scale_wad, end_time_ms,
    frozen_at_ms, resolved_at_ms, as_of_block, as_of_ms, created_at_ms, opening_cost_wad, featured_position,
    quarantined_at_ms";

/// How many columns a market has: those of an outcome stand behind them.
pub(crate) const OUTCOME: usize = 32;

pub(crate) const OUTCOME_COLUMNS: &str =
    "market_id, outcome_index, label, opening_wad, quantity_wad, volume_usdc_atomic, trade_count";

pub(crate) fn from_row(row: &Row<'_>) -> Result<Market, StoreError> {
    let payouts = row.opt_str(19)?.map(|_| row.texts(19)).transpose()?;
    let payouts = payouts.map(|texts| texts.iter().map(|text| text.parse()).collect::<Result<Vec<Wad>, _>>());
    Ok(Market {
        id: row.parse(0)?,
        chain_id: row.number(1)?,
        contract_address: row.text(2)?,
        chain_market_id: row.opt_number(3)?,
        question: row.text(4)?,
        description: row.opt_text(5)?,
        category: row.opt_text(6)?,
        tags: row.texts(7)?,
        thread_id: row.opt_parse(8)?,
        organization_id: row.opt_parse(9)?,
        partner_id: row.opt_parse(10)?,
        chapter_id: row.opt_text(11)?,
        source_url: row.opt_text(12)?,
        status: row.parse(13)?,
        fee_bps: row.number(14)?,
        liquidity: row.usdc(15)?,
        cost: row.parse(16)?,
        volume: row.usdc(17)?,
        trade_count: row.number(18)?,
        payouts: payouts.transpose().map_err(|_| row.corrupt(19, "not a list of WAD"))?,
        resolution_tx_hash: row.opt_text(20)?,
        resolution_source: row.opt_text(21)?,
        refund_scale: row.opt_parse(22)?,
        end_time: row.timestamp(23)?,
        frozen_at: row.opt_timestamp(24)?,
        resolved_at: row.opt_timestamp(25)?,
        as_of_block: row.number(26)?,
        as_of: row.timestamp(27)?,
        created_at: row.timestamp(28)?,
        opening_cost: row.parse(29)?,
        featured_position: row.opt_number(30)?,
        quarantined_at: row.opt_timestamp(31)?,
    })
}

fn outcome_from_row(row: &Row<'_>) -> Result<Outcome, StoreError> {
    outcome_from(row, 0)
}

/// The outcome whose columns begin there.
pub(crate) fn outcome_from(row: &Row<'_>, first: usize) -> Result<Outcome, StoreError> {
    Ok(Outcome {
        market_id: row.parse(first)?,
        index: row.number(first + 1)?,
        label: row.text(first + 2)?,
        opening: row.parse(first + 3)?,
        quantity: row.parse(first + 4)?,
        volume: row.usdc(first + 5)?,
        trade_count: row.number(first + 6)?,
    })
}

/// Adds a market that is about to be created on chain. Its outcomes' quantities are set by the chain's event.
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
        Value::try_from(market.chain_id)?,
        &market.contract_address,
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
        Value::try_from(market.as_of_block)?,
        market.as_of,
        market.created_at,
        market.featured_position
    ];
    tx.exec(MARKET, &bound).await?;
    let indexed = labels.iter().zip(0u8..).map(|(label, index)| params![market.id, index, label].to_vec());
    let rows: Vec<_> = indexed.collect();
    tx.exec_each(OUTCOME, &rows).await.map(drop)
}

/// The market with this id, on chain or not yet.
pub async fn find(tx: &mut Tx, id: MarketId) -> Result<Option<Market>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", COLUMNS, " FROM markets WHERE id = $1");
    tx.find(SQL, &params![id], from_row).await
}

/// Keeps a market's row from being changed by others before this transaction ends.
pub async fn lock(tx: &mut Tx, id: MarketId) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE markets SET as_of_ms = as_of_ms WHERE id = $1";
    tx.exec(SQL, &params![id]).await.map(drop)
}

/// The ids of markets, on chain or not yet, behind the one with id `after`.
pub async fn list_ids(tx: &mut Tx, after: Option<MarketId>, limit: u32) -> Result<Vec<MarketId>, StoreError> {
    const SQL: &str = "SELECT id FROM markets WHERE id > $1 ORDER BY id LIMIT $2";
    let after = after.map(|id| id.to_string()).unwrap_or_default();
    tx.list(SQL, &params![after, limit], |row| row.parse(0)).await
}

/// The hub's numbers of a chain's markets.
pub async fn list_numbers(tx: &mut Tx, chain_id: u64) -> Result<Vec<(u64, MarketId)>, StoreError> {
    const SQL: &str =
        "SELECT chain_market_id, id FROM markets WHERE chain_id = $1 AND chain_market_id IS NOT NULL";
    tx.list(SQL, &[Value::try_from(chain_id)?], |row| Ok((row.number(0)?, row.parse(1)?))).await
}

/// The market that the hub numbers so.
pub async fn find_by_chain_id(tx: &mut Tx, chain_id: u64, number: u64) -> Result<Option<Market>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM markets WHERE chain_id = $1 AND chain_market_id = $2"
    );
    tx.find(SQL, &[Value::try_from(chain_id)?, Value::try_from(number)?], from_row).await
}

/// A market's outcomes in their order.
pub async fn outcomes(tx: &mut Tx, id: MarketId) -> Result<Vec<Outcome>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        OUTCOME_COLUMNS,
        " FROM outcomes WHERE market_id = $1 ORDER BY outcome_index LIMIT 250"
    );
    tx.list(SQL, &params![id], outcome_from_row).await
}

/// What a list of markets is narrowed to.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    /// Markets in one of these statuses; all where empty.
    pub statuses: Vec<MarketStatus>,
    /// Markets of this category.
    pub category: Option<String>,
    /// Markets of this thread.
    pub thread_id: Option<ThreadId>,
    /// Markets of this organization.
    pub organization_id: Option<OrganizationId>,
    /// Markets of this partner.
    pub partner_id: Option<PartnerId>,
    /// Markets whose question holds this text, whatever its case.
    pub text: Option<String>,
}

/// Of rows of `markets`: called off, and no holder is owed a refund any more. A refund is a part of what the position
/// cost, so that tokens that cost nothing are owed nothing.
pub const REFUNDS_PAID: &str = "markets.status = 'CANCELLED' AND NOT EXISTS (SELECT 1 FROM positions
    WHERE positions.market_id = markets.id AND positions.tokens_wad <> '0' AND positions.cost_basis_usdc_atomic > 0)";

/// Whether a market was called off and has paid every refund.
pub async fn is_refunded(tx: &mut Tx, id: MarketId) -> Result<bool, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT 1 FROM markets WHERE id = $1 AND ", REFUNDS_PAID);
    Ok(tx.find(SQL, &params![id], |row| row.int(0)).await?.is_some())
}

/// The rows that a list's filter and page choose. What narrows nothing is the empty text; its length is asked once, where a
/// comparison would be made for each row.
const CHOSEN: &str = "FROM markets WHERE (created_at_ms, id) < ($1, $2) AND chain_market_id IS NOT NULL
    AND (LENGTH($3) = 0 OR $3 LIKE '%,' || status || ',%') AND (LENGTH($4) = 0 OR category = $4)
    AND (LENGTH($5) = 0 OR thread_id = $5) AND (LENGTH($6) = 0 OR organization_id = $6) AND (LENGTH($7) = 0 OR partner_id = $7)
    AND (LENGTH($8) = 0 OR LOWER(question) LIKE LOWER($8) ESCAPE '!')
    ORDER BY created_at_ms DESC, id DESC LIMIT $9";

fn chosen<'a>(filter: &'a ListFilter, page: &'a Page) -> [Value<'a>; 9] {
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

/// A market that a list names, without what is shown of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// Its id.
    pub id: MarketId,
    /// Where it stands.
    pub status: MarketStatus,
    /// The block up to which its row speaks.
    pub as_of_block: u64,
}

/// The markets of [`list`], by their names: for who has kept what is shown of them.
pub async fn name(tx: &mut Tx, filter: &ListFilter, page: &Page) -> Result<Vec<Named>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT id, status, as_of_block ", CHOSEN);
    tx.list(SQL, &chosen(filter, page), |row| {
        Ok(Named { id: row.parse(0)?, status: row.parse(1)?, as_of_block: row.number(2)? })
    })
    .await
}

/// One row more than the page's limit of the markets on chain, newest first, with their outcomes.
pub async fn list(
    tx: &mut Tx,
    filter: &ListFilter,
    page: &Page,
) -> Result<Vec<(Market, Vec<Outcome>)>, StoreError> {
    // One statement, so that the filters are judged once. A market's columns are read with its first outcome alone.
    const SQL: &str = const_format::concatcp!(
        "SELECT m.*, o.market_id, o.outcome_index, o.label, o.opening_wad, o.quantity_wad, o.volume_usdc_atomic,
        o.trade_count FROM (SELECT ",
        COLUMNS,
        " ",
        CHOSEN,
        ") m JOIN outcomes o ON o.market_id = m.id"
    );
    let bound = chosen(filter, page);
    let rows = tx.list(SQL, &bound, |row| {
        let outcome = outcome_from(row, OUTCOME)?;
        let market = if outcome.index == 0 { Some(from_row(row)?) } else { None };
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

fn like_pattern(text: &str) -> String {
    let escaped = text.replace('!', "!!").replace('%', "!%").replace('_', "!_");
    format!("%{escaped}%")
}

/// What the chain's creation event said: from here on the market is on chain and shown.
pub async fn mark_created(
    tx: &mut Tx,
    id: MarketId,
    chain_market_id: u64,
    cost: Wad,
    quantities: &[Wad],
    at: AsOf,
) -> Result<bool, StoreError> {
    const MARKET: &str =
        "UPDATE markets SET chain_market_id = $1, opening_cost_wad = $2, cost_wad = $2, as_of_block = $3,
        as_of_ms = $4 WHERE id = $5 AND chain_market_id IS NULL";
    const OUTCOME: &str =
        "UPDATE outcomes SET opening_wad = $1, quantity_wad = $1 WHERE market_id = $2 AND outcome_index = $3";
    let bound = [
        Value::try_from(chain_market_id)?,
        Value::from(cost),
        Value::try_from(at.block)?,
        Value::from(at.time),
        Value::from(id),
    ];
    tx.mark_market_changed(id);
    if tx.exec(MARKET, &bound).await? == 0 {
        return Ok(false);
    }
    let rows: Vec<_> =
        quantities.iter().zip(0u8..).map(|(q, index)| params![*q, id, index].to_vec()).collect();
    tx.exec_each(OUTCOME, &rows).await?;
    listed::refresh(tx, id).await?;
    Ok(true)
}

/// The block that a change came with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsOf {
    /// Its number.
    pub block: u64,
    /// Its time.
    pub time: Timestamp,
}

/// Writes what the chain has changed of a market, and of those of its outcomes that are given. Positions that changed with
/// it are written before, since a market's place in lists may depend on them.
pub async fn put_state(tx: &mut Tx, market: &Market, outcomes: &[Outcome]) -> Result<(), StoreError> {
    const MARKET: &str =
        "UPDATE markets SET status = $1, cost_wad = $2, volume_usdc_atomic = $3, trade_count = $4,
        payouts = $5, resolution_tx_hash = $6, refund_scale_wad = $7, frozen_at_ms = $8, resolved_at_ms = $9,
        as_of_block = $10, as_of_ms = $11 WHERE id = $12";
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
        Value::try_from(market.trade_count)?,
        payouts,
        market.resolution_tx_hash.as_deref(),
        market.refund_scale,
        market.frozen_at,
        market.resolved_at,
        Value::try_from(market.as_of_block)?,
        market.as_of,
        market.id
    ];
    tx.mark_market_changed(market.id);
    tx.exec(MARKET, &bound).await?;
    let rows: Result<Vec<_>, StoreError> = outcomes
        .iter()
        .map(|o| {
            Ok(params![o.quantity, o.volume, Value::try_from(o.trade_count)?, market.id, o.index].to_vec())
        })
        .collect();
    tx.exec_each(OUTCOME, &rows?).await?;
    if matches!(market.status, MarketStatus::Resolved | MarketStatus::Cancelled) {
        redemptions::begin_announcement(tx, market.id).await?;
        redemptions::begin_scan(tx, market.id, market.refund_scale).await?;
    }
    listed::refresh(tx, market.id).await
}

/// Open markets whose time is over at `now`: the chain has stopped trading them by itself.
pub async fn list_past_end(tx: &mut Tx, now: Timestamp, limit: u32) -> Result<Vec<Market>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM markets WHERE status = 'OPEN' AND end_time_ms <= $1 AND chain_market_id IS NOT NULL
        ORDER BY end_time_ms, id LIMIT $2"
    );
    tx.list(SQL, &params![now, limit], from_row).await
}

/// Notes since when a market's events cannot be applied, or that they can be again.
pub(crate) async fn put_quarantined(
    tx: &mut Tx,
    id: MarketId,
    since: Option<Timestamp>,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE markets SET quarantined_at_ms = $1 WHERE id = $2";
    tx.mark_market_changed(id);
    tx.exec(SQL, &params![since, id]).await.map(drop)
}

/// Sets where a settled market's result was taken from.
pub async fn set_resolution_source(tx: &mut Tx, id: MarketId, source: &str) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE markets SET resolution_source = $1 WHERE id = $2";
    tx.mark_market_changed(id);
    tx.exec(SQL, &params![source, id]).await.map(drop)
}

/// The markets that have changed after a block: what a reorganisation from there may have touched.
pub async fn list_changed_after(tx: &mut Tx, chain_id: u64, block: u64) -> Result<Vec<Market>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM markets WHERE chain_id = $1 AND as_of_block > $2 AND chain_market_id IS NOT NULL
        ORDER BY id"
    );
    tx.list(SQL, &[Value::try_from(chain_id)?, Value::try_from(block)?], from_row).await
}

/// Takes a market off the chain again: its creation was undone by a reorganisation.
pub async fn clear_created(tx: &mut Tx, id: MarketId) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE markets SET chain_market_id = NULL WHERE id = $1";
    tx.mark_market_changed(id);
    tx.exec(SQL, &params![id]).await?;
    listed::refresh(tx, id).await
}
