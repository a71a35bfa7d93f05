//! Invariants that must hold at the end of a test.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use chain::{Chain, EventKind};
use store::{Store, StoreError};

use crate::clients::AcknowledgedTrades;

/// The time within which at least one of the open trades must end, on a machine with other tests.
const STALLED: Duration = Duration::from_secs(90);

/// Waits until all trades have ended.
///
/// # Panics
/// If none ends for a minute and a half.
pub async fn settled(store: &Store) {
    let mut polls = tokio::time::interval(Duration::from_millis(20));
    let (mut fewest, mut since) = (i64::MAX, Instant::now());
    while since.elapsed() < STALLED {
        polls.tick().await;
        match number(store, "SELECT COUNT(*) FROM trades WHERE ended_at_ms IS NULL").await {
            0 => return,
            still_open if still_open < fewest => (fewest, since) = (still_open, Instant::now()),
            _ => {}
        }
    }
    panic!("{fewest} trades are still open and none ends: {:?}", open(store).await);
}

/// Returns the ids, statuses and lanes of the first open trades.
async fn open(store: &Store) -> Vec<(String, String, i64)> {
    const SQL: &str = "SELECT id, status, lane FROM trades WHERE ended_at_ms IS NULL ORDER BY id LIMIT 20";
    let read: Result<_, StoreError> = store
        .read((), |tx, ()| {
            Box::pin(tx.list(SQL, &[], |row| Ok((row.get("id")?, row.get("status")?, row.get("lane")?))))
        })
        .await;
    read.unwrap()
}

/// Returns the number that a statement selects.
pub async fn number(store: &Store, sql: &'static str) -> i64 {
    let found: Result<Option<i64>, StoreError> = store
        .read(sql, |tx, sql| Box::pin(async move { tx.find(sql, &[], |row| row.only::<i64>()).await }))
        .await;
    found.unwrap().unwrap()
}

/// A trade: id, status, idempotency key, and error code.
type Row = (String, String, Option<String>, Option<String>);

/// Compares the acknowledged trades with the database and with the chain's events.
pub async fn check(store: &Store, chain: &Chain, acknowledged: &AcknowledgedTrades) {
    let rows: Result<Vec<Row>, StoreError> = store
        .read((), |tx, ()| {
            Box::pin(async move {
                const SQL: &str = "SELECT trades.id, status, idempotency_key, error_code FROM trades
                    LEFT JOIN idempotency ON trade_id = trades.id";
                tx.list(SQL, &[], |row| {
                    Ok((
                        row.get("id")?,
                        row.get("status")?,
                        row.get("idempotency_key")?,
                        row.get("error_code")?,
                    ))
                })
                .await
            })
        })
        .await;
    let rows = rows.unwrap();
    let on_chain = events(chain).await;

    let by_key: BTreeMap<&str, &str> =
        rows.iter().filter_map(|(id, _, key, _)| Some((key.as_deref()?, id.as_str()))).collect();
    for (key, id) in acknowledged {
        assert_eq!(
            by_key.get(key.as_str()),
            Some(&id.as_str()),
            "an acknowledged trade is not there, or another one is"
        );
    }
    let keyed = rows.iter().filter(|(_, _, key, _)| key.is_some()).count();
    assert_eq!(keyed, by_key.len(), "an idempotency key has two trades");

    for (id, status, _, reason) in &rows {
        let (made, failed) = on_chain.get(id).copied().unwrap_or_default();
        match status.as_str() {
            "completed" => assert_eq!((made, failed), (1, 0), "trade {id}"),
            "failed" => assert_eq!(made, 0, "trade {id}"),
            other => panic!("trade {id} ended {other}: {reason:?}"),
        }
    }
    let known: BTreeSet<&str> = rows.iter().map(|(id, ..)| id.as_str()).collect();
    for id in on_chain.keys() {
        assert!(known.contains(id.as_str()), "the chain has a trade that the database does not: {id}");
    }
    let reserved = "SELECT CAST(COALESCE(SUM(reserved_usdc_atomic), 0) AS BIGINT) FROM accounts";
    assert_eq!(number(store, reserved).await, 0, "no trade is open, so nothing is set aside");
    no_partial_rows(store).await;
}

/// Asserts that every trade has all the rows that are written with it, and that no such row lacks
/// its trade.
pub async fn no_partial_rows(store: &Store) {
    let lost = "SELECT COUNT(*) FROM idempotency WHERE trade_id NOT IN (SELECT id FROM trades)";
    assert_eq!(number(store, lost).await, 0, "an idempotency key without its trade");
    let untraced =
        "SELECT COUNT(*) FROM trades WHERE id NOT IN (SELECT trade_id FROM trace_events WHERE seq = 1)";
    assert_eq!(number(store, untraced).await, 0, "a trade without its first trace event");
    let spent = "SELECT CAST(SUM(spent_usdc_atomic) AS BIGINT) - (
        SELECT CAST(COALESCE(SUM(trades.reserved_usdc_atomic), 0) AS BIGINT) FROM trades
        JOIN key_spend ON key_spend.key_id = trades.key_id WHERE created_at_ms > since_ms) FROM key_spend";
    assert_eq!(number(store, spent).await, 0, "the keys' spend is not the sum of their trades");
}

/// Returns how often the chain executed and failed each trade.
async fn events(chain: &Chain) -> BTreeMap<String, (u32, u32)> {
    let head = chain.head().await.unwrap().number;
    let mut counted: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    let mut from = 0;
    while from <= head {
        let to = head.min(from + 499);
        for event in chain.events(from, to).await.unwrap() {
            match event.kind {
                EventKind::Trade { trade_id: Some(id), .. } => {
                    counted.entry(id.to_string()).or_default().0 += 1
                }
                EventKind::IntentFailed { trade_id, .. } => {
                    counted.entry(trade_id.to_string()).or_default().1 += 1;
                }
                _ => {}
            }
        }
        from = to + 1;
    }
    counted
}

/// Asserts that every trade that ended has exactly one event for its end.
pub async fn one_event_each(store: &Store) {
    let missing = "SELECT COUNT(*) FROM trades WHERE ended_at_ms IS NOT NULL AND (
        SELECT COUNT(*) FROM events WHERE trade_id = trades.id
        AND kind IN ('trade.completed', 'trade.failed', 'trade.rejected', 'trade.expired')) <> 1";
    assert_eq!(number(store, missing).await, 0, "trades whose end has no event, or several");
}
