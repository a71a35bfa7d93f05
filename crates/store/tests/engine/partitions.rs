//! The commands of `docs/partitioning.md`, run on a copy of the schema, and what they promise.

use std::collections::BTreeMap;

use alloy_primitives::Address;
use domain::ids::{CorrelationId, KeyId, MarketId, TradeId, UserId};
use domain::trade::{AmountType, Side, State, Transition};
use domain::{Timestamp, Usdc, Wad};
use store::trades::{Creation, Trade};
use store::{Engine, Store, StoreError, Tx, params};

const ADA: &str = "00000000-0000-7000-8000-000000000001";
const KEY: &str = "00000000-0000-7000-8000-000000000002";
const MARKET: &str = "00000000-0000-7000-8000-000000000003";
/// The middles of January, February and March 2027.
const MONTHS: [Timestamp; 3] =
    [Timestamp::from_s(1_800_000_000), Timestamp::from_s(1_802_600_000), Timestamp::from_s(1_805_000_000)];

/// Returns the SQL of the page, one text for each step.
fn steps() -> Vec<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/partitioning.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```sql\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// A pending trade whose id begins with its time.
fn trade(at: Timestamp, number: u64) -> Trade {
    let (high, low) = (at.ms() >> 16, at.ms() & 0xffff);
    let id: TradeId = format!("{high:08x}-{low:04x}-7000-8000-{number:012}").parse().unwrap();
    Trade {
        id,
        user_id: ADA.parse::<UserId>().unwrap(),
        key_id: KEY.parse::<KeyId>().unwrap(),
        account: Address::ZERO,
        market_id: MARKET.parse::<MarketId>().unwrap(),
        outcome_index: 0,
        side: Side::Buy,
        amount_text: "1".into(),
        amount_type: AmountType::Usdc,
        metadata: BTreeMap::new(),
        client_request_id: Some(format!("mine:{number}")),
        request_hash: String::new(),
        correlation_id: CorrelationId::of(id),
        intent_side: 0,
        intent_usdc: Usdc::from_whole(1),
        intent_tokens: Wad::ZERO,
        max_slippage_bps: None,
        volume: Usdc::from_whole(1),
        waiting_for: None,
        deadline: at,
        key_index: 0,
        lane: 0,
        nonce: None,
        batch_id: None,
        reserved: Usdc::from_whole(1),
        state: State::Pending,
        held_until: None,
        created_at: at,
        updated_at: at,
        ended_at: None,
        recovered_at: None,
        is_from_agent: false,
    }
}

async fn set_up(tx: &mut Tx) -> Result<(), StoreError> {
    const USER: &str = "INSERT INTO users (id, name, created_at_ms) VALUES ($1, 'ada', 0)";
    const KEY_ROW: &str =
        "INSERT INTO keys (id, user_id, name, tier, scopes, digest, key_index, ip_allowlist,
        webhook_secret_sealed, created_at_ms) VALUES ($1, $2, 'a', 'mm', '', 'a', 0, '', '', 0)";
    const MARKET_ROW: &str = "INSERT INTO markets (id, chain_id, contract_address, question, tags, status, fee_bps,
        liquidity_usdc_atomic, opening_cost_wad, cost_wad, volume_usdc_atomic, trade_count, end_time_ms, as_of_block,
        as_of_ms, created_at_ms) VALUES ($1, 1, '', '', '[]', 'OPEN', 0, 0, '0', '0', 0, 0, 0, 0, 0, 0)";
    tx.exec(USER, &params![ADA]).await?;
    tx.exec(KEY_ROW, &params![KEY, ADA]).await?;
    tx.exec(MARKET_ROW, &params![MARKET]).await.map(drop)
}

async fn insert(store: &Store, trade: &Trade) -> Result<(), StoreError> {
    let creation = Creation { trade: trade.clone(), idempotency: None, settled: None };
    store
        .write(creation, |tx, creation| {
            Box::pin(async move {
                let trade = &creation.trade;
                let mut group = store::trades::load(tx, &[creation], None).await?;
                group.accept(trade)?;
                let created = Transition::created(&trade.state, trade.created_at);
                store::trades::write(tx, group, &[(trade, created)], &[]).await
            })
        })
        .await
}

async fn find(store: &Store, id: TradeId) -> Option<Trade> {
    let found: Result<_, StoreError> =
        store.read(id, |tx, id| Box::pin(store::trades::find(tx, ADA.parse().unwrap(), *id))).await;
    found.unwrap()
}

/// Runs the statements of a step. A transaction of the page is one unit of work here.
async fn run(store: &Store, name: &'static str, step: &str) {
    let sql: &'static str = step.replace("BEGIN;", "").replace("COMMIT;", "").leak();
    store::testing::migrate_with(store, &[(name, sql)], MONTHS[0]).await.unwrap();
}

/// Returns the plan of a look-up by id.
async fn plan(store: &Store, id: TradeId) -> String {
    let sql: &'static str =
        format!("EXPLAIN SELECT * FROM trades WHERE user_id = '{ADA}' AND id = '{id}'").leak();
    let lines: Result<Vec<String>, StoreError> =
        store.read(sql, |tx, sql| Box::pin(tx.list(sql, &[], |row| row.only()))).await;
    lines.unwrap().join("\n")
}

#[tokio::test]
async fn the_documented_plan_divides_trades_by_month_and_detaches_one() {
    let Some(store) = store::testing::postgres().await else { return };
    assert_eq!(store.engine(), Engine::Postgres);
    let ready: Result<(), StoreError> = store.write((), |tx, ()| Box::pin(set_up(tx))).await;
    ready.unwrap();
    let [january, february, march] = MONTHS;
    let (first, second, third) = (trade(january, 1), trade(february, 2), trade(march, 3));
    assert_eq!(insert(&store, &first).await, Ok(()));
    let steps = steps();
    let [own_ids, bound, swap, months, detach] = &steps[..] else { panic!("{} steps", steps.len()) };
    for (name, step) in [("own_ids", own_ids), ("bound", bound), ("swap", swap), ("months", months)] {
        run(&store, name, step).await;
    }

    // The service's own statements work on all months.
    for trade in [&second, &third] {
        assert_eq!(insert(&store, trade).await, Ok(()));
        let taken = insert(&store, trade).await;
        assert!(matches!(taken, Err(StoreError::Conflict { .. })), "the id is unique: {taken:?}");
    }
    for (trade, partition) in
        [(&first, "trades_first"), (&second, "trades_2027_02"), (&third, "trades_2027_03")]
    {
        assert_eq!(find(&store, trade.id).await.as_ref(), Some(trade));
        let plan = plan(&store, trade.id).await;
        assert_eq!(plan.matches(" on trades_").count(), 1, "{plan}");
        assert!(plan.contains(partition), "{plan}");
    }
    let taken: Result<u64, StoreError> = store
        .write((), |tx, ()| {
            let sql = "INSERT INTO client_requests (user_id, client_request_id, trade_id) SELECT user_id,
                client_request_id, id FROM trades ON CONFLICT DO NOTHING";
            Box::pin(tx.exec(sql, &[]))
        })
        .await;
    assert_eq!(taken.unwrap(), 2, "the id of the first trade was taken over by the plan");

    run(&store, "detach", detach).await;
    assert_eq!(find(&store, second.id).await, None);
    for trade in [&first, &third] {
        assert_eq!(find(&store, trade.id).await.as_ref(), Some(trade));
    }
    let history: Result<_, StoreError> =
        store.read(first.id, |tx, id| Box::pin(store::trades::history(tx, *id))).await;
    assert_eq!(history.unwrap().len(), 1, "the trace of a month that stays is kept");
}
