//! The lanes' queues. Pending trades are claimed in the order of their ranks, which alternate
//! between users.
//!
//! A new trade's rank is one above the rank of its user's last waiting trade, and at least the rank
//! of the queue's head. The first trades of all users therefore come before their second ones. A
//! user who queues thousands of trades delays others by at most one batch.
//!
//! Computing a rank takes two index lookups, and claiming reads the head of an index, so the cost
//! does not depend on the queue's length. Two trades of one user that are queued at the same
//! instant may get the same rank.

use domain::ids::{KeyId, TradeId, UserId};
use domain::trade::{Budget, Room, Transition};
use domain::{Timestamp, Usdc};

use super::elsewhere::{Elsewhere, Place};
use super::row::Trade;
use super::trace;
use crate::record::Record;
use crate::{Row, StoreError, Tx, params};

/// The rank of a trade that is not in the queue: a held trade before its confirmation.
pub(super) const NOT_QUEUED: i64 = -1;

/// A subquery for the rank of a trade that joins a lane's queue now. Takes the placeholders of the
/// user and of the lane.
macro_rules! next_rank {
    ($user:literal, $lane:literal) => {
        concat!(
            "(SELECT COALESCE(MAX(ranks.queue_rank), 0) FROM (
                SELECT (SELECT queue_rank + 1 FROM trades WHERE user_id = ",
            $user,
            " AND COALESCE(nonce, ended_at_ms) IS NULL ORDER BY queue_rank DESC LIMIT 1) AS queue_rank
                UNION ALL
                SELECT (SELECT queue_rank FROM trades WHERE lane = ",
            $lane,
            " AND status = 'pending' AND ended_at_ms IS NULL ORDER BY queue_rank LIMIT 1)) AS ranks)"
        )
    };
}
pub(super) use next_rank;

/// The number of pending trades that are searched for ones that fit the budget.
pub const LOOK_AHEAD: u32 = 1_000;

/// The result of claiming trades from the head of a lane's queue.
#[derive(Debug, Default)]
pub struct ClaimedTrades {
    /// The claimed trades, now `validating`.
    pub trades: Vec<Trade>,
    /// The trades that were skipped because they do not fit the budget.
    pub held: Vec<TradeId>,
}

/// Moves the next pending trades of a lane to `validating`, at most `limit`. Takes only trades that
/// fit the budget or whose deadline has passed, and that overtake no trade of another lane.
pub async fn claim_pending(
    tx: &mut Tx,
    lane: u16,
    limit: u32,
    budget: &mut Budget,
    elsewhere: &Elsewhere,
    transition: &Transition,
) -> Result<ClaimedTrades, StoreError> {
    // The common case, in which everything fits, is claimed with one statement. Only a tight budget
    // and trades of other lanes need a choice trade by trade.
    let next = if budget.room() == Room::Unlimited { Usdc::ZERO } else { sum_next(tx, lane, limit).await? };
    let (mut claimed, held) = if elsewhere.is_empty() && budget.admits_all(next) {
        let claimed = claim_next(tx, lane, limit, transition).await?;
        for (_, trade) in &claimed {
            budget.admit(trade.account, trade.volume);
        }
        (claimed, Vec::new())
    } else {
        let (fitting, held) = pick_fitting(tx, lane, limit, budget, elsewhere, transition.trace.at).await?;
        (claim_each(tx, &fitting, transition).await?, held)
    };
    // `RETURNING` gives rows in no particular order.
    claimed.sort_by_key(|(rank, trade)| (*rank, trade.created_at, trade.id));
    let trades: Vec<Trade> = claimed.into_iter().map(|(_, trade)| trade).collect();
    trace::append(tx, trades.iter().map(|trade| (trade.id, &transition.trace))).await?;
    for trade in &trades {
        tx.emit(trade.event(&transition.to, transition.trace.at)?);
    }
    Ok(ClaimedTrades { trades, held })
}

/// Returns the total volume of the next trades.
async fn sum_next(tx: &mut Tx, lane: u16, limit: u32) -> Result<Usdc, StoreError> {
    const SQL: &str =
        "SELECT CAST(COALESCE(SUM(volume_usdc_atomic), 0) AS BIGINT) AS volume_usdc_atomic FROM (
        SELECT volume_usdc_atomic FROM trades WHERE lane = $1 AND status = 'pending' AND ended_at_ms IS NULL
        ORDER BY queue_rank, created_at_ms, id LIMIT $2) AS queue";
    Ok(tx.find(SQL, &params![lane, limit], |row| row.only()).await?.unwrap_or_default())
}

async fn claim_next(
    tx: &mut Tx,
    lane: u16,
    limit: u32,
    transition: &Transition,
) -> Result<Vec<(i64, Trade)>, StoreError> {
    // The outer status condition is checked again after the row lock, so that a trade that has
    // ended meanwhile is not claimed.
    const SQL: &str = const_format::concatcp!(
        "UPDATE trades SET status = 'validating', updated_at_ms = $1,
        waiting_for = CASE WHEN deadline_ms <= $1 THEN waiting_for END WHERE id IN (
            SELECT id FROM trades WHERE lane = $2 AND status = 'pending' AND ended_at_ms IS NULL
            ORDER BY queue_rank, created_at_ms, id LIMIT $3
        ) AND status = 'pending' RETURNING ",
        Trade::COLUMNS,
        ", queue_rank"
    );
    tx.list(SQL, &params![transition.trace.at, lane, limit], ranked).await
}

/// Returns the next trades that fit or whose deadline has passed, and the trades that were skipped.
async fn pick_fitting(
    tx: &mut Tx,
    lane: u16,
    limit: u32,
    budget: &mut Budget,
    elsewhere: &Elsewhere,
    now: Timestamp,
) -> Result<(Vec<TradeId>, Vec<TradeId>), StoreError> {
    const SQL: &str = "SELECT id, account, volume_usdc_atomic, deadline_ms, created_at_ms FROM trades
        WHERE lane = $1 AND status = 'pending' AND ended_at_ms IS NULL
        ORDER BY queue_rank, created_at_ms, id LIMIT $2";
    let bound = params![lane, LOOK_AHEAD];
    let queue: Vec<(Place, Usdc, Timestamp)> = tx
        .list(SQL, &bound, |row| {
            Ok((Place::of(row)?, row.get("volume_usdc_atomic")?, row.get("deadline_ms")?))
        })
        .await?;
    let (mut fitting, mut held) = (Vec::new(), Vec::new());
    for (place, volume, deadline) in queue {
        let Place { id, account, .. } = place;
        if fitting.len() >= limit as usize {
            break;
        }
        // An expired trade will fail, so it overtakes nothing.
        if deadline > now && elsewhere.is_before(&place) {
            continue;
        }
        // An expired trade needs no budget: it will fail, and is not signed.
        let fits = deadline <= now || budget.admit(account, volume);
        let found = if fits { &mut fitting } else { &mut held };
        found.push(id);
    }
    Ok((fitting, held))
}

/// Claims these trades. If a trade's deadline has passed, its row retains the reason that
/// it waited for, because that reason explains its failure.
async fn claim_each(
    tx: &mut Tx,
    ids: &[TradeId],
    transition: &Transition,
) -> Result<Vec<(i64, Trade)>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "UPDATE trades SET status = 'validating', updated_at_ms = x.at_ms,
        waiting_for = CASE WHEN deadline_ms <= x.at_ms THEN waiting_for END
        FROM ROWS($1 BIGINT, $2 TEXT) AS x(at_ms, trade_id)
        WHERE trades.id = x.trade_id AND trades.status = 'pending' RETURNING ",
        Trade::COLUMNS,
        ", queue_rank"
    );
    let rows = ids.iter().map(|id| params![transition.trace.at, *id].to_vec()).collect();
    tx.list_rows(SQL, rows, ranked).await
}

fn ranked(row: &Row<'_>) -> Result<(i64, Trade), StoreError> {
    Ok((row.get("queue_rank")?, Trade::from_row(row)?))
}

/// Lists a lane's validating trades in queue order. These wait for an external condition, or were
/// left by a process that died between claiming and signing.
pub async fn list_validating(tx: &mut Tx, lane: u16, limit: u32) -> Result<Vec<Trade>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Trade::COLUMNS,
        " FROM trades WHERE lane = $1 AND status = 'validating' AND ended_at_ms IS NULL
        ORDER BY queue_rank, created_at_ms, id LIMIT $2"
    );
    tx.list(SQL, &params![lane, limit], Trade::from_row).await
}

/// Reports whether a lane has trades to sign.
pub async fn has_work(tx: &mut Tx, lane: u16) -> Result<bool, StoreError> {
    // For a list of statuses, PostgreSQL would read the executing trades too.
    const SQL: &str = "SELECT 1 WHERE
        EXISTS (SELECT 1 FROM trades WHERE lane = $1 AND status = 'pending' AND ended_at_ms IS NULL)
        OR EXISTS (SELECT 1 FROM trades WHERE lane = $1 AND status = 'validating' AND ended_at_ms IS NULL)
        OR EXISTS (SELECT 1 FROM trades
            WHERE lane = $1 AND status = 'executing' AND batch_id IS NULL AND ended_at_ms IS NULL)";
    tx.exists(SQL, &params![lane]).await
}

/// Lists the trades of a key that no executor has claimed, including held ones, at most `limit`.
pub async fn list_unclaimed(
    tx: &mut Tx,
    user_id: UserId,
    key_id: KeyId,
    limit: u32,
) -> Result<Vec<Trade>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Trade::COLUMNS,
        " FROM trades WHERE user_id = $1 AND COALESCE(nonce, ended_at_ms) IS NULL AND key_id = $2
        AND status IN ('pending_confirmation', 'pending') LIMIT $3"
    );
    tx.list(SQL, &params![user_id, key_id, limit], Trade::from_row).await
}

#[cfg(test)]
mod tests {
    use domain::trade::Status;

    use super::*;
    use crate::{Engine, SqlValue, Store, StoreError};

    const NOW: Timestamp = Timestamp::from_s(1_790_000_000);

    /// Returns the query plan steps of every statement that `claim_pending` and the rank subquery
    /// run.
    async fn plans(store: Store) -> Vec<String> {
        let explained = store
            .write((), |tx, ()| {
                Box::pin(async move {
                    tx.record();
                    let validate = Transition::validate(Status::Pending, NOW).unwrap();
                    for room in [Room::Unlimited, Room::Usdc(Usdc::from_whole(5)), Room::Nothing] {
                        claim_pending(tx, 0, 100, &mut Budget::new(room), &Elsewhere::default(), &validate)
                            .await?;
                    }
                    super::super::sum_signed(tx, 0).await?;
                    has_work(tx, 0).await?;
                    const RANK: &str = concat!("SELECT ", next_rank!("$1", "$2"), " AS queue_rank");
                    let user: UserId = "00000000-0000-7000-8000-000000000001".parse().unwrap();
                    tx.find(RANK, &params![user, 0u16], |row| row.only::<i64>()).await?;
                    let mut steps = Vec::new();
                    for (sql, bound) in tx.take_recorded() {
                        steps.extend(explain(tx, &sql, &bound).await?);
                    }
                    Ok(steps)
                })
            })
            .await;
        explained.unwrap()
    }

    async fn explain(tx: &mut Tx, sql: &str, bound: &[SqlValue<'_>]) -> Result<Vec<String>, StoreError> {
        match tx.engine() {
            Engine::Sqlite => {
                tx.list_shaped(&format!("EXPLAIN QUERY PLAN {sql}"), bound, |row| row.get("detail")).await
            }
            Engine::Postgres => {
                tx.batch("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off").await?;
                tx.list_shaped(&format!("EXPLAIN (COSTS OFF) {sql}"), bound, |row| row.get("QUERY PLAN"))
                    .await
            }
        }
    }

    crate::on_each_engine! {
        async fn a_queue_of_any_length_is_read_through_its_indexes(store: Store) {
            let engine = store.engine();
            let steps = plans(store).await;
            let of_trades: Vec<&String> = steps.iter().filter(|step| step.contains(" trades")).collect();
            for step in &of_trades {
                let by_index = match engine {
                    Engine::Sqlite => step.starts_with("SEARCH trades USING"),
                    Engine::Postgres => step.contains("Index") || step.contains("Update on"),
                };
                assert!(by_index, "{step}\n{steps:#?}");
            }
            assert!(of_trades.len() >= 6, "{steps:#?}");
            assert!(steps.iter().any(|step| step.contains("trades_queued")), "{steps:#?}");
        }

        async fn the_stopped_keys_of_a_queue_are_looked_up_one_by_one(store: Store) {
            let lookup = match store.engine() {
                Engine::Sqlite => "SEARCH keys USING INDEX sqlite_autoindex_keys_1 (id=?)",
                Engine::Postgres => "Index Scan using keys_pkey on keys",
            };
            let steps = store
                .write((), |tx, ()| {
                    Box::pin(async move {
                        tx.record();
                        crate::keys::list_stopped_validating(tx, 0, NOW).await?;
                        let (sql, bound) = tx.take_recorded().remove(0);
                        explain(tx, &sql, &bound).await
                    })
                })
                .await
                .unwrap();
            assert!(steps.iter().any(|step| step.contains(lookup)), "{steps:#?}");
            // A join can read all keys, however many there are; its plan depends on statistics.
            assert!(!steps.iter().any(|step| step.contains("Join") || step.contains("Nested Loop")), "{steps:#?}");
            assert!(steps.iter().any(|step| step.contains("SubPlan") || step.contains("SUBQUERY")), "{steps:#?}");
        }
    }
}
