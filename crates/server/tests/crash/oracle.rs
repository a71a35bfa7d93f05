//! What must be true after the last life.

use std::collections::{BTreeMap, BTreeSet};

use chain::EventKind;

use crate::clients::Told;
use crate::service::Service;

/// Compares what the clients were told with the database and with the chain's events.
pub async fn check(service: &Service, told: &Told) {
    let store = service.store().await;
    let rows: Result<Vec<(String, String, Option<String>)>, store::StoreError> = store
        .read((), |tx, ()| {
            Box::pin(async move {
                const SQL: &str = "SELECT trades.id, status, idempotency_key FROM trades
                    LEFT JOIN idempotency ON trade_id = trades.id";
                tx.list(SQL, &[], |row| Ok((row.text(0)?, row.text(1)?, row.opt_text(2)?))).await
            })
        })
        .await;
    let rows = rows.unwrap();
    let on_chain = events(service).await;

    let by_key: BTreeMap<&str, &str> =
        rows.iter().filter_map(|(id, _, key)| Some((key.as_deref()?, id.as_str()))).collect();
    for (key, id) in told {
        assert_eq!(by_key.get(key.as_str()), Some(&id.as_str()), "an acknowledged trade is not there, or another one is");
    }
    let keyed = rows.iter().filter(|(_, _, key)| key.is_some()).count();
    assert_eq!(keyed, by_key.len(), "an idempotency key has two trades");

    for (id, status, _) in &rows {
        let (made, failed) = on_chain.get(id).copied().unwrap_or_default();
        match status.as_str() {
            "completed" => assert_eq!((made, failed), (1, 0), "trade {id}"),
            "failed" => assert_eq!(made, 0, "trade {id}"),
            other => panic!("trade {id} ended {other}"),
        }
    }
    let known: BTreeSet<&str> = rows.iter().map(|(id, _, _)| id.as_str()).collect();
    for id in on_chain.keys() {
        assert!(known.contains(id.as_str()), "the chain has a trade that the database does not: {id}");
    }
    check_reservations(&store).await;
}

/// How often the chain made and how often it failed each trade.
async fn events(service: &Service) -> BTreeMap<String, (u32, u32)> {
    let chain = service.chain().await;
    let head = chain.head().await.unwrap().number;
    let mut counted: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    let mut from = 0;
    while from <= head {
        let to = head.min(from + 499);
        for event in chain.events(from, to).await.unwrap() {
            match event.kind {
                EventKind::Trade { trade_id: Some(id), .. } => counted.entry(id.to_string()).or_default().0 += 1,
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

async fn check_reservations(store: &store::Store) {
    let reserved: Result<i64, store::StoreError> = store
        .read((), |tx, ()| {
            Box::pin(async move {
                const SQL: &str = "SELECT CAST(COALESCE(SUM(reserved_usdc_atomic), 0) AS BIGINT) FROM accounts";
                Ok(tx.find(SQL, &[], |row| row.int(0)).await?.unwrap_or(0))
            })
        })
        .await;
    assert_eq!(reserved.unwrap(), 0, "no trade is open, so nothing is set aside");
}
