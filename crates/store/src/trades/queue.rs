//! The lanes' queues. Pending trades are claimed in the order of their ranks, which take turns between users: a new trade's
//! rank is one above that of its user's last trade that waits, and at least that of the queue's head. So the first trades of
//! all users come before their second ones, and a user who queues thousands delays the others by one batch.
//!
//! A rank costs two look-ups in indexes when a trade is queued, and claiming reads the head of an index, however long the
//! queue is. Two trades of one user that are queued at the same instant may get the same rank.

use domain::Usdc;
use domain::ids::{KeyId, UserId};
use domain::trade::Transition;

use super::row::{COLUMNS, COUNT, Trade, from_row};
use super::trace;
use crate::{StoreError, Tx, params};

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

/// How far behind the queue's head trades are looked for that are small enough.
const LOOK_AHEAD: u32 = 1_000;

/// Which pending trades are claimed.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// The lane.
    pub lane: u16,
    /// How many at most.
    pub limit: u32,
    /// Only trades of at most this much USDC, and those whose deadline is over; all if `None`.
    pub at_most: Option<Usdc>,
}

/// The next pending trades of a lane, moved to `validating`.
pub async fn claim_pending(
    tx: &mut Tx,
    claim: Claim,
    transition: &Transition,
) -> Result<Vec<Trade>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "UPDATE trades SET status = 'validating', updated_at_ms = $1 WHERE id IN (
            SELECT id FROM (
                SELECT id, intent_usdc_atomic, deadline_ms, queue_rank, created_at_ms FROM trades
                WHERE lane = $2 AND status = 'pending' AND ended_at_ms IS NULL
                ORDER BY queue_rank, created_at_ms, id LIMIT $3
            ) AS queue WHERE intent_usdc_atomic <= $4 OR deadline_ms <= $1
            ORDER BY queue_rank, created_at_ms, id LIMIT $5
        ) AND status = 'pending' RETURNING ",
        COLUMNS,
        ", queue_rank"
    );
    let Claim { lane, limit, at_most } = claim;
    let look_ahead = if at_most.is_some() { limit.max(LOOK_AHEAD) } else { limit };
    let at_most = at_most.unwrap_or(Usdc::from_atomic(i64::MAX as u64));
    let bound = params![transition.trace.at, lane, look_ahead, at_most, limit];
    let mut claimed = tx.list(SQL, &bound, |row| Ok((row.int(COUNT)?, from_row(row)?))).await?;
    claimed.sort_by_key(|(rank, trade)| (*rank, trade.created_at, trade.id));
    let claimed: Vec<Trade> = claimed.into_iter().map(|(_, trade)| trade).collect();
    trace::append(tx, claimed.iter().map(|trade| (trade.id, &transition.trace))).await?;
    for trade in &claimed {
        tx.emit(trade.event(&transition.to, transition.trace.at)?);
    }
    Ok(claimed)
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

/// Whether a pending trade of a lane is larger than `at_most`, as far as claiming looks.
pub async fn has_larger(tx: &mut Tx, lane: u16, at_most: Usdc) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT 1 FROM (SELECT intent_usdc_atomic FROM trades
        WHERE lane = $1 AND status = 'pending' AND ended_at_ms IS NULL ORDER BY queue_rank, created_at_ms, id LIMIT $2
        ) AS queue WHERE intent_usdc_atomic > $3 LIMIT 1";
    Ok(tx.find(SQL, &params![lane, LOOK_AHEAD, at_most], |row| row.int(0)).await?.is_some())
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
    use domain::Timestamp;
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
                    let claim = Claim { lane: 0, limit: 100, at_most: Some(Usdc::from_whole(5)) };
                    let validate = Transition::validate(Status::Pending, NOW).unwrap();
                    claim_pending(tx, claim, &validate).await?;
                    has_larger(tx, 0, Usdc::from_whole(5)).await?;
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
