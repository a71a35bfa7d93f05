//! Hands the unsigned trades of a lane over to others.
//!
//! An account's trades keep their order. Those that come from the other lane get the ranks that they
//! would get if they were queued now, because the ranks of two queues cannot be compared. A trade of
//! the same account that already waits in the new lane may have to move back behind them.

use std::collections::BTreeMap;

use domain::ids::{TradeId, UserId};
use domain::lane::assign;

use super::elsewhere::Place;
use crate::{Row, StoreError, Tx, params};

/// A trade that waits in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Waiting {
    place: Place,
    lane: u16,
    rank: i64,
}

/// Moves unsigned trades out of the lane `from`: each account's to its lane among `targets`. Returns
/// the number of moved trades. At most `limit` users at a time, but always all trades of a user.
///
/// The caller must have excluded the executor of the lane `from`.
pub async fn hand_over(tx: &mut Tx, from: u16, targets: &[u16], limit: u32) -> Result<u64, StoreError> {
    let moved = hand_over_signed_before(tx, from, targets, limit).await?;
    let users = list_users(tx, from, limit).await?;
    let mut by_user: BTreeMap<UserId, Vec<Waiting>> = BTreeMap::new();
    for (user, waiting) in list_waiting(tx, users).await? {
        by_user.entry(user).or_default().push(waiting);
    }
    let mut heads = BTreeMap::new();
    for lane in targets {
        heads.insert(*lane, find_head(tx, *lane).await?);
    }
    let mut rows = Vec::new();
    for waiting in by_user.into_values() {
        let Some(first) = waiting.first() else { continue };
        let to = assign(first.place.account, targets);
        let head = heads.get(&to).copied().unwrap_or_default();
        rows.extend(ranks(from, to, head, waiting).into_iter().map(|(id, rank)| (to, rank, id)));
    }
    const SQL: &str = "UPDATE trades SET lane = x.new_lane, queue_rank = x.new_rank
        FROM ROWS($1 BIGINT, $2 BIGINT, $3 TEXT) AS x(new_lane, new_rank, trade_id)
        WHERE trades.id = x.trade_id AND trades.status IN ('pending', 'validating')";
    let rows = rows.into_iter().map(|(lane, rank, id)| params![lane, rank, id].to_vec()).collect();
    Ok(moved + tx.exec_rows(SQL, rows).await?)
}

/// Moves the trades of lost batches. They have their intents already, and a rank has no effect.
async fn hand_over_signed_before(
    tx: &mut Tx,
    from: u16,
    targets: &[u16],
    limit: u32,
) -> Result<u64, StoreError> {
    const LIST: &str =
        "SELECT id, account, created_at_ms FROM trades WHERE lane = $1 AND status = 'executing'
        AND batch_id IS NULL AND ended_at_ms IS NULL LIMIT $2";
    const SQL: &str =
        "UPDATE trades SET lane = x.new_lane FROM ROWS($1 BIGINT, $2 TEXT) AS x(new_lane, trade_id)
        WHERE trades.id = x.trade_id AND trades.status = 'executing' AND trades.batch_id IS NULL";
    let lost = tx.list(LIST, &params![from, limit], Place::of).await?;
    let rows = lost.into_iter().map(|place| params![assign(place.account, targets), place.id].to_vec());
    tx.exec_rows(SQL, rows.collect()).await
}

async fn list_users(tx: &mut Tx, lane: u16, limit: u32) -> Result<Vec<UserId>, StoreError> {
    const SQL: &str = "SELECT DISTINCT user_id FROM trades WHERE lane = $1 AND ended_at_ms IS NULL
        AND status IN ('pending', 'validating') LIMIT $2";
    tx.list(SQL, &params![lane, limit], |row| row.only()).await
}

/// Lists the waiting trades of these users in all lanes, in the order of their ranks.
async fn list_waiting(tx: &mut Tx, users: Vec<UserId>) -> Result<Vec<(UserId, Waiting)>, StoreError> {
    const SQL: &str = "SELECT t.user_id, t.id, t.account, t.lane, t.queue_rank, t.created_at_ms
        FROM ROWS($1 TEXT) AS x(user_id) CROSS JOIN trades t WHERE t.user_id = x.user_id
        AND t.nonce IS NULL AND t.ended_at_ms IS NULL AND t.status IN ('pending', 'validating')";
    let read = |row: &Row<'_>| {
        let waiting =
            Waiting { place: Place::of(row)?, lane: row.get("lane")?, rank: row.get("queue_rank")? };
        Ok((row.get("user_id")?, waiting))
    };
    let rows = users.into_iter().map(|user| params![user].to_vec()).collect();
    let mut listed = tx.list_rows(SQL, rows, read).await?;
    listed.sort_by_key(|(_, Waiting { place, rank, .. })| (*rank, place.created_at, place.id));
    Ok(listed)
}

/// Returns the rank of a lane's head.
async fn find_head(tx: &mut Tx, lane: u16) -> Result<i64, StoreError> {
    const SQL: &str = "SELECT queue_rank FROM trades WHERE lane = $1 AND status = 'pending'
        AND ended_at_ms IS NULL ORDER BY queue_rank LIMIT 1";
    Ok(tx.find(SQL, &params![lane], |row| row.only()).await?.unwrap_or_default())
}

/// Returns the trades of one user that change their place, with their ranks in the lane `to`.
/// `waiting` is in the order of the ranks.
fn ranks(from: u16, to: u16, head: i64, waiting: Vec<Waiting>) -> Vec<(TradeId, i64)> {
    let (moved, rest): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|one| one.lane == from);
    let there: Vec<_> = rest.into_iter().filter(|one| one.lane == to).collect();
    let mut next = head;
    let mut placed = Vec::new();
    for one in merge(moved, there) {
        // A trade that is there already never moves ahead, so it never passes another user's.
        let rank = if one.lane == to { next.max(one.rank) } else { next };
        next = rank + 1;
        if one.lane != to || rank != one.rank {
            placed.push((one.place.id, rank));
        }
    }
    placed
}

/// Merges two queues of one account by the creation of their heads. Each keeps its own order.
fn merge(moved: Vec<Waiting>, there: Vec<Waiting>) -> Vec<Waiting> {
    let age = |one: &Waiting| (one.place.created_at, one.place.id);
    let (mut moved, mut there) = (moved.into_iter().peekable(), there.into_iter().peekable());
    let mut merged = Vec::new();
    loop {
        let is_moved_next = match (moved.peek(), there.peek()) {
            (Some(one), Some(other)) => age(one) <= age(other),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return merged,
        };
        merged.extend(if is_moved_next { moved.next() } else { there.next() });
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::Address;
    use domain::Timestamp;

    use super::*;

    fn waiting(number: u64, lane: u16, rank: i64) -> Waiting {
        let id = format!("00000000-0000-7000-8000-{number:012}").parse().unwrap();
        let created_at = Timestamp::from_ms(number as i64);
        Waiting { place: Place { id, account: Address::ZERO, created_at }, lane, rank }
    }

    /// Returns the numbers of the moved trades with their ranks.
    fn moved(head: i64, queue: &[(u64, u16, i64)]) -> Vec<(u64, i64)> {
        let queue: Vec<_> = queue.iter().map(|(number, lane, rank)| waiting(*number, *lane, *rank)).collect();
        let number = |id: TradeId| queue.iter().find(|one| one.place.id == id).unwrap().place.created_at.ms();
        let ranks = ranks(1, 2, head, queue.clone());
        ranks.into_iter().map(|(id, rank)| (number(id) as u64, rank)).collect()
    }

    #[test]
    fn moved_trades_join_the_new_queue_at_its_head() {
        assert_eq!(moved(500, &[(1, 1, 7), (2, 1, 8), (3, 1, 12)]), [(1, 500), (2, 501), (3, 502)]);
        assert_eq!(moved(3, &[(1, 1, 900), (2, 1, 901)]), [(1, 3), (2, 4)]);
    }

    #[test]
    fn a_trade_that_already_waits_there_moves_behind_the_older_ones() {
        assert_eq!(moved(500, &[(1, 1, 7), (2, 1, 8), (3, 2, 500)]), [(1, 500), (2, 501), (3, 502)]);
        assert_eq!(moved(5, &[(1, 1, 7), (2, 2, 100)]), [(1, 5)], "it is behind them anyway");
        assert_eq!(moved(5, &[(1, 2, 5), (2, 1, 9)]), [(2, 6)], "it is older");
    }

    #[test]
    fn trades_of_third_lanes_stay() {
        assert_eq!(moved(0, &[(1, 3, 0), (2, 1, 1)]), [(2, 0)]);
    }
}
