//! Usage counts that the migration creates for a database with existing trades.

use domain::time::HOUR_MS;
use store::{Store, StoreError, params, testing};

use crate::fixture::NOW;

const CORE: (&str, &str) = ("0001_core", include_str!("../../src/migrations/0001_core.sql"));
const USAGE: (&str, &str) = ("0005_usage", include_str!("../../src/migrations/0005_usage.sql"));

const OWNERS: &str = "INSERT INTO users (id, name, created_at_ms) VALUES ('u', 'ada', 0);
    INSERT INTO keys (id, user_id, name, tier, scopes, digest, key_index, ip_allowlist, webhook_secret_sealed, created_at_ms)
        VALUES ('a', 'u', 'a', 'mm', '', 'a', 0, '', '', 0), ('b', 'u', 'b', 'mm', '', 'b', 1, '', '', 0);
    INSERT INTO markets (id, chain_id, contract_address, question, tags, status, fee_bps, liquidity_usdc_atomic,
        opening_cost_wad, cost_wad, volume_usdc_atomic, trade_count, end_time_ms, as_of_block, as_of_ms, created_at_ms)
        VALUES ('m', 1, '', '', '[]', 'OPEN', 0, 0, '0', '0', 0, 0, 0, 0, 0, 0)";

/// Key, status, creation, end, and USDC moved.
type Row = (&'static str, &'static str, i64, Option<i64>, Option<i64>);

async fn insert_trades(store: &Store, rows: &'static [Row]) {
    const SQL: &str = "INSERT INTO trades (id, user_id, key_id, account, market_id, outcome_index, side, amount_text,
        amount_type, metadata, request_hash, correlation_id, intent_side, intent_usdc_atomic, intent_tokens_wad,
        deadline_ms, key_index, lane, reserved_usdc_atomic, status, created_at_ms, updated_at_ms, ended_at_ms,
        usdc_moved_atomic)
        VALUES ($1, 'u', $2, '', 'm', 0, 'buy', '1', 'usdc', '{}', '', '', 0, 0, '0', 0, 0, 0, 0, $3, $4, $4, $5, $6)";
    let inserted: Result<(), StoreError> = store
        .write((), move |tx, ()| {
            Box::pin(async move {
                for sql in OWNERS.split(';') {
                    tx.exec(sql, &[]).await?;
                }
                for (number, (key, status, created, ended, usdc)) in (0_i64..).zip(rows) {
                    let bound = params![number.to_string(), *key, *status, *created, *ended, *usdc];
                    tx.exec(SQL, &bound).await?;
                }
                Ok(())
            })
        })
        .await;
    inserted.unwrap();
}

async fn counted(store: &Store) -> Vec<(String, i64, String, i64, i64)> {
    const SQL: &str = "SELECT key_id, hour_ms, event, trades, volume_usdc_atomic FROM usage_trades
        ORDER BY key_id, hour_ms, event";
    let read: Result<_, StoreError> = store
        .read((), |tx, ()| {
            Box::pin(tx.list(SQL, &[], |row| {
                Ok((
                    row.get("key_id")?,
                    row.get("hour_ms")?,
                    row.get("event")?,
                    row.get("trades")?,
                    row.get("volume_usdc_atomic")?,
                ))
            }))
        })
        .await;
    read.unwrap()
}

async fn earlier_trades_are_counted_in_their_hours(store: Store) {
    testing::migrate_with(&store, &[CORE], NOW).await.unwrap();
    insert_trades(
        &store,
        &[
            ("a", "completed", HOUR_MS, Some(2 * HOUR_MS - 1), Some(5)),
            ("a", "completed", 2 * HOUR_MS - 1, Some(2 * HOUR_MS), Some(7)),
            ("a", "failed", HOUR_MS + 1, Some(HOUR_MS + 2), None),
            ("a", "rejected", HOUR_MS, Some(2 * HOUR_MS), None),
            ("a", "pending", 3 * HOUR_MS, None, None),
            ("b", "executing", HOUR_MS - 1, None, None),
        ],
    )
    .await;
    testing::migrate_with(&store, &[CORE, USAGE], NOW).await.unwrap();
    let expected = [
        ("a", HOUR_MS, "completed", 1, 5),
        ("a", HOUR_MS, "created", 4, 0),
        ("a", HOUR_MS, "failed", 1, 0),
        ("a", 2 * HOUR_MS, "completed", 1, 7),
        ("a", 2 * HOUR_MS, "rejected", 1, 0),
        ("a", 3 * HOUR_MS, "created", 1, 0),
        ("b", 0, "created", 1, 0),
    ];
    let row = |(key, hour, event, trades, volume): (&str, _, &str, _, _)| {
        (key.to_owned(), hour, event.to_owned(), trades, volume)
    };
    assert_eq!(counted(&store).await, expected.map(row));
}

#[test]
fn earlier_trades_are_counted_on_sqlite() {
    testing::block_on(async {
        earlier_trades_are_counted_in_their_hours(testing::empty_sqlite().await).await;
    });
}

#[test]
fn earlier_trades_are_counted_on_postgres() {
    testing::block_on(async {
        if let Some(store) = testing::empty_postgres().await {
            earlier_trades_are_counted_in_their_hours(store).await;
        }
    });
}
