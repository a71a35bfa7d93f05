//! The accounts that have gained and traded most.

use app::leaderboard::Ranked;
use axum::extract::State;
use axum::response::Response;
use domain::{Cents, UsdcDelta};
use serde::Serialize;
use store::public::{LeaderSort, Timeframe};
use utoipa::ToSchema;

use super::Refusal;
use super::answer::{Meta, Pagination};
use super::query::{Asked, Parameters, Query, Window};
use crate::http::Shared;
use crate::openapi::formats::Address;

/// A page of the leaderboard.
#[derive(Debug, Serialize, ToSchema)]
pub struct LeaderboardAnswer {
    leaders: Vec<LeaderRecord>,
    /// `24h`, `7d`, `30d` or `all`.
    timeframe: &'static str,
    pagination: Pagination,
}

/// An account's figures.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Leader)]
#[serde(rename_all = "camelCase")]
struct LeaderRecord {
    /// From 1.
    rank: u64,
    #[schema(value_type = Address)]
    address: String,
    /// What sales and redemptions of the timeframe gained over what their tokens had cost, in cents; below zero a loss.
    realized_profit: i64,
    /// What its open positions would gain at current prices, whatever the timeframe, in cents; below zero a loss.
    unrealized_profit: i64,
    /// The sum of both, in cents.
    total_profit: i64,
    /// USDC traded in the timeframe.
    total_volume: Cents,
    trade_count: u64,
}

const TIMEFRAMES: &[(&str, Timeframe)] = &[
    ("all", Timeframe::All),
    ("24h", Timeframe::OneDay),
    ("7d", Timeframe::SevenDays),
    ("30d", Timeframe::ThirtyDays),
];
const SORTS: &[(&str, LeaderSort)] =
    &[("total", LeaderSort::Total), ("realized", LeaderSort::Realized), ("volume", LeaderSort::Volume)];
/// The words of the other name of `sort`.
const SORTS_BY: &[(&str, LeaderSort)] = &[("profit", LeaderSort::Total), ("volume", LeaderSort::Volume)];

/// `timeframe`, `sort` or `sortBy`, `limit`, `offset`.
#[derive(Debug)]
pub struct LeaderboardQuery {
    timeframe: Timeframe,
    sort: LeaderSort,
    window: Window,
}

impl Parameters for LeaderboardQuery {
    const NAMES: &'static [&'static str] = &["timeframe", "sort", "sortBy", "limit", "offset"];

    fn read(asked: &mut Asked<'_, '_>) -> Option<Self> {
        let timeframe = asked.word("timeframe", TIMEFRAMES);
        let sort = match asked.text("sortBy") {
            Some(_) if asked.text("sort").is_some() => {
                asked.wrong("sortBy", "must not be sent with sort: it is another name of it");
                None
            }
            Some(_) => asked.word("sortBy", SORTS_BY),
            None => asked.word("sort", SORTS),
        };
        let window = asked.window();
        Some(Self { timeframe: timeframe?, sort: sort?, window: window? })
    }
}

/// `GET /api/leaderboard`.
#[utoipa::path(
    get, path = "/api/leaderboard", operation_id = "getLeaderboard", tag = "Community", summary = "Read the leaderboard",
    description = "The accounts that did something in the timeframe, the greatest first; ties by the address. By default \
        they are ranked by total profit: the profit realised in the timeframe and what open positions would gain at current \
        prices, whatever the timeframe. The last 24 hours begin at a whole hour, the last days at a whole day, UTC. A \
        leaderboard has a thousand places and may be five seconds old; the value of positions may be half a minute old.",
    params(
        ("timeframe" = Option<String>, Query, pattern = "^(24h|7d|30d|all)$", example = "7d", description = "24h, 7d, 30d or all (the default)."),
        ("sort" = Option<String>, Query, pattern = "^(total|realized|volume)$", example = "realized",
            description = "total (the default): realised and unrealised profit. realized: only realised profit. volume: \
                USDC traded."),
        ("sortBy" = Option<String>, Query, pattern = "^(profit|volume)$",
            description = "Another name of sort, with profit for total."),
    ),
    responses((status = 200, description = "A page of accounts.", body = LeaderboardAnswer)),
)]
pub async fn leaderboard(
    State(app): State<Shared>,
    query: Query<LeaderboardQuery>,
    meta: Meta,
) -> Result<Response, Refusal> {
    let Query { parameters: LeaderboardQuery { timeframe, sort, window }, name } = query;
    let read = async || {
        let listed = app::leaderboard::leaderboard(&app.ctx, timeframe, sort, window.extent()).await?;
        let pagination = Pagination::new(window, listed.items.len(), listed.total);
        let leaders = listed.items.into_iter().map(LeaderRecord::new);
        let timeframe =
            TIMEFRAMES.iter().find(|(_, meant)| *meant == timeframe).map_or("all", |(word, _)| *word);
        Ok((LeaderboardAnswer { leaders: leaders.collect(), timeframe, pagination }, None))
    };
    meta.kept(&app, &name, read).await
}

impl LeaderRecord {
    fn new(row: Ranked) -> Self {
        let Ranked { rank, leader, unrealized_pnl } = row;
        Self {
            rank,
            address: leader.account,
            total_profit: cents_floor(UsdcDelta(leader.realized_pnl.0.saturating_add(unrealized_pnl.0))),
            realized_profit: cents_floor(leader.realized_pnl),
            unrealized_profit: cents_floor(unrealized_pnl),
            total_volume: leader.volume.to_cents_floor(),
            trade_count: leader.trade_count,
        }
    }
}

/// Whole cents, rounded down: a loss is not shown smaller than it is.
const fn cents_floor(delta: UsdcDelta) -> i64 {
    delta.0.div_euclid(10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profits_are_whole_cents_rounded_down_on_both_sides_of_zero() {
        for (atomic, cents) in [(0, 0), (9_999, 0), (10_000, 1), (-1, -1), (-10_000, -1), (-10_001, -2)] {
            assert_eq!(cents_floor(UsdcDelta(atomic)), cents, "{atomic}");
        }
    }
}
