//! Row counts and sums. Equal values before and after an operation show that it stored nothing.

use alloy_primitives::Address;
use domain::Usdc;
use store::StoreError;
use store::movements::Held;

use crate::{TestApp, TestKey, TestUser};

/// Row counts of the tables that a trade writes, and the reserved sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowCounts {
    pub trades: i64,
    pub idempotency: i64,
    pub trace_events: i64,
    /// Claims of settled positions.
    pub redemptions: i64,
    pub batches: i64,
    /// Movements of positions.
    pub movements: i64,
    /// USDC reserved in all accounts, in atomic units.
    pub reserved: i64,
    /// USDC spent by all keys, in atomic units.
    pub spent: i64,
}

impl TestApp {
    /// Reads the current counts.
    pub async fn rows(&self) -> RowCounts {
        const SQL: &str = "SELECT (SELECT COUNT(*) FROM trades) AS trades, (SELECT COUNT(*) FROM idempotency) AS idempotency,
            (SELECT COUNT(*) FROM trace_events) AS trace_events, (SELECT COUNT(*) FROM batches) AS batches, (SELECT COUNT(*) FROM movements) AS movements,
            (SELECT CAST(COALESCE(SUM(reserved_usdc_atomic), 0) AS BIGINT) FROM accounts) AS reserved,
            (SELECT CAST(COALESCE(SUM(spent_usdc_atomic), 0) AS BIGINT) FROM key_spend) AS spent,
            (SELECT COUNT(*) FROM redemptions) AS redemptions";
        let rows: Result<Option<RowCounts>, StoreError> = self
            .ctx
            .store
            .read((), |tx, ()| {
                Box::pin(tx.find(SQL, &[], |row| {
                    Ok(RowCounts {
                        trades: row.get("trades")?,
                        idempotency: row.get("idempotency")?,
                        trace_events: row.get("trace_events")?,
                        batches: row.get("batches")?,
                        movements: row.get("movements")?,
                        reserved: row.get("reserved")?,
                        spent: row.get("spent")?,
                        redemptions: row.get("redemptions")?,
                    })
                }))
            })
            .await;
        rows.unwrap().expect("a select without a table gives one row")
    }

    /// Counts the trades that have not ended.
    pub async fn open_trades(&self) -> i64 {
        const SQL: &str = "SELECT COUNT(*) FROM trades WHERE ended_at_ms IS NULL";
        let open: Result<Option<i64>, StoreError> =
            self.ctx.store.read((), |tx, ()| Box::pin(tx.find(SQL, &[], |row| row.only::<i64>()))).await;
        open.unwrap().expect("a count is one row")
    }

    /// Counts the usage rows, except those of trades.
    pub async fn usage_rows(&self) -> i64 {
        const SQL: &str =
            "SELECT (SELECT COUNT(*) FROM usage_refusals) + (SELECT COUNT(*) FROM usage_latency)
            + (SELECT COUNT(*) FROM usage_keys)";
        let rows: Result<Option<i64>, StoreError> =
            self.ctx.store.read((), |tx, ()| Box::pin(tx.find(SQL, &[], |row| row.only::<i64>()))).await;
        rows.unwrap().expect("a select without a table gives one row")
    }

    /// Returns the USDC that the user's open buys have reserved.
    pub async fn reserved(&self, user: &TestUser) -> Usdc {
        app::accounts::account_of(&self.ctx, user.id).await.unwrap().reserved
    }

    /// Returns the key's spending of the last 24 hours, as shown to its owner.
    pub async fn spent(&self, key: &TestKey) -> Usdc {
        let input = (key.caller.key.id, self.ctx.now());
        let spent = self
            .ctx
            .store
            .read(input, |tx, (id, now)| Box::pin(store::keys::find_spent(tx, *id, *now)))
            .await;
        spent.unwrap()
    }

    /// Returns every position, sorted by account.
    pub async fn positions(&self) -> Vec<Held> {
        const HOLDERS: &str = "SELECT DISTINCT account FROM positions ORDER BY account";
        let read: Result<Vec<Held>, StoreError> = self
            .ctx
            .store
            .read((), |tx, ()| {
                Box::pin(async move {
                    let mut positions = Vec::new();
                    for holder in tx.list(HOLDERS, &[], |row| row.get::<Address>("account")).await? {
                        positions.extend(store::movements::list_positions(tx, holder, None).await?);
                    }
                    Ok(positions)
                })
            })
            .await;
        read.unwrap()
    }

    /// Returns the stored texts of all keys, for assertions that they contain no secret.
    pub async fn text_of_keys(&self) -> String {
        const SQL: &str =
            "SELECT id || name || digest || webhook_secret_sealed || COALESCE(webhook_url, '') FROM keys";
        let read: Result<Vec<String>, StoreError> =
            self.ctx.store.read((), |tx, ()| Box::pin(tx.list(SQL, &[], |row| row.only::<String>()))).await;
        read.unwrap().join("\n")
    }

    /// Empties the tables that the sync writes, as if it had never read the chain.
    pub async fn forget_what_was_read(&self) {
        const TABLES: [&str; 6] = [
            "DELETE FROM candles",
            "DELETE FROM movements",
            "DELETE FROM positions",
            "DELETE FROM sync_blocks",
            "DELETE FROM settings",
            "UPDATE markets SET chain_market_id = NULL, volume_usdc_atomic = 0, trade_count = 0, cost_wad = '0'",
        ];
        const OUTCOMES: &str =
            "UPDATE outcomes SET quantity_wad = '0', volume_usdc_atomic = 0, trade_count = 0";
        let done: Result<(), StoreError> = self
            .ctx
            .store
            .write((), |tx, ()| {
                Box::pin(async move {
                    // Other readers would otherwise keep their cached markets.
                    tx.mark_markets_changed();
                    for sql in TABLES.into_iter().chain([OUTCOMES]) {
                        tx.exec(sql, &[]).await?;
                    }
                    store::traders::backlog::restart(tx).await
                })
            })
            .await;
        done.unwrap();
    }
}
