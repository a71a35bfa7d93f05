//! Candle backlog of databases that are older than candles.

use domain::Timestamp;
use domain::ids::MarketId;
use store::{Store, StoreError, params, testing};

const CORE: &[(&str, &str)] = &[("0001_core", include_str!("../../src/migrations/0001_core.sql"))];

async fn markets_without_candles(store: Store) {
    const MARKET: &str = "INSERT INTO markets (id, chain_id, contract_address, question, tags, status, fee_bps,
        liquidity_usdc_atomic, opening_cost_wad, cost_wad, volume_usdc_atomic, trade_count, end_time_ms, as_of_block,
        as_of_ms, created_at_ms) VALUES ($1, 1, '', '', '[]', 'OPEN', 0, 1, '0', '0', 0, 0, 0, 0, 0, 0)";
    const MOVEMENT: &str =
        "INSERT INTO movements (id, block_number, log_index, tx_hash, kind, market_id, outcome_index,
        account, usdc_atomic, tokens_wad, fee_atomic, created_at_ms)
        VALUES ($1, 0, 0, '', 'buy', $2, 0, '', 0, '0', 0, 0)";
    testing::migrate_with(&store, CORE, Timestamp::from_ms(0)).await.unwrap();
    let ids = ["01", "02"].map(|n| format!("00000000-0000-7000-8000-0000000000{n}").parse::<MarketId>());
    let [traded, untraded] = ids.map(Result::unwrap);
    let filled: Result<(), StoreError> = store
        .write([traded, untraded], |tx, [traded, untraded]| {
            Box::pin(async move {
                for id in [*traded, *untraded] {
                    tx.exec(MARKET, &params![id]).await?;
                }
                for id in ["a", "b"] {
                    tx.exec(MOVEMENT, &params![id, *traded]).await?;
                }
                Ok(())
            })
        })
        .await;
    filled.unwrap();
    store.migrate(Timestamp::from_ms(0)).await.unwrap();
    let behind: Result<_, StoreError> = store
        .read([traded, untraded], |tx, [traded, untraded]| {
            Box::pin(async move {
                let first = store::candles::find_behind(tx).await?;
                let both = [
                    store::candles::is_behind(tx, *traded).await?,
                    store::candles::is_behind(tx, *untraded).await?,
                ];
                Ok((first.map(|behind| (behind.market_id, behind.after_movement_id)), both))
            })
        })
        .await;
    assert_eq!(behind.unwrap(), (Some((traded, String::new())), [true, false]));
}

#[tokio::test]
async fn markets_with_earlier_movements_are_in_the_backlog_on_sqlite() {
    markets_without_candles(testing::empty_sqlite().await).await;
}

#[tokio::test]
async fn markets_with_earlier_movements_are_in_the_backlog_on_postgres() {
    if let Some(store) = testing::empty_postgres().await {
        markets_without_candles(store).await;
    }
}
