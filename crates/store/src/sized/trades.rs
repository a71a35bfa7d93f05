//! The trades.

use domain::Timestamp;

use super::markets::COST_WAD;
use super::{MARKETS, Size, TRADED_MS, run, trust_references};
use crate::engine::dialect::sized::{self as dialect, digits, hex};
use crate::{Engine, Store, StoreError};

/// The number of trades written per unit of work.
const CHUNK: u32 = 250_000;
/// Far above the blocks of any chain that the same database may follow.
const FIRST_BLOCK: u64 = 1_000_000_000;

/// Writes the trades. Indexes are dropped before and created afterwards, because sorting once is
/// faster than updating them for each row.
pub async fn fill(store: &Store, size: Size, now: Timestamp) -> Result<(), StoreError> {
    let indexes = indexes(store).await?;
    run(store, indexes.iter().map(|(name, _)| format!("DROP INDEX {name}")).collect()).await?;
    for first in (0..size.trades).step_by(CHUNK as usize) {
        let last = (first + CHUNK).min(size.trades) - 1;
        let sql = trades(store.engine(), size, first, last, now);
        store
            .write(sql, |tx, sql| {
                Box::pin(async move {
                    trust_references(tx).await?;
                    tx.batch(sql).await
                })
            })
            .await?;
    }
    for (_, sql) in indexes {
        run(store, vec![sql]).await?;
    }
    Ok(())
}

/// Returns the names of the indexes of `movements`, and the statements that create them.
async fn indexes(store: &Store) -> Result<Vec<(String, String)>, StoreError> {
    let sql = dialect::indexes_of_movements(store.engine());
    store
        .read(sql, |tx, sql| Box::pin(tx.list(sql, &[], |row| Ok((row.get("name")?, row.get("sql")?)))))
        .await
}

fn trades(engine: Engine, size: Size, first: u32, last: u32, now: Timestamp) -> String {
    let (markets, accounts, count) = (size.markets, size.accounts(), i64::from(size.trades));
    let step_ms = TRADED_MS / count.max(1);
    let began_ms = now.ms() - (count - 1) * step_ms;
    let block = format!("{FIRST_BLOCK} + i / 100");
    let id = format!("{} || '-' || {}", digits(engine, &block, 12), digits(engine, "i % 100", 6));
    let (tx_hash, market) = (hex(engine, "i", 64), digits(engine, "market", 12));
    let account = hex(engine, "account", 40);
    format!(
        "INSERT INTO movements (id, block_number, log_index, tx_hash, kind, market_id, outcome_index, account, usdc_atomic,
        tokens_wad, fee_atomic, cost_wad, quantity_wad, created_at_ms, realized_pnl_usdc_atomic)
        WITH RECURSIVE n (i) AS (SELECT CAST({first} AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < {last}),
        paired AS (SELECT i, i / 2 AS pair, CASE WHEN i / 2 % 9 < 2 THEN 0 ELSE i / 2 % {markets} END AS market,
        CASE WHEN i / 2 % 9 < 2 THEN i / 2 % {accounts} ELSE (i / 2 % {markets} * 13 + i / 2 / {markets} % 5) % {accounts}
        END AS account, 300000 + i / 2 * 7919 % 400000 AS proceeds FROM n)
        SELECT {id}, {block}, i % 100, {tx_hash}, CASE WHEN i % 2 = 0 THEN 'buy' ELSE 'sell' END,
        '{MARKETS}' || {market}, pair % 2, {account}, CASE WHEN i % 2 = 0 THEN 1000000 ELSE proceeds END,
        CASE WHEN i % 2 = 0 THEN '2000000000000000000' ELSE '1000000000000000000' END, 0, '{COST_WAD}', '{COST_WAD}',
        {began_ms} + i * {step_ms}, CASE WHEN i % 2 = 0 THEN 0 ELSE proceeds - 500000 END FROM paired"
    )
}
