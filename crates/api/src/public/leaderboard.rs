//! The leaderboard: accounts ranked by profit or volume.

use app::leaderboard::Ranked;
use axum::extract::State;
use axum::response::Response;
use domain::{Cents, UsdcDelta};
use http_kit::{NamedQuery, Parameters, Problem, RawQuery, Shared};
use serde::Serialize;
use store::public::{LeaderSort, PageRange, Timeframe};
use utoipa::ToSchema;

use super::answer::{Meta, Pagination};
use crate::openapi::formats::Address;

/// A page of the leaderboard.
#[derive(Debug, Serialize, ToSchema)]
pub struct LeaderboardAnswer {
    leaders: Vec<LeaderRecord>,
    /// `24h`, `7d`, `30d` or `all`.
    timeframe: &'static str,
    pagination: Pagination,
}

/// The figures of an account.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Leader)]
#[serde(rename_all = "camelCase")]
struct LeaderRecord {
    /// The rank. The first is 1.
    rank: u64,
    #[schema(value_type = Address)]
    address: alloy_primitives::Address,
    /// The name that the account's user chose to show. Missing if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The profit of the sales and redemptions in the timeframe over the cost of their tokens, in
    /// cents. A loss is negative.
    realized_profit: i64,
    /// The profit of all open positions at current prices, in cents, regardless of the timeframe. A
    /// loss is negative.
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
/// The values of `sortBy`, an alias of `sort`.
const SORTS_BY: &[(&str, LeaderSort)] = &[("profit", LeaderSort::Total), ("volume", LeaderSort::Volume)];

/// The parameters `timeframe`, `sort` or `sortBy`, `limit` and `offset`.
#[derive(Debug)]
pub struct LeaderboardQuery {
    timeframe: Timeframe,
    sort: LeaderSort,
    window: PageRange,
}

impl Parameters for LeaderboardQuery {
    const NAMES: &'static [&'static str] = &["timeframe", "sort", "sortBy", "limit", "offset"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        let timeframe = asked.word("timeframe", TIMEFRAMES);
        let sort = match asked.text("sortBy") {
            Some(_) if asked.text("sort").is_some() => {
                asked.wrong("sortBy", "must not be sent with sort: both have the same meaning");
                None
            }
            Some(_) => asked.word("sortBy", SORTS_BY),
            None => asked.word("sort", SORTS),
        };
        let window = asked.extent();
        Some(Self { timeframe: timeframe?, sort: sort?, window: window? })
    }
}

/// `GET /api/leaderboard`.
#[utoipa::path(
    get, path = "/api/leaderboard", operation_id = "getLeaderboard", tag = "Community", summary = "Read the leaderboard",
    description = "The accounts that were active in the timeframe, highest first, then by address. The \
        default rank is by total profit: the profit realised in the timeframe, plus the profit of all open \
        positions at current prices. 24h starts at a whole hour, 7d and 30d at a whole day, UTC. A \
        leaderboard has at most 1,000 accounts and may be 5 seconds old; the value of positions may be 30 \
        seconds old.",
    params(
        ("timeframe" = Option<String>, Query, pattern = "^(24h|7d|30d|all)$", example = "7d", description = "24h, 7d, 30d or all (the default)."),
        ("sort" = Option<String>, Query, pattern = "^(total|realized|volume)$", example = "realized",
            description = "total (the default): realised and unrealised profit. realized: only realised profit. volume: \
                USDC traded."),
        ("sortBy" = Option<String>, Query, pattern = "^(profit|volume)$",
            description = "Alias of sort, with profit instead of total."),
    ),
    responses((status = 200, description = "A page of accounts.", body = LeaderboardAnswer)),
)]
pub async fn leaderboard(
    State(app): State<Shared>,
    query: NamedQuery<LeaderboardQuery>,
    meta: Meta,
) -> Result<Response, Problem> {
    let NamedQuery { parameters: LeaderboardQuery { timeframe, sort, window }, name } = query;
    let read = async || {
        let listed = app::leaderboard::leaderboard(&app.ctx.for_public(), timeframe, sort, window).await?;
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
        let Ranked { rank, leader, unrealized_pnl, name } = row;
        let total = cents_floor(UsdcDelta(leader.realized_pnl.0.saturating_add(unrealized_pnl.0)));
        let realized = cents_floor(leader.realized_pnl);
        Self {
            rank,
            address: leader.account,
            name,
            total_profit: total,
            realized_profit: realized,
            // The rest of the rounded sum, so that the two figures add up to it.
            unrealized_profit: total - realized,
            total_volume: leader.volume.to_cents_floor(),
            trade_count: leader.trade_count,
        }
    }
}

/// Returns whole cents, rounded towards negative infinity, so that a loss is never shown too small.
pub const fn cents_floor(delta: UsdcDelta) -> i64 {
    delta.0.div_euclid(10_000)
}

#[cfg(test)]
mod tests {
    use domain::Usdc;
    use store::public::Leader;

    use super::*;

    #[test]
    fn the_profits_of_an_account_add_up_to_the_cent() {
        for (realized, unrealized) in [(15_000, 15_000), (-15_000, 5_000), (9_999, 1), (-1, -1), (0, 0)] {
            let leader = Leader {
                account: alloy_primitives::Address::ZERO,
                trade_count: 1,
                volume: Usdc::ZERO,
                realized_pnl: UsdcDelta(realized),
            };
            let unrealized_pnl = UsdcDelta(unrealized);
            let record = LeaderRecord::new(Ranked { rank: 1, leader, unrealized_pnl, name: None });
            let sum = record.realized_profit + record.unrealized_profit;
            assert_eq!(sum, record.total_profit, "{realized} {unrealized}");
            assert_eq!(record.total_profit, cents_floor(UsdcDelta(realized + unrealized)));
        }
    }

    #[test]
    fn profits_are_whole_cents_rounded_down_on_both_sides_of_zero() {
        for (atomic, cents) in [(0, 0), (9_999, 0), (10_000, 1), (-1, -1), (-10_000, -1), (-10_001, -2)] {
            assert_eq!(cents_floor(UsdcDelta(atomic)), cents, "{atomic}");
        }
    }
}
