//! Lanes: which executors exist, how each signs, and which of them get accounts.

use alloy_primitives::Address;
use domain::Timestamp;
use domain::lane::{LaneState, SignerKind};
use domain::time::MINUTE_MS;

use crate::record::{Insert, Record, record};
use crate::{StoreError, Tx, params, trades};

/// The time after a change of the lanes in which a process may still use the old ones.
const SETTLE_MS: i64 = MINUTE_MS;
/// The maximum number of users whose trades are handed over in one transaction.
const USERS: u32 = 200;

record! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Lane: Insert {
        /// The number, which is never given to another executor.
        pub lane: u16,
        pub executor: Address,
        pub signer: SignerKind,
        /// Settings of the signer as JSON, without secrets.
        pub signer_settings: Option<String>,
        pub state: LaneState,
        /// Whether other lanes take over what this one has not signed.
        pub hands_over: bool,
        /// The time since which a process runs the lane.
        pub started_at: Option<Timestamp> = "started_at_ms",
        /// Until at least this time, trades wait for older ones of their account in other lanes.
        pub settles_after: Option<Timestamp> = "settles_after_ms",
        pub created_at: Timestamp = "created_at_ms",
        pub updated_at: Timestamp = "updated_at_ms",
    }
}

impl Lane {
    /// Creates an active lane whose key is in the secrets file.
    pub const fn of_file(lane: u16, executor: Address, now: Timestamp) -> Self {
        Self {
            lane,
            executor,
            signer: SignerKind::File,
            signer_settings: None,
            state: LaneState::Active,
            hands_over: false,
            started_at: Some(now),
            settles_after: None,
            created_at: now,
            updated_at: now,
        }
    }

    /// Returns whether the lane gets accounts.
    pub fn is_assignable(&self) -> bool {
        self.state == LaneState::Active && self.started_at.is_some()
    }
}

/// Returns the numbers of the lanes that get accounts, sorted. If there are none, trades wait in a
/// lane that may become active, or else in any.
pub fn assignable(lanes: &[Lane]) -> Vec<u16> {
    let numbers = |of: fn(&Lane) -> bool| -> Vec<u16> {
        lanes.iter().filter(|lane| of(lane)).map(|lane| lane.lane).collect()
    };
    let wanted: [fn(&Lane) -> bool; 3] =
        [Lane::is_assignable, |lane| lane.state == LaneState::Active, |lane| !lane.hands_over];
    let mut found = wanted.into_iter().map(numbers).find(|found| !found.is_empty()).unwrap_or_default();
    found.sort_unstable();
    found
}

/// Lists all lanes by their numbers.
pub async fn list(tx: &mut Tx) -> Result<Vec<Lane>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", Lane::COLUMNS, " FROM lanes ORDER BY lane");
    tx.list(SQL, &[], Lane::from_row).await
}

/// Lists the numbers of the lanes that get accounts: see [`assignable`].
pub async fn list_assignable(tx: &mut Tx) -> Result<Vec<u16>, StoreError> {
    Ok(assignable(&list(tx).await?))
}

pub async fn find_by_executor(tx: &mut Tx, executor: Address) -> Result<Option<Lane>, StoreError> {
    const SQL: &str = const_format::concatcp!("SELECT ", Lane::COLUMNS, " FROM lanes WHERE executor = $1");
    tx.find(SQL, &params![executor], Lane::from_row).await
}

/// Locks all lanes. Changes of lanes exclude each other, so that the last active one stays.
pub async fn lock(tx: &mut Tx) -> Result<Vec<Lane>, StoreError> {
    tx.exec("UPDATE lanes SET state = state", &[]).await?;
    list(tx).await
}

/// Inserts a lane with the next free number. Returns the stored lane of the executor, which may be
/// that of another process.
pub async fn insert(tx: &mut Tx, new: &Lane) -> Result<Lane, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "INSERT INTO lanes (",
        Lane::COLUMNS,
        ") VALUES (",
        Lane::PLACEHOLDERS,
        ") ON CONFLICT DO NOTHING"
    );
    const LAST: &str = "SELECT MAX(lane) AS lane FROM lanes";
    loop {
        if let Some(known) = find_by_executor(tx, new.executor).await? {
            return Ok(known);
        }
        let last: Option<u16> = tx.find(LAST, &[], |row| row.only()).await?.flatten();
        let lane = last.map_or(Some(0), |last| last.checked_add(1));
        let lane =
            lane.ok_or_else(|| StoreError::driver("there are no more numbers for lanes".to_owned()))?;
        // Nothing is inserted if another process has just taken the number: then try the next one.
        tx.exec(SQL, &Lane { lane, ..new.clone() }.values()?).await?;
    }
}

/// Stores what an operator or an executor may change of a lane.
pub async fn put(tx: &mut Tx, lane: &Lane) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE lanes SET signer = $1, signer_settings = $2, state = $3, hands_over = $4,
        started_at_ms = $5, updated_at_ms = $6 WHERE lane = $7";
    let bound = params![
        lane.signer.as_str(),
        lane.signer_settings.as_deref(),
        lane.state.as_str(),
        lane.hands_over,
        lane.started_at,
        lane.updated_at,
        lane.lane
    ];
    tx.exec(SQL, &bound).await.map(drop)
}

/// Notes that the lanes that get accounts have changed. From now on trades wait for older ones of
/// their account in other lanes.
pub async fn unsettle(tx: &mut Tx, now: Timestamp) -> Result<(), StoreError> {
    let until = now.plus_ms(SETTLE_MS);
    tx.exec("UPDATE lanes SET settles_after_ms = $1", &params![until]).await.map(drop)
}

/// Ends the wait for trades of other lanes, unless the lanes have changed again since `seen`.
pub async fn settle(tx: &mut Tx, lane: u16, seen: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE lanes SET settles_after_ms = NULL WHERE lane = $1 AND settles_after_ms = $2";
    tx.exec(SQL, &params![lane, seen]).await.map(drop)
}

/// Reports whether a lane may sign trades. One that hands its trades over may not.
pub async fn may_sign(tx: &mut Tx, lane: u16) -> Result<bool, StoreError> {
    Ok(!tx.exists("SELECT 1 FROM lanes WHERE lane = $1 AND hands_over = 1", &params![lane]).await?)
}

/// Returns the first lane that hands over and has something unsigned.
pub async fn find_handing_over(tx: &mut Tx) -> Result<Option<u16>, StoreError> {
    // Removed lanes hand over for ever, so they are asked with one query.
    const SQL: &str = "SELECT l.lane FROM lanes l WHERE l.hands_over = 1 AND (
        EXISTS (SELECT 1 FROM trades t WHERE t.lane = l.lane AND t.ended_at_ms IS NULL
            AND (t.status IN ('pending', 'validating') OR (t.status = 'executing' AND t.batch_id IS NULL)))
        OR EXISTS (SELECT 1 FROM delegation_changes d WHERE d.lane = l.lane AND d.ended_at_ms IS NULL
            AND d.status = 'queued')
        OR EXISTS (SELECT 1 FROM owner_acts o WHERE o.lane = l.lane AND o.status = 'signed'))
        ORDER BY l.lane LIMIT 1";
    tx.find(SQL, &[], |row| row.only()).await
}

/// Moves what the lane `from` has not signed to the lanes `targets`, each account's in its order.
/// Returns the number of moved trades. The lane's executor writes nothing meanwhile.
pub async fn hand_over(tx: &mut Tx, from: u16, targets: &[u16], now: Timestamp) -> Result<u64, StoreError> {
    crate::leases::exclude(tx, &lease_name(from)).await?;
    // Checked under the lock: an operator may have made the lane active again.
    if may_sign(tx, from).await? || targets.is_empty() {
        return Ok(0);
    }
    let moved = trades::hand_over(tx, from, targets, USERS).await?;
    crate::delegations::hand_over(tx, from, targets).await?;
    crate::owner_acts::hand_over(tx, from, targets).await?;
    unsettle(tx, now).await?;
    Ok(moved)
}

/// Returns the name of the lease that an executor holds on its lane.
pub fn lease_name(lane: u16) -> String {
    format!("executor:{lane}")
}
