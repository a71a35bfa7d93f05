//! Checks of events against trades, and of deliveries against their queues.

use std::collections::{BTreeMap, BTreeSet};

use domain::ids::{EventId, TradeId};
use domain::time::DAY_MS;
use domain::webhook::DeliveryStatus;
use store::{StoreError, Tx};

use crate::TestApp;

struct Told {
    /// The event ids that follow from every trade's status changes.
    expected: BTreeSet<EventId>,
    of_trades: BTreeSet<EventId>,
    /// The sequence numbers of each user's events, and the range of the feed.
    feeds: BTreeMap<String, (i64, i64, Vec<i64>)>,
    /// Each delivery, its status, and how often it is queued.
    deliveries: Vec<(EventId, DeliveryStatus, i64)>,
    /// Each key's queue, whether it has a due time, and its length.
    queues: Vec<(String, bool, i64)>,
}

impl TestApp {
    /// The checks of [`Self::assert_ledger_equals_chain`] that concern events. For tests whose
    /// clock differs from the chain's.
    pub async fn assert_events_tell_what_happened(&self) {
        let before_ms = self.ctx.now().ms() - 30 * DAY_MS;
        let told = self.ctx.store.read(before_ms, |tx, before_ms| Box::pin(read(tx, *before_ms))).await;
        let told = told.unwrap();
        assert_eq!(told.of_trades, told.expected, "the events of trades of the last 30 days");
        for (user, (pruned, last, numbers)) in &told.feeds {
            // Events before the range may remain: kinds that are delivered are not pruned with the
            // feed.
            let kept: Vec<_> = numbers.iter().copied().filter(|seq| seq > pruned).collect();
            assert!(
                kept.iter().copied().eq(pruned + 1..=*last),
                "the feed of {user}: {kept:?} of {pruned}..{last}"
            );
        }
        for (event, status, queued) in &told.deliveries {
            let waits = matches!(status, DeliveryStatus::Pending | DeliveryStatus::Retrying);
            assert!(!waits || *queued > 0, "{event} is {status} and stands in no queue");
        }
        for (key, is_due, length) in &told.queues {
            assert_eq!(
                *is_due,
                *length > 0,
                "whether the queue of {key} with {length} events is ever looked at"
            );
        }
    }
}

async fn read(tx: &mut Tx, before_ms: i64) -> Result<Told, StoreError> {
    const TRADES: &str = "SELECT id FROM trades";
    const OF_TRADES: &str = "SELECT id FROM events WHERE trade_id IS NOT NULL AND emitted_at_ms >= $1";
    const FEEDS: &str = "SELECT user_id, pruned_seq, last_seq FROM feeds";
    const NUMBERS: &str = "SELECT user_id, seq FROM events ORDER BY user_id, seq";
    const DELIVERIES: &str = "SELECT event_id, status,
        (SELECT COUNT(*) FROM webhook_queue q WHERE q.event_id = d.event_id) AS queued FROM deliveries d";
    const QUEUES: &str = "SELECT key_id, CASE WHEN due_at_ms IS NULL THEN 0 ELSE 1 END AS is_due,
        (SELECT COUNT(*) FROM webhook_queue q WHERE q.key_id = w.key_id) AS waiting FROM webhook_endpoints w";
    let trades: Vec<TradeId> = tx.list(TRADES, &[], |row| row.get("id")).await?;
    let mut expected = BTreeSet::new();
    for id in trades {
        for (status, at) in store::trades::history(tx, id).await? {
            if at.ms() >= before_ms {
                expected.insert(EventId::of_trade(id, status, at));
            }
        }
    }
    let of_trades = tx.list(OF_TRADES, &store::params![before_ms], |row| row.only()).await?;
    let feeds = tx
        .list(FEEDS, &[], |row| {
            Ok((row.get("user_id")?, (row.get("pruned_seq")?, row.get("last_seq")?, Vec::new())))
        })
        .await?;
    let mut feeds: BTreeMap<String, (i64, i64, Vec<i64>)> = feeds.into_iter().collect();
    for (user, seq) in
        tx.list(NUMBERS, &[], |row| Ok((row.get::<String>("user_id")?, row.get("seq")?))).await?
    {
        feeds.get_mut(&user).expect("events have a feed").2.push(seq);
    }
    Ok(Told {
        expected,
        of_trades: of_trades.into_iter().collect(),
        feeds,
        deliveries: tx
            .list(DELIVERIES, &[], |row| Ok((row.get("event_id")?, row.get("status")?, row.get("queued")?)))
            .await?,
        queues: tx
            .list(QUEUES, &[], |row| Ok((row.get("key_id")?, row.get("is_due")?, row.get("waiting")?)))
            .await?,
    })
}
