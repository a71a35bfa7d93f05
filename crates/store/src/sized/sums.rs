//! The sums over the trades.

use domain::candle::Interval;
use domain::ids::MarketId;
use domain::trending::score_e4;
use domain::{Timestamp, Usdc};

use super::markets::COST_WAD;
use super::{MARKETS, run};
use crate::public::RankingWindow;
use crate::traders::{BUCKET_MS, Edges, SPANS_MS, oldest};
use crate::{SqlValue, Store, StoreError, Tx, params};

/// Scopes, and the columns of `listed_markets` that refer to them.
const SCOPES: [(&str, &str); 4] = [
    ("thread", "thread_id"),
    ("organization", "organization_id"),
    ("partner", "partner_id"),
    ("chapter", "chapter_id"),
];

/// Writes every sum.
pub async fn fill(store: &Store, now: Timestamp) -> Result<(), StoreError> {
    let edges = edges(store, now).await?;
    run(store, of_markets()).await?;
    run(store, of_scopes()).await?;
    run(store, of_times(&edges)).await?;
    for (window_ms, start_ms) in edges.0 {
        store.write((window_ms, start_ms), |tx, (ms, start)| Box::pin(trending(tx, *ms, *start))).await?;
    }
    run(store, candles()).await?;
    run(store, vec!["DROP TABLE sized_deeds".to_owned()]).await
}

/// Moves the trending windows to the current time and returns their starts.
async fn edges(store: &Store, now: Timestamp) -> Result<Edges, StoreError> {
    const EDGES: &str = "SELECT window_ms, start_ms FROM trending_windows ORDER BY window_ms";
    let start = |window: RankingWindow| (now.ms() - window.ms()).div_euclid(BUCKET_MS) * BUCKET_MS;
    let moves = RankingWindow::ALL.map(|window| {
        let (start, ms) = (start(window), window.ms());
        format!(
            "UPDATE trending_windows SET start_ms = {start} WHERE window_ms = {ms} AND start_ms < {start}"
        )
    });
    run(store, moves.to_vec()).await?;
    store
        .read((), |tx, ()| {
            Box::pin(async move {
                Ok(Edges(tx.list(EDGES, &[], |row| Ok((row.get("window_ms")?, row.get("start_ms")?))).await?))
            })
        })
        .await
}

fn of_markets() -> Vec<String> {
    vec![
        format!(
            "CREATE TABLE sized_deeds AS SELECT market_id, account, outcome_index, COUNT(*) AS trades,
            CAST(SUM(CASE WHEN kind = 'buy' THEN 1 ELSE 0 END) AS BIGINT) AS buys,
            CAST(SUM(usdc_atomic) AS BIGINT) AS volume, CAST(SUM(realized_pnl_usdc_atomic) AS BIGINT) AS realized,
            MAX(created_at_ms) AS last_ms FROM movements WHERE market_id LIKE '{MARKETS}%'
            GROUP BY market_id, account, outcome_index"
        ),
        "CREATE INDEX sized_deeds_market ON sized_deeds (market_id)".to_owned(),
        "INSERT INTO positions (account, market_id, outcome_index, tokens_wad, cost_basis_usdc_atomic,
        realized_pnl_usdc_atomic, fees_paid_usdc_atomic, updated_at_ms) SELECT account, market_id, outcome_index,
        CAST(3 * buys - trades AS TEXT) || '000000000000000000', 1500000 * buys - 500000 * trades, realized, 0, last_ms
        FROM sized_deeds"
            .to_owned(),
        "INSERT INTO traders (market_id, account, trade_count, volume_usdc_atomic, realized_pnl_usdc_atomic,
        last_trade_ms) SELECT market_id, account, CAST(SUM(trades) AS BIGINT), CAST(SUM(volume) AS BIGINT),
        CAST(SUM(realized) AS BIGINT), MAX(last_ms) FROM sized_deeds GROUP BY market_id, account"
            .to_owned(),
        format!(
            "UPDATE markets SET volume_usdc_atomic = COALESCE((SELECT CAST(SUM(volume) AS BIGINT) FROM sized_deeds d
            WHERE d.market_id = markets.id), 0), trade_count = COALESCE((SELECT CAST(SUM(trades) AS BIGINT)
            FROM sized_deeds d WHERE d.market_id = markets.id), 0) WHERE id LIKE '{MARKETS}%'"
        ),
        format!(
            "UPDATE outcomes SET volume_usdc_atomic = COALESCE((SELECT CAST(SUM(volume) AS BIGINT) FROM sized_deeds d
            WHERE d.market_id = outcomes.market_id AND d.outcome_index = outcomes.outcome_index), 0),
            trade_count = COALESCE((SELECT CAST(SUM(trades) AS BIGINT) FROM sized_deeds d WHERE
            d.market_id = outcomes.market_id AND d.outcome_index = outcomes.outcome_index), 0)
            WHERE market_id LIKE '{MARKETS}%'"
        ),
        format!(
            "UPDATE listed_markets SET volume_usdc_atomic = (SELECT m.volume_usdc_atomic FROM markets m
            WHERE m.id = listed_markets.market_id), participants = (SELECT COUNT(*) FROM traders t
            WHERE t.market_id = listed_markets.market_id), list_status = CASE WHEN list_status = 'CANCELLED' AND NOT EXISTS
            (SELECT 1 FROM traders t WHERE t.market_id = listed_markets.market_id) THEN 'REFUNDED' ELSE list_status END
            WHERE market_id LIKE '{MARKETS}%'"
        ),
        format!(
            "INSERT INTO announcements (market_id, after_account, after_outcome_index, told_account, ended_at_ms)
            SELECT id, '', -1, '', as_of_ms FROM markets WHERE id LIKE '{MARKETS}%' AND resolved_at_ms IS NOT NULL"
        ),
        format!(
            "INSERT INTO payout_scans (market_id, payouts, after_account, after_outcome_index, ended_at_ms)
            SELECT id, COALESCE(payouts, ''), '', -1, as_of_ms FROM markets WHERE id LIKE '{MARKETS}%' AND resolved_at_ms IS NOT NULL"
        ),
    ]
}

fn of_scopes() -> Vec<String> {
    const COUNTS: &str = "CAST(SUM(CASE WHEN list_status = 'OPEN' THEN 1 ELSE 0 END) AS BIGINT),
        CAST(SUM(CASE WHEN list_status = 'FROZEN' THEN 1 ELSE 0 END) AS BIGINT),
        CAST(SUM(CASE WHEN list_status = 'RESOLVED' THEN 1 ELSE 0 END) AS BIGINT),
        CAST(SUM(CASE WHEN list_status = 'CANCELLED' THEN 1 ELSE 0 END) AS BIGINT),
        CAST(SUM(CASE WHEN list_status = 'REFUNDED' THEN 1 ELSE 0 END) AS BIGINT),
        CAST(SUM(volume_usdc_atomic) AS BIGINT)";
    let total = |scope: &str, id: &str, participants: &str| {
        format!(
            "INSERT INTO totals (scope, scope_id, open_markets, frozen_markets, resolved_markets, cancelled_markets,
            refunded_markets, volume_usdc_atomic, participants) SELECT '{scope}', {id}, {COUNTS}, {participants}
            FROM listed_markets l WHERE market_id LIKE '{MARKETS}%' AND {id} IS NOT NULL GROUP BY {id}
            ON CONFLICT (scope, scope_id) DO UPDATE SET open_markets = totals.open_markets + excluded.open_markets,
            frozen_markets = totals.frozen_markets + excluded.frozen_markets,
            resolved_markets = totals.resolved_markets + excluded.resolved_markets,
            cancelled_markets = totals.cancelled_markets + excluded.cancelled_markets,
            refunded_markets = totals.refunded_markets + excluded.refunded_markets,
            volume_usdc_atomic = totals.volume_usdc_atomic + excluded.volume_usdc_atomic"
        )
    };
    let mut statements: Vec<String> = Vec::new();
    for (scope, column) in SCOPES {
        statements.push(format!(
            "INSERT INTO participants (scope, scope_id, account, markets) SELECT '{scope}', l.{column}, t.account, COUNT(*)
            FROM traders t JOIN listed_markets l ON l.market_id = t.market_id WHERE l.{column} IS NOT NULL
            AND l.market_id LIKE '{MARKETS}%' GROUP BY l.{column}, t.account"
        ));
        let of_scope = format!(
            "(SELECT COUNT(*) FROM participants p WHERE p.scope = '{scope}' AND p.scope_id = l.{column})"
        );
        statements.push(total(scope, column, &of_scope));
    }
    statements.push(total("category", "category", "0"));
    statements.push(total("all", "SUBSTR(market_id, 1, 0)", "0"));
    statements
}

fn of_times(edges: &Edges) -> Vec<String> {
    let week = edges.of(RankingWindow::SevenDays);
    let mut statements = vec![
        format!(
            "INSERT INTO market_buckets (start_ms, market_id, trade_count, volume_usdc_atomic)
            SELECT created_at_ms - created_at_ms % {BUCKET_MS}, market_id, COUNT(*), CAST(SUM(usdc_atomic) AS BIGINT)
            FROM movements WHERE created_at_ms >= {week} AND market_id LIKE '{MARKETS}%'
            GROUP BY created_at_ms - created_at_ms % {BUCKET_MS}, market_id"
        ),
        "INSERT INTO leaderboard (account, trade_count, volume_usdc_atomic, realized_pnl_usdc_atomic) SELECT account,
        CAST(SUM(trades) AS BIGINT), CAST(SUM(volume) AS BIGINT), CAST(SUM(realized) AS BIGINT) FROM sized_deeds
        GROUP BY account"
            .to_owned(),
    ];
    statements.extend(SPANS_MS.map(|span| {
        let oldest = oldest(span, edges);
        format!(
            "INSERT INTO leaderboard_spans (span_ms, start_ms, account, trade_count, volume_usdc_atomic,
            realized_pnl_usdc_atomic) SELECT {span}, created_at_ms - created_at_ms % {span}, account, COUNT(*),
            CAST(SUM(usdc_atomic) AS BIGINT), CAST(SUM(realized_pnl_usdc_atomic) AS BIGINT) FROM movements
            WHERE created_at_ms >= {oldest} AND market_id LIKE '{MARKETS}%'
            GROUP BY created_at_ms - created_at_ms % {span}, account"
        )
    }));
    statements
}

/// Ranks the markets of a window. The score needs logarithms, so it is computed in Rust.
async fn trending(tx: &mut Tx, window_ms: i64, start_ms: i64) -> Result<(), StoreError> {
    const RANKED: &str = "SELECT b.market_id, CAST(SUM(b.trade_count) AS BIGINT) AS trades,
        CAST(SUM(b.volume_usdc_atomic) AS BIGINT) AS volume,
        (SELECT COUNT(*) FROM traders t WHERE t.market_id = b.market_id AND t.last_trade_ms >= $1) AS traders
        FROM market_buckets b WHERE b.start_ms >= $1 AND b.market_id LIKE $2 GROUP BY b.market_id";
    const PUT: &str = "INSERT INTO trending_markets (window_ms, market_id, trade_count, volume_usdc_atomic,
        unique_traders, score_e4) VALUES ($1, $2, $3, $4, $5, $6)";
    let figures = tx
        .list(RANKED, &params![start_ms, format!("{MARKETS}%")], |row| {
            Ok((row.get("market_id")?, row.get("trades")?, row.get("volume")?, row.get("traders")?))
        })
        .await?;
    let int = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let rows: Vec<Vec<SqlValue<'_>>> = figures
        .into_iter()
        .map(|(id, trades, volume, traders): (MarketId, u64, u64, u64)| {
            let score = score_e4(traders, trades, Usdc::from_atomic(volume));
            params![window_ms, id, int(trades), int(volume), int(traders), score].to_vec()
        })
        .collect();
    tx.exec_each(PUT, &rows).await.map(drop)
}

/// The candles of market 0, whose price never changes.
fn candles() -> Vec<String> {
    let of = |interval: Interval| {
        let ms = interval.ms();
        format!(
            "INSERT INTO candles (market_id, interval_ms, start_ms, at_ms, block_number, trade_count, open_cost_wad,
            high_cost_wad, low_cost_wad, cost_wad, quantities, traded) SELECT '{MARKETS}000000000000', {ms}, start_ms, at_ms,
            block_number, CAST(SUM(trades) OVER (ORDER BY start_ms) AS BIGINT), '{COST_WAD}', '{COST_WAD}', '{COST_WAD}',
            '{COST_WAD}', '[\"{COST_WAD}\",\"{COST_WAD}\"]', '[]' FROM (SELECT created_at_ms - created_at_ms % {ms} AS start_ms,
            MAX(created_at_ms) AS at_ms, MAX(block_number) AS block_number, COUNT(*) AS trades FROM movements
            WHERE market_id = '{MARKETS}000000000000' GROUP BY created_at_ms - created_at_ms % {ms}) b"
        )
    };
    Interval::STORED.into_iter().map(of).collect()
}
