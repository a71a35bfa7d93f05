//! What became of each event that is posted: its record, its attempts, its replays.

use domain::Timestamp;
use domain::event::EventKind;
use domain::ids::{EventId, KeyId, TradeId, UserId};
use domain::page::Page;
use domain::webhook::MAX_REPLAYS;
pub use domain::webhook::{DeliveryStatus, UnknownDeliveryStatus};

use super::queue::{Ending, Job, append, lengthen, rest_if_empty};
use crate::bind::position_or_end;
use crate::{Row, StoreError, Tx, params};

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The event.
    pub event_id: EventId,
    /// The key whose URL it goes to.
    pub key_id: KeyId,
    /// What it tells.
    pub kind: EventKind,
    /// The trade it tells of.
    pub trade_id: Option<TradeId>,
    /// When it happened, which is when it was written.
    pub emitted_at: Timestamp,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// The attempts of all times.
    pub attempts: u32,
    /// How often it was asked for again.
    pub replays: u32,
    /// The last attempt.
    pub last_attempted_at: Option<Timestamp>,
    /// The last attempt that was acknowledged.
    pub last_delivered_at: Option<Timestamp>,
    /// The status of the last answer.
    pub last_status_code: Option<u16>,
    /// What the last attempt failed by.
    pub last_failure_code: Option<String>,
    /// The same in words.
    pub last_error_message: Option<String>,
    /// When it was given up.
    pub terminal_failure_at: Option<Timestamp>,
}

const COLUMNS: &str =
    "event_id, key_id, kind, trade_id, emitted_at_ms, status, attempts, replays, last_attempted_at_ms,
    last_delivered_at_ms, last_status_code, last_failure_code, last_error_message, terminal_failure_at_ms";

fn from_row(row: &Row<'_>) -> Result<Delivery, StoreError> {
    Ok(Delivery {
        event_id: row.parse(0)?,
        key_id: row.parse(1)?,
        kind: row.parse(2)?,
        trade_id: row.opt_parse(3)?,
        emitted_at: row.timestamp(4)?,
        status: row.parse(5)?,
        attempts: row.number(6)?,
        replays: row.number(7)?,
        last_attempted_at: row.opt_timestamp(8)?,
        last_delivered_at: row.opt_timestamp(9)?,
        last_status_code: row.opt_number(10)?,
        last_failure_code: row.opt_text(11)?,
        last_error_message: row.opt_text(12)?,
        terminal_failure_at: row.opt_timestamp(13)?,
    })
}

/// The user's event with this id.
pub async fn find(tx: &mut Tx, user_id: UserId, id: EventId) -> Result<Option<Delivery>, StoreError> {
    const SQL: &str =
        const_format::concatcp!("SELECT ", COLUMNS, " FROM deliveries WHERE event_id = $1 AND user_id = $2");
    tx.find(SQL, &params![id, user_id], from_row).await
}

/// The body of the user's event with this id.
pub async fn find_body(tx: &mut Tx, user_id: UserId, id: EventId) -> Result<Option<String>, StoreError> {
    const SQL: &str = "SELECT body FROM events WHERE id = $1 AND user_id = $2";
    tx.find(SQL, &params![id, user_id], |row| row.text(0)).await
}

/// What a list of events is narrowed to.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeliveryFilter {
    /// Those that stand here.
    pub status: Option<DeliveryStatus>,
    /// Those that happened at or after this.
    pub from: Option<Timestamp>,
    /// Those that happened before this.
    pub to: Option<Timestamp>,
}

/// One row more than the page's limit of the user's events, newest first.
pub async fn list(
    tx: &mut Tx,
    user_id: UserId,
    filter: &DeliveryFilter,
    page: &Page,
) -> Result<Vec<Delivery>, StoreError> {
    const BETWEEN: &str =
        "(emitted_at_ms, event_id) < ($2, $3) AND emitted_at_ms >= $4 AND emitted_at_ms < $5";
    const NEWEST: &str = "ORDER BY emitted_at_ms DESC, event_id DESC LIMIT";
    const ALL: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM deliveries WHERE user_id = $1 AND ",
        BETWEEN,
        " ",
        NEWEST,
        " $6"
    );
    const OF_STATUS: &str = const_format::concatcp!(
        "SELECT ",
        COLUMNS,
        " FROM deliveries WHERE user_id = $1 AND ",
        BETWEEN,
        " AND status = $6 ",
        NEWEST,
        " $7"
    );
    let (at, id) = position_or_end(page.after.as_ref());
    let from = filter.from.unwrap_or(Timestamp::from_ms(i64::MIN));
    let to = filter.to.unwrap_or(Timestamp::from_ms(i64::MAX));
    let limit = page.limit + 1;
    match filter.status {
        None => tx.list(ALL, &params![user_id, at, id, from, to, limit], from_row).await,
        Some(status) => {
            tx.list(OF_STATUS, &params![user_id, at, id, from, to, status.as_str(), limit], from_row).await
        }
    }
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// When it began.
    pub at: Timestamp,
    /// How long it took.
    pub duration_ms: u32,
    /// The status of the answer, if there was one.
    pub status_code: Option<u16>,
    /// What it failed by.
    pub failure_code: Option<String>,
    /// The same in words.
    pub error_message: Option<String>,
    /// The first KiB of the answer's body.
    pub answer_head: Option<String>,
    /// Which replay of the event it was part of; 0 is the event itself.
    pub replay: u32,
}

impl Attempt {
    /// When it ended.
    pub const fn ended_at(&self) -> Timestamp {
        self.at.plus_ms(self.duration_ms as i64)
    }
}

/// The attempts of an event, oldest first.
pub async fn list_attempts(tx: &mut Tx, id: EventId) -> Result<Vec<Attempt>, StoreError> {
    const SQL: &str =
        "SELECT at_ms, duration_ms, status_code, failure_code, error_message, answer_head, replay
        FROM delivery_attempts WHERE event_id = $1 ORDER BY number LIMIT 1000";
    tx.list(SQL, &params![id], |row| {
        Ok(Attempt {
            at: row.timestamp(0)?,
            duration_ms: row.number(1)?,
            status_code: row.opt_number(2)?,
            failure_code: row.opt_text(3)?,
            error_message: row.opt_text(4)?,
            answer_head: row.opt_text(5)?,
            replay: row.number(6)?,
        })
    })
    .await
}

/// Notes an attempt and what became of the event by it. The queue's row is locked by the transaction.
pub(super) async fn record(
    tx: &mut Tx,
    job: &Job,
    attempt: &Attempt,
    ending: Ending,
) -> Result<(), StoreError> {
    const EVENT: &str =
        "UPDATE deliveries SET status = $1, attempts = attempts + 1, last_attempted_at_ms = $2,
        last_delivered_at_ms = COALESCE(CAST($3 AS BIGINT), last_delivered_at_ms), last_status_code = $4,
        last_failure_code = $5, last_error_message = $6, terminal_failure_at_ms = $7 WHERE event_id = $8";
    const ATTEMPT: &str =
        "INSERT INTO delivery_attempts (event_id, number, replay, at_ms, duration_ms, status_code,
        failure_code, error_message, answer_head)
        SELECT event_id, attempts, $1, $2, $3, $4, $5, $6, $7 FROM deliveries WHERE event_id = $8";
    let ended_at = attempt.ended_at();
    let (status, delivered_at, failed_at) = match ending {
        Ending::Delivered => (DeliveryStatus::Delivered, Some(ended_at), None),
        Ending::Retry => (DeliveryStatus::Retrying, None, None),
        Ending::Failed => (DeliveryStatus::Failed, None, Some(ended_at)),
    };
    let Attempt { at, duration_ms, status_code, failure_code, error_message, answer_head, replay } = attempt;
    let (failure_code, error_message) = (failure_code.as_deref(), error_message.as_deref());
    let of_event = params![
        status.as_str(),
        *at,
        delivered_at,
        *status_code,
        failure_code,
        error_message,
        failed_at,
        job.event_id
    ];
    if tx.exec(EVENT, &of_event).await? == 0 {
        return Err(StoreError::missing("deliveries"));
    }
    let of_attempt = params![
        *replay,
        *at,
        *duration_ms,
        *status_code,
        failure_code,
        error_message,
        answer_head.as_deref(),
        job.event_id
    ];
    tx.exec(ATTEMPT, &of_attempt).await.map(drop)
}

/// What became of the wish to send an event again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redelivered {
    /// It stands at the end of its key's queue.
    Queued(Box<Delivery>),
    /// It was asked for as often as it may be.
    LimitReached,
    /// Its key has no URL.
    NoUrl,
    /// The user has no such event.
    NotFound,
}

/// Puts the user's event at the end of its key's queue once more.
pub async fn redeliver(
    tx: &mut Tx,
    user_id: UserId,
    id: EventId,
    now: Timestamp,
) -> Result<Redelivered, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "UPDATE deliveries SET replays = replays + 1, status = 'pending', terminal_failure_at_ms = NULL
        WHERE event_id = $1 AND user_id = $2 AND replays < $3 RETURNING ",
        COLUMNS
    );
    let Some(found) = find(tx, user_id, id).await? else { return Ok(Redelivered::NotFound) };
    // The endpoint's row before the delivery's, as a sender takes them.
    if lengthen(tx, &[(found.key_id, 1, now)]).await?.is_empty() {
        return Ok(Redelivered::NoUrl);
    }
    match tx.find(SQL, &params![id, user_id, MAX_REPLAYS], from_row).await? {
        Some(delivery) => {
            append(tx, &[(delivery.key_id, 0, id, delivery.replays, now)]).await?;
            tx.wake_senders();
            Ok(Redelivered::Queued(Box::new(delivery)))
        }
        None => {
            rest_if_empty(tx, found.key_id).await?;
            let is_there = find(tx, user_id, id).await?.is_some();
            Ok(if is_there { Redelivered::LimitReached } else { Redelivered::NotFound })
        }
    }
}
