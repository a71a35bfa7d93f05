//! The public lists at size: which indexes they walk, and how long they take.
//!
//! A hundredth of the full size is filled in by statements; `FORETELL_LISTS_MARKETS` names another number of markets, and
//! then times are printed.

use std::time::Instant;

use domain::Timestamp;
use domain::ids::{MarketId, OrganizationId};
use store::listed::ListStatus;
use store::public::{
    Extent, MarketFilter, MarketSort, Order, ThreadFilter, ThreadSort, Window, list_markets, list_threads,
    list_trending,
};
use store::{Engine, Store, StoreError, params};

const ORGANIZATION: &str = "00000000-0000-7000-8000-0000000000aa";

fn markets() -> i64 {
    let named = std::env::var("FORETELL_LISTS_MARKETS").ok();
    named.and_then(|text| text.parse().ok()).unwrap_or(1_000)
}

/// Every tenth market is resolved, every hundredth cancelled; half of them belong to one organization.
async fn fill(store: &Store, markets: i64) {
    const NUMBERS: &str =
        "WITH RECURSIVE n (i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $2) ";
    const ID: &str = "'00000000-0000-7000-9000-' || SUBSTR('000000000000' || CAST(i AS TEXT), -12)";
    const PG_ID: &str = "'00000000-0000-7000-9000-' || LPAD(CAST(i AS TEXT), 12, '0')";
    let id = if store.engine() == Engine::Sqlite { ID } else { PG_ID };
    let status = "CASE WHEN i % 100 = 0 THEN 'CANCELLED' WHEN i % 10 = 0 THEN 'RESOLVED' ELSE 'OPEN' END";
    let thread = id.replace("-9000-", "-a000-").replace("CAST(i AS TEXT)", "CAST(i / 50 AS TEXT)");
    let statements = [
        format!(
            "{NUMBERS} INSERT INTO markets (id, chain_id, contract_address, chain_market_id, question, description, tags,
            status, fee_bps, liquidity_usdc_atomic, opening_cost_wad, cost_wad, volume_usdc_atomic, trade_count,
            end_time_ms, as_of_block, as_of_ms, created_at_ms) SELECT {id}, 1, '', i, 'Question ' || CAST(i AS TEXT),
            'A description of some length, as descriptions are. ', '[]', {status}, 0, 1, '0', '0', i * 7919 % 100003, 50,
            i * 31 % 1009, 0, 0, i FROM n"
        ),
        format!(
            "{NUMBERS} INSERT INTO outcomes (market_id, outcome_index, label, opening_wad, quantity_wad, volume_usdc_atomic,
            trade_count) SELECT {id}, o.k, 'Yes', '0', '0', 0, 0 FROM n CROSS JOIN (SELECT 0 AS k UNION ALL SELECT 1) o"
        ),
        format!(
            "{NUMBERS} INSERT INTO listed_markets (market_id, list_status, category, thread_id, organization_id, tags,
            title_key, probability_ppm, volume_usdc_atomic, participants, end_time_ms, resolved_at_ms, created_at_ms)
            SELECT {id}, {status}, 'category ' || CAST(i % 7 AS TEXT), {thread},
            CASE WHEN i % 2 = 0 THEN '{ORGANIZATION}' END, '[]', 'question ' || CAST(i AS TEXT), i * 6151 % 1000003,
            i * 7919 % 100003, 3, i * 31 % 1009, CASE WHEN i % 10 = 0 THEN i END, i FROM n"
        ),
        format!(
            "{NUMBERS} INSERT INTO search_terms (kind, term, id, weight) SELECT 'market', 'w' || CAST(i % 997 AS TEXT), {id}, 4
            FROM n"
        ),
        format!(
            "{NUMBERS} INSERT INTO trending_markets (window_ms, market_id, trade_count, volume_usdc_atomic, unique_traders,
            score_e4) SELECT 86400000, {id}, 1, 1, 1, i * 7919 % 100003 FROM n"
        ),
    ];
    // One statement text each time, so the numbers are bound.
    let done: Result<(), StoreError> = store
        .write((statements.map(|sql| &*Box::leak(sql.into_boxed_str())), markets), |tx, (statements, markets)| {
            Box::pin(async move {
                for sql in statements {
                    tx.exec(sql, &params![1i64, *markets]).await?;
                }
                tx.exec(
                    "INSERT INTO totals (scope, scope_id, open_markets, frozen_markets, resolved_markets,
                    cancelled_markets, refunded_markets, volume_usdc_atomic, participants) SELECT 'all', '', COUNT(*), 0,
                    0, 0, 0, 0, 0 FROM listed_markets WHERE list_status = 'OPEN'",
                    &[],
                )
                .await
                .map(drop)
            })
        })
        .await;
    done.unwrap();
    if store.engine() == Engine::Postgres {
        let analysed: Result<u64, StoreError> =
            store.write((), |tx, ()| Box::pin(tx.exec("ANALYZE", &[]))).await;
        analysed.unwrap();
    }
}

const SORTS: [MarketSort; 5] = [
    MarketSort::CreatedAt,
    MarketSort::TotalVolume,
    MarketSort::CurrentProbability,
    MarketSort::Title,
    MarketSort::EndTime,
];

fn filters() -> Vec<(&'static str, MarketFilter)> {
    let open = MarketFilter { statuses: vec![ListStatus::Open], ..MarketFilter::default() };
    let organization: OrganizationId = ORGANIZATION.parse().unwrap();
    vec![
        ("open", open.clone()),
        ("all", MarketFilter { statuses: vec![ListStatus::Open, ListStatus::Resolved], ..open.clone() }),
        ("category", MarketFilter { category: Some("category 3".to_owned()), ..open.clone() }),
        ("organization", MarketFilter { organization_id: Some(organization), ..open.clone() }),
        (
            "resolved",
            MarketFilter {
                statuses: vec![ListStatus::Resolved],
                resolved_after: Some(Timestamp::from_ms(100)),
                ..open.clone()
            },
        ),
        ("text", MarketFilter { text: Some("w99".to_owned()), ..open }),
    ]
}

async fn page(
    store: &Store,
    filter: &MarketFilter,
    sort: MarketSort,
    order: Order,
    offset: u32,
) -> (Vec<MarketId>, u64) {
    let extent = Extent { limit: 50, offset };
    let read: Result<_, StoreError> = store
        .read((filter.clone(), sort, order, extent), |tx, (filter, sort, order, extent)| {
            Box::pin(list_markets(tx, filter, *sort, *order, *extent))
        })
        .await;
    let listed = read.unwrap();
    (listed.items.into_iter().map(|item| item.market.id).collect(), listed.total)
}

async fn measured(name: &str, store: &Store, filter: &MarketFilter, sort: MarketSort, offset: u32) -> u64 {
    let began = Instant::now();
    let (_, total) = page(store, filter, sort, Order::Desc, offset).await;
    if markets() > 1_000 {
        println!("{:?} {name} {sort:?} at {offset}: {} us", store.engine(), began.elapsed().as_micros());
    }
    total
}

store::on_each_engine! {
    async fn pages_put_together_are_the_whole_list_in_both_directions(store: Store) {
        fill(&store, 230).await;
        for (name, filter) in filters() {
            for sort in SORTS {
                let mut walked = Vec::new();
                for offset in (0..250).step_by(50) {
                    walked.extend(page(&store, &filter, sort, Order::Desc, offset).await.0);
                }
                let (_, total) = page(&store, &filter, sort, Order::Desc, 100_000).await;
                if name != "organization" && name != "category" && name != "all" {
                    assert_eq!(total, walked.len() as u64, "{name} {sort:?}");
                }
                let different: std::collections::BTreeSet<_> = walked.iter().collect();
                assert_eq!(different.len(), walked.len(), "{name} {sort:?}");
                let (mut backwards, _) = page(&store, &filter, sort, Order::Asc, 0).await;
                if name != "text" {
                    backwards.reverse();
                    assert!(walked.ends_with(&backwards), "{name} {sort:?}");
                }
            }
        }
    }

    async fn every_list_answers_at_its_first_and_its_last_page(store: Store) {
        let began = Instant::now();
        fill(&store, markets()).await;
        println!("{:?}: {} markets in {:?}", store.engine(), markets(), began.elapsed());
        for (name, filter) in filters() {
            for sort in SORTS {
                let total = measured(name, &store, &filter, sort, 0).await;
                let last = u32::try_from(total.saturating_sub(1) / 50 * 50).unwrap();
                measured(name, &store, &filter, sort, last.max(u32::try_from(markets() * 8 / 10).unwrap())).await;
            }
        }
        let began = Instant::now();
        let trending: Result<_, StoreError> =
            store.read((), |tx, ()| Box::pin(list_trending(tx, Window::OneDay, None, 200))).await;
        assert_eq!(trending.unwrap().len(), 200);
        println!("{:?} trending: {:?}", store.engine(), began.elapsed());
        let threads: Result<_, StoreError> = store
            .read((), |tx, ()| {
                let extent = Extent { limit: 20, offset: 0 };
                Box::pin(async move {
                    list_threads(tx, &ThreadFilter::default(), ThreadSort::TotalVolume, Order::Desc, extent).await
                })
            })
            .await;
        assert_eq!(threads.unwrap().total, 0);
    }
}
