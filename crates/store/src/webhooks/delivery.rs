//! Deliveries: the record of each posted event, its attempts and its replays.

use domain::Timestamp;
use domain::event::EventKind;
use domain::ids::{EventId, KeyId, TradeId, UserId};
use domain::page::Page;
use domain::webhook::MAX_REPLAYS;
pub use domain::webhook::{DeliveryStatus, UnknownDeliveryStatus};

use super::queue::{AttemptResult, Job, append, lengthen, rest_if_empty};
use crate::bind::position_or_end;
use crate::record::{Record, record};
use crate::{StoreError, Tx, params};

record! {
    /// The record of a posted event.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Delivery {
        pub event_id: EventId,
        /// The key whose URL receives the event.
        pub key_id: KeyId,
        pub kind: EventKind,
        /// The trade that the event reports, if any.
        pub trade_id: Option<TradeId>,
        /// The time of the event.
        pub emitted_at: Timestamp = "emitted_at_ms",
        pub status: DeliveryStatus,
        /// The number of attempts, including those of replays.
        pub attempts: u32,
        /// The number of requested replays.
        pub replays: u32,
        /// The time of the last attempt.
        pub last_attempted_at: Option<Timestamp> = "last_attempted_at_ms",
        /// The time of the last acknowledged attempt.
        pub last_delivered_at: Option<Timestamp> = "last_delivered_at_ms",
        /// The HTTP status of the last response.
        pub last_status_code: Option<u16>,
        /// The error code of the last attempt.
        pub last_failure_code: Option<String>,
        /// The error message of the last attempt.
        pub last_error_message: Option<String>,
        /// The time of the permanent failure.
        pub terminal_failure_at: Option<Timestamp> = "terminal_failure_at_ms",
    }
}

pub async fn find(tx: &mut Tx, user_id: UserId, id: EventId) -> Result<Option<Delivery>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Delivery::COLUMNS,
        " FROM deliveries WHERE event_id = $1 AND user_id = $2"
    );
    tx.find(SQL, &params![id, user_id], Delivery::from_row).await
}

/// Returns the body of the user's event with this id.
pub async fn find_body(tx: &mut Tx, user_id: UserId, id: EventId) -> Result<Option<String>, StoreError> {
    const SQL: &str = "SELECT body FROM events WHERE id = $1 AND user_id = $2";
    tx.find(SQL, &params![id, user_id], |row| row.only()).await
}

/// A filter for lists of deliveries.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeliveryFilter {
    pub status: Option<DeliveryStatus>,
    pub kind: Option<EventKind>,
    /// Events at or after this time.
    pub from: Option<Timestamp>,
    /// Events before this time.
    pub to: Option<Timestamp>,
}

/// Lists the deliveries of a user's events, newest first. Returns up to `limit + 1` rows: the extra
/// row shows that there is a next page.
pub async fn list(
    tx: &mut Tx,
    user_id: UserId,
    filter: &DeliveryFilter,
    page: &Page,
) -> Result<Vec<Delivery>, StoreError> {
    const BETWEEN: &str = "(emitted_at_ms, event_id) < ($2, $3) AND emitted_at_ms >= $4 AND emitted_at_ms < $5 AND ($6 = '' OR kind = $6)";
    const NEWEST: &str = "ORDER BY emitted_at_ms DESC, event_id DESC LIMIT";
    // Two statements, because each has its own index: a list of failed events must not walk past
    // all delivered ones.
    const ALL: &str = const_format::concatcp!(
        "SELECT ",
        Delivery::COLUMNS,
        " FROM deliveries WHERE user_id = $1 AND ",
        BETWEEN,
        " ",
        NEWEST,
        " $7"
    );
    const OF_STATUS: &str = const_format::concatcp!(
        "SELECT ",
        Delivery::COLUMNS,
        " FROM deliveries WHERE user_id = $1 AND ",
        BETWEEN,
        " AND status = $7 ",
        NEWEST,
        " $8"
    );
    let (at, id) = position_or_end(page.after.as_ref());
    let from = filter.from.unwrap_or(Timestamp::from_ms(i64::MIN));
    let to = filter.to.unwrap_or(Timestamp::from_ms(i64::MAX));
    let kind = filter.kind.map_or("", EventKind::as_str);
    let limit = page.limit + 1;
    match filter.status {
        None => tx.list(ALL, &params![user_id, at, id, from, to, kind, limit], Delivery::from_row).await,
        Some(status) => {
            tx.list(
                OF_STATUS,
                &params![user_id, at, id, from, to, kind, status.as_str(), limit],
                Delivery::from_row,
            )
            .await
        }
    }
}

record! {
    /// An attempt at a delivery.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Attempt {
        /// The time at which it began.
        pub at: Timestamp = "at_ms",
        pub duration_ms: u32,
        /// The HTTP status of the response, if there was one.
        pub status_code: Option<u16>,
        /// The error code, if it failed.
        pub failure_code: Option<String>,
        /// The error message, if it failed.
        pub error_message: Option<String>,
        /// The first KiB of the response body.
        pub answer_head: Option<String>,
        /// The number of the replay that the attempt belongs to. 0 is the original delivery.
        pub replay: u32,
    }
}

impl Attempt {
    pub const fn ended_at(&self) -> Timestamp {
        self.at.plus_ms(self.duration_ms as i64)
    }
}

/// Lists the attempts of an event, oldest first.
pub async fn list_attempts(tx: &mut Tx, id: EventId) -> Result<Vec<Attempt>, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "SELECT ",
        Attempt::COLUMNS,
        " FROM delivery_attempts WHERE event_id = $1 ORDER BY number LIMIT 1000"
    );
    tx.list(SQL, &params![id], Attempt::from_row).await
}

/// Stores an attempt and its effect on the delivery. The caller's transaction has locked the
/// endpoint's row.
pub(super) async fn record(
    tx: &mut Tx,
    job: &Job,
    attempt: &Attempt,
    ending: AttemptResult,
) -> Result<(), StoreError> {
    const EVENT: &str =
        "UPDATE deliveries SET status = $1, attempts = attempts + 1, last_attempted_at_ms = $2,
        last_delivered_at_ms = COALESCE(CAST($3 AS BIGINT), last_delivered_at_ms), last_status_code = $4,
        last_failure_code = $5, last_error_message = $6, terminal_failure_at_ms = $7 WHERE event_id = $8";
    // Runs after the UPDATE that increments `attempts`, which is then the number of this
    // attempt.
    const ATTEMPT: &str =
        "INSERT INTO delivery_attempts (event_id, number, replay, at_ms, duration_ms, status_code,
        failure_code, error_message, answer_head)
        SELECT event_id, attempts, $1, $2, $3, $4, $5, $6, $7 FROM deliveries WHERE event_id = $8";
    let ended_at = attempt.ended_at();
    let (status, delivered_at, failed_at) = match ending {
        AttemptResult::Delivered => (DeliveryStatus::Delivered, Some(ended_at), None),
        AttemptResult::Retry => (DeliveryStatus::Retrying, None, None),
        AttemptResult::Failed => (DeliveryStatus::Failed, None, Some(ended_at)),
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

/// The result of a request to redeliver an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redelivered {
    /// Added to the end of its key's queue.
    Queued(Box<Delivery>),
    /// The event has reached the maximum number of replays.
    LimitReached,
    /// The key has no webhook URL.
    NoUrl,
    /// The key is revoked: its receiver gets only the events of its trades.
    Revoked,
    /// The user has no such event.
    NotFound,
}

/// Adds the user's event to the end of its key's queue again.
pub async fn redeliver(
    tx: &mut Tx,
    user_id: UserId,
    id: EventId,
    now: Timestamp,
) -> Result<Redelivered, StoreError> {
    const SQL: &str = const_format::concatcp!(
        "UPDATE deliveries SET replays = replays + 1, status = 'pending', terminal_failure_at_ms = NULL
        WHERE event_id = $1 AND user_id = $2 AND replays < $3 RETURNING ",
        Delivery::COLUMNS
    );
    const REVOKED: &str = "SELECT id FROM keys WHERE id = $1 AND revoked_at_ms IS NOT NULL";
    let Some(found) = find(tx, user_id, id).await? else { return Ok(Redelivered::NotFound) };
    if tx.exists(REVOKED, &params![found.key_id]).await? {
        return Ok(Redelivered::Revoked);
    }
    // Lock the endpoint's row before the delivery's, in the same order as a sender, to avoid
    // deadlocks.
    if lengthen(tx, &[(found.key_id, 1, now)]).await?.is_empty() {
        return Ok(Redelivered::NoUrl);
    }
    match tx.find(SQL, &params![id, user_id, MAX_REPLAYS], Delivery::from_row).await? {
        Some(delivery) => {
            append(tx, &[(delivery.key_id, 0, id, delivery.replays, now)]).await?;
            tx.wake_senders();
            Ok(Redelivered::Queued(Box::new(delivery)))
        }
        None => {
            // The queue was extended above, but nothing was appended.
            rest_if_empty(tx, found.key_id).await?;
            let is_there = find(tx, user_id, id).await?.is_some();
            Ok(if is_there { Redelivered::LimitReached } else { Redelivered::NotFound })
        }
    }
}
