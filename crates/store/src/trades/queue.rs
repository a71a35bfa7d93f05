//! The lanes' queues. Pending trades are claimed in the order of their ranks, which take turns between users: a new trade's
//! rank is one above that of its user's last trade that waits, and at least that of the queue's head. So the first trades of
//! all users come before their second ones, and a user who queues thousands delays the others by one batch.
//!
//! A rank costs two look-ups in indexes when a trade is queued, and claiming reads the head of an index, however long the
//! queue is. Two trades of one user that are queued at the same instant may get the same rank.

use domain::ids::{KeyId, TradeId, UserId};
use domain::trade::{Budget, Room, Transition};
use domain::{Timestamp, Usdc};

use super::row::{COLUMNS, COUNT, Trade, from_row};
use super::trace;
use crate::{Row, StoreError, Tx, params};

/// The rank of a trade that is not in the queue: a held one, until it is confirmed.
pub(super) const NOT_QUEUED: i64 = -1;

/// The rank of a trade that joins the queue of a lane now, as a subquery. Takes the placeholders of its user and of its lane.
macro_rules! next_rank {
    ($user:literal, $lane:literal) => {
        concat!(
            "(SELECT COALESCE(MAX(ranks.queue_rank), 0) FROM (
                SELECT (SELECT queue_rank + 1 FROM trades WHERE user_id = ",
            $user,
            " AND nonce IS NULL AND ended_at_ms IS NULL ORDER BY queue_rank DESC LIMIT 1) AS queue_rank
                UNION ALL
                SELECT (SELECT queue_rank FROM trades WHERE lane = ",
            $lane,
            " AND status = 'pending' AND ended_at_ms IS NULL ORDER BY queue_rank LIMIT 1)) AS ranks)"
        )
    };
}
pub(super) use next_rank;

/// How far behind the queue's head trades are looked for that fit.
pub const LOOK_AHEAD: u32 = 1_000;

/// What was found at the head of a lane's queue.
#[derive(Debug, Default)]
pub struct Claimed {
    /// The trades that are being validated now.
    pub trades: Vec<Trade>,
    /// The trades before the last of them, or all that were looked at, that do not fit.
    pub held: Vec<TradeId>,
}

/// Moves the next pending trades of a lane to `validating`, at most `limit`: those that fit into the budget, and those whose
/// deadline has passed.
pub async fn claim_pending(
    tx: &mut Tx,
    lane: u16,
    limit: u32,
    budget: &mut Budget,
    transition: &Transition,
) -> Result<Claimed, StoreError> {
    let next = if budget.room() == Room::Unlimited { Usdc::ZERO } else { sum_next(tx, lane, limit).await? };
    let (mut claimed, held) = if budget.admits_all(next) {
        let claimed = claim_next(tx, lane, limit, transition).await?;
        for (_, trade) in &claimed {
            budget.admit(&trade.account, trade.volume);
        }
        (claimed, Vec::new())
    } else {
        let (fitting, held) = pick_fitting(tx, lane, limit, budget, transition.trace.at).await?;
        (claim_each(tx, &fitting, transition).await?, held)
    };
    claimed.sort_by_key(|(rank, trade)| (*rank, trade.created_at, trade.id));
    let trades: Vec<Trade> = claimed.into_iter().map(|(_, trade)| trade).collect();
    trace::append(tx, trades.iter().map(|trade| (trade.id, &transition.trace))).await?;
    for trade in &trades {
        tx.emit(trade.event(&transition.to, transition.trace.at)?);
    }
    Ok(Claimed { trades, held })
}

/// What the next trades would move together.
async fn sum_next(tx: &mut Tx, lane: u16, limit: u32) -> Result<Usdc, StoreError> {
    const SQL: &str = "SELECT CAST(COALESCE(SUM(volume_usdc_atomic), 0) AS BIGINT) FROM (
        SELECT volume_usdc_atomic FROM trades WHERE lane = $1 AND status = 'pending' AND ended_at_ms IS NULL
        ORDER BY queue_rank, created_at_ms, id LIMIT $2) AS queue";
    Ok(tx.find(SQL, &params![lane, limit], |row| row.usdc(0)).await?.unwrap_or_default())
}

async fn claim_next(
    tx: &mut Tx,
    lane: u16,
    limit: u32,
    transition: &Transition,
) -> Result<Vec<(i64, Trade)>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "UPDATE trades SET status = 'validating', updated_at_ms = $1,
        waiting_for = CASE WHEN deadline_ms <= $1 THEN waiting_for END WHERE id IN (
            SELECT id FROM trades WHERE lane = $2 AND status = 'pending' AND ended_at_ms IS NULL
            ORDER BY queue_rank, created_at_ms, id LIMIT $3
        ) AND status = 'pending' RETURNING ",
        COLUMNS,
        ", queue_rank"
    );
    tx.list(SQL, &params![transition.trace.at, lane, limit], ranked).await
}

/// The next trades that fit or whose deadline has passed, and those that were passed over.
async fn pick_fitting(
    tx: &mut Tx,
    lane: u16,
    limit: u32,
    budget: &mut Budget,
    now: Timestamp,
) -> Result<(Vec<TradeId>, Vec<TradeId>), StoreError> {
    const SQL: &str = "SELECT id, account, volume_usdc_atomic, deadline_ms FROM trades
        WHERE lane = $1 AND status = 'pending' AND ended_at_ms IS NULL
        ORDER BY queue_rank, created_at_ms, id LIMIT $2";
    let bound = params![lane, LOOK_AHEAD];
    let queue: Vec<(TradeId, String, Usdc, Timestamp)> = tx
        .list(SQL, &bound, |row| Ok((row.parse(0)?, row.text(1)?, row.usdc(2)?, row.timestamp(3)?)))
        .await?;
    let (mut fitting, mut held) = (Vec::new(), Vec::new());
    for (id, account, volume, deadline) in queue {
        if fitting.len() >= limit as usize {
            break;
        }
        let fits = deadline <= now || budget.admit(&account, volume);
        let found = if fits { &mut fitting } else { &mut held };
        found.push(id);
    }
    Ok((fitting, held))
}

/// Claims the trades one by one. What a trade has waited for stays in its row if its deadline has passed: it fails for it.
async fn claim_each(
    tx: &mut Tx,
    ids: &[TradeId],
    transition: &Transition,
) -> Result<Vec<(i64, Trade)>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "UPDATE trades SET status = 'validating', updated_at_ms = $1,
        waiting_for = CASE WHEN deadline_ms <= $1 THEN waiting_for END
        WHERE id = $2 AND status = 'pending' RETURNING ",
        COLUMNS,
        ", queue_rank"
    );
    let mut claimed = Vec::with_capacity(ids.len());
    for id in ids {
        claimed.extend(tx.find(SQL, &params![transition.trace.at, *id], ranked).await?);
    }
    Ok(claimed)
}

fn ranked(row: &Row<'_>) -> Result<(i64, Trade), StoreError> {
    Ok((row.int(COUNT)?, from_row(row)?))
}

/// The validating trades of a lane, in the order of the queue: those that wait for a condition outside of themselves, and
/// what a process that died left behind between claiming and signing.
pub async fn list_validating(tx: &mut Tx, lane: u16, limit: u32) -> Result<Vec<Trade>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM trades WHERE lane = $1 AND status = 'validating' AND ended_at_ms IS NULL
        ORDER BY queue_rank, created_at_ms, id LIMIT $2"
    );
    tx.list(SQL, &params![lane, limit], from_row).await
}

/// Whether a lane has trades that wait to be signed.
pub async fn has_work(tx: &mut Tx, lane: u16) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM trades WHERE lane = $1 AND ended_at_ms IS NULL
        AND (status IN ('pending', 'validating') OR (status = 'executing' AND batch_id IS NULL)) LIMIT 1";
    Ok(tx.find(SQL, &params![lane], |row| row.int(0)).await?.is_some())
}

/// The trades of a key that no executor has claimed, held ones included, at most `limit`.
pub async fn list_unclaimed(
    tx: &mut Tx,
    user_id: UserId,
    key_id: KeyId,
    limit: u32,
) -> Result<Vec<Trade>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM trades WHERE user_id = $1 AND nonce IS NULL AND ended_at_ms IS NULL AND key_id = $2
        AND status IN ('pending_confirmation', 'pending') LIMIT $3"
    );
    tx.list(SQL, &params![user_id, key_id, limit], from_row).await
}

#[cfg(test)]
mod tests {
    use domain::trade::Status;

    use super::*;
    use crate::{Engine, Store, StoreError, Value};

    const NOW: Timestamp = Timestamp::from_s(1_790_000_000);

    /// The steps of every statement that `claim_pending` and the next rank run.
    async fn plans(store: Store) -> Vec<String> {
        let explained: Result<Vec<String>, StoreError> = store
            .write((), |tx, ()| {
                Box::pin(async move {
                    tx.record();
                    let validate = Transition::validate(Status::Pending, NOW).unwrap();
                    for room in [Room::Unlimited, Room::Usdc(Usdc::from_whole(5)), Room::Nothing] {
                        claim_pending(tx, 0, 100, &mut Budget::new(room), &validate).await?;
                    }
                    super::super::sum_signed(tx, 0).await?;
                    super::super::sum_validating(tx, 0).await?;
                    has_work(tx, 0).await?;
                    const RANK: &str = concat!("SELECT ", next_rank!("$1", "$2"));
                    let user: UserId = "00000000-0000-7000-8000-000000000001".parse().unwrap();
                    tx.find(RANK, &params![user, 0u16], |row| row.int(0)).await?;
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

    async fn explain(tx: &mut Tx, sql: &str, bound: &[Value<'_>]) -> Result<Vec<String>, StoreError> {
        match tx.engine() {
            Engine::Sqlite => {
                tx.list_shaped(&format!("EXPLAIN QUERY PLAN {sql}"), bound, |row| row.text(3)).await
            }
            Engine::Postgres => {
                tx.batch("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off").await?;
                tx.list_shaped(&format!("EXPLAIN (COSTS OFF) {sql}"), bound, |row| row.text(0)).await
            }
        }
    }

    crate::on_each_engine! {
        async fn the_queue_is_read_through_its_indexes_however_long_it_is(store: Store) {
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
            assert!(steps.iter().any(|step| step.contains("trades_unsigned")), "{steps:#?}");
        }
    }
}
