//! How many rows there are and what is set aside: equal before and after means that nothing was stored.

use domain::Usdc;
use store::StoreError;
use store::movements::Held;

use crate::{TestApp, TestKey, TestUser};

/// Rows of the tables that a trade writes, and the sums it sets aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// Trades.
    pub trades: i64,
    /// Idempotency keys.
    pub idempotency: i64,
    /// Events of traces.
    pub trace_events: i64,
    /// Claims of settled positions.
    pub redemptions: i64,
    /// Signed batches.
    pub batches: i64,
    /// Events that moved positions.
    pub movements: i64,
    /// USDC atomic that all accounts have set aside.
    pub reserved: i64,
    /// USDC atomic that all keys have spent.
    pub spent: i64,
}

impl TestApp {
    /// The rows there are now.
    ///
    /// # Panics
    /// Where the database refuses.
    pub async fn rows(&self) -> Rows {
        const SQL: &str = "SELECT (SELECT COUNT(*) FROM trades), (SELECT COUNT(*) FROM idempotency),
            (SELECT COUNT(*) FROM trace_events), (SELECT COUNT(*) FROM batches), (SELECT COUNT(*) FROM movements),
            (SELECT CAST(COALESCE(SUM(reserved_usdc_atomic), 0) AS BIGINT) FROM accounts),
            (SELECT CAST(COALESCE(SUM(spent_usdc_atomic), 0) AS BIGINT) FROM key_spend),
            (SELECT COUNT(*) FROM redemptions)";
        let rows: Result<Option<Rows>, StoreError> = self
            .ctx
            .store
            .read((), |tx, ()| {
                Box::pin(tx.find(SQL, &[], |row| {
                    Ok(Rows {
                        trades: row.int(0)?,
                        idempotency: row.int(1)?,
                        trace_events: row.int(2)?,
                        batches: row.int(3)?,
                        movements: row.int(4)?,
                        reserved: row.int(5)?,
                        spent: row.int(6)?,
                        redemptions: row.int(7)?,
                    })
                }))
            })
            .await;
        rows.unwrap().expect("a select without a table gives one row")
    }

    /// How many trades have not ended.
    ///
    /// # Panics
    /// Where the database refuses.
    pub async fn open_trades(&self) -> i64 {
        const SQL: &str = "SELECT COUNT(*) FROM trades WHERE ended_at_ms IS NULL";
        let open: Result<Option<i64>, StoreError> =
            self.ctx.store.read((), |tx, ()| Box::pin(tx.find(SQL, &[], |row| row.int(0)))).await;
        open.unwrap().expect("a count is one row")
    }

    /// The rows that tell what keys were used for, but for their trades.
    ///
    /// # Panics
    /// Where the database refuses.
    pub async fn usage_rows(&self) -> i64 {
        const SQL: &str =
            "SELECT (SELECT COUNT(*) FROM usage_refusals) + (SELECT COUNT(*) FROM usage_latency)
            + (SELECT COUNT(*) FROM usage_keys)";
        let rows: Result<Option<i64>, StoreError> =
            self.ctx.store.read((), |tx, ()| Box::pin(tx.find(SQL, &[], |row| row.int(0)))).await;
        rows.unwrap().expect("a select without a table gives one row")
    }

    /// What open buys of the user have set aside.
    ///
    /// # Panics
    /// Where the user has no account.
    pub async fn reserved(&self, user: &TestUser) -> Usdc {
        app::accounts::account_of(&self.ctx, user.id).await.unwrap().reserved
    }

    /// What the key has spent in the last 24 hours, as its owner is told.
    ///
    /// # Panics
    /// Where the database refuses.
    pub async fn spent(&self, key: &TestKey) -> Usdc {
        let input = (key.caller.key.id, self.ctx.now());
        let spent: Result<Usdc, StoreError> = self
            .ctx
            .store
            .read(input, |tx, (id, now)| Box::pin(store::keys::find_spent(tx, *id, *now)))
            .await;
        spent.unwrap()
    }

    /// Every position of the ledger, in one order.
    ///
    /// # Panics
    /// Where the database refuses.
    pub async fn positions(&self) -> Vec<Held> {
        const HOLDERS: &str = "SELECT DISTINCT account FROM positions ORDER BY account";
        let read: Result<Vec<Held>, StoreError> = self
            .ctx
            .store
            .read((), |tx, ()| {
                Box::pin(async move {
                    let mut positions = Vec::new();
                    for holder in tx.list(HOLDERS, &[], |row| row.text(0)).await? {
                        positions.extend(store::movements::list_positions(tx, &holder, None).await?);
                    }
                    Ok(positions)
                })
            })
            .await;
        read.unwrap()
    }

    /// Everything that is stored of keys, as one text.
    ///
    /// # Panics
    /// Where the database refuses.
    pub async fn text_of_keys(&self) -> String {
        const SQL: &str =
            "SELECT id || name || digest || webhook_secret_sealed || COALESCE(webhook_url, '') FROM keys";
        let read: Result<Vec<String>, StoreError> =
            self.ctx.store.read((), |tx, ()| Box::pin(tx.list(SQL, &[], |row| row.text(0)))).await;
        read.unwrap().join("\n")
    }

    /// Empties the tables that the sync writes, as if it had never read the chain.
    ///
    /// # Panics
    /// Where the database refuses.
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
