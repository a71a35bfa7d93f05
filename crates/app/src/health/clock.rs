//! Compares this machine's clock with those of the database and of the chain.
//!
//! Keys, sessions, webhook signatures and leases compare times of different machines. A process whose
//! clock is 20 minutes ahead takes the leases of all others, and one that is behind rejects keys that
//! were just issued.

use async_trait::async_trait;
use domain::Timestamp;
use parking_lot::Mutex;

use super::{Degradation, Reason, TIMEOUT};
use crate::metrics::ClockSource;
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// A difference from the database's clock that is reported. Leases last for a few seconds longer.
pub const MAX_DATABASE_OFFSET_MS: i64 = 5_000;
/// A difference from the chain that is reported. Validators set the time of a block, and the newest
/// block of a slow chain is this old.
pub const MAX_CHAIN_OFFSET_MS: i64 = 60_000;

/// How far this machine's clock is ahead of another one. Negative if it is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    pub source: ClockSource,
    pub ahead_ms: i64,
}

impl ClockOffset {
    /// Returns whether the difference is larger than networks and blocks explain.
    pub const fn is_wrong(self) -> bool {
        let max_ms = match self.source {
            ClockSource::Database => MAX_DATABASE_OFFSET_MS,
            ClockSource::Chain => MAX_CHAIN_OFFSET_MS,
        };
        self.ahead_ms.abs() > max_ms
    }

    /// Says how much the clocks differ, and what to do.
    pub fn describe(self) -> String {
        let other = match self.source {
            ClockSource::Database => "the database's",
            ClockSource::Chain => "the chain's newest block",
        };
        let direction = if self.ahead_ms < 0 { "behind" } else { "ahead of" };
        let seconds = self.ahead_ms.unsigned_abs().div_ceil(1_000);
        format!("This machine's clock is {seconds} s {direction} {other}. Synchronize both with NTP.")
    }
}

/// Returns the difference from the database's clock. `None` for SQLite, which has none of its own, and
/// for a server that does not answer.
pub async fn against_database(ctx: &Ctx) -> Option<ClockOffset> {
    let began = ctx.now();
    let answered = tokio::time::timeout(TIMEOUT, ctx.store.server_time()).await;
    let theirs = answered.ok()?.ok()??;
    // The server read its clock at some moment of the request. Half of the time is the best guess.
    let half_ms = ctx.now().since_ms(began) / 2;
    let ahead_ms = began.plus_ms(half_ms).since_ms(theirs);
    Some(ClockOffset { source: ClockSource::Database, ahead_ms })
}

/// Returns how far this machine's clock is behind the chain's newest block. `None` if it is not: an
/// old block only says that the chain is idle.
pub fn behind_chain(head_at_s: u64, now: Timestamp) -> Option<ClockOffset> {
    let ahead_ms = now.since_ms(Timestamp::from_s(head_at_s));
    (ahead_ms < 0).then_some(ClockOffset { source: ClockSource::Chain, ahead_ms })
}

/// The newest blocks that a process has seen.
#[derive(Debug, Default)]
struct BlocksSeen {
    head: Option<u64>,
    /// The difference, once a block has shown it.
    ahead_ms: Option<i64>,
}

impl BlocksSeen {
    /// Returns the difference from the chain. A block that appears between two looks was made between
    /// them, so that it also shows a clock that is ahead.
    fn look(&mut self, head: u64, head_at_s: u64, now: Timestamp) -> Option<ClockOffset> {
        let age_ms = now.since_ms(Timestamp::from_s(head_at_s));
        let is_new = self.head.is_some_and(|seen| head > seen);
        self.ahead_ms = match self.ahead_ms {
            _ if is_new || age_ms < 0 => Some(age_ms),
            // The block is old, but the clock cannot be ahead by more than its age: somebody may have
            // corrected it.
            known => known.map(|ahead_ms| ahead_ms.max(0).min(age_ms)),
        };
        self.head = Some(head);
        self.ahead_ms.map(|ahead_ms| ClockOffset { source: ClockSource::Chain, ahead_ms })
    }
}

/// Compares the clocks regularly. Not for services whose clock was moved on purpose.
#[derive(Debug, Default)]
pub struct ClockWatcher {
    blocks: Mutex<BlocksSeen>,
}

#[async_trait]
impl Worker for ClockWatcher {
    fn name(&self) -> &'static str {
        "clock watcher"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let database = against_database(ctx).await;
        // The watcher of the nodes has just read their newest blocks, so no request is needed. The
        // newest block of all is the one to compare: a node that lags says nothing about the clock.
        let reports = ctx.chain.nodes().map(|nodes| nodes.report()).unwrap_or_default();
        let up = reports.into_iter().filter(chain::NodeReport::is_up);
        let newest = up.filter_map(|node| Some((node.head, node.head_at_s?))).max();
        let chain = newest.and_then(|(head, at_s)| self.blocks.lock().look(head, at_s, ctx.now()));
        let offsets: Vec<ClockOffset> = [database, chain].into_iter().flatten().collect();
        for offset in &offsets {
            ctx.process.metrics.clock_offset(offset.source, offset.ahead_ms);
        }
        let wrong = offsets.into_iter().find(|offset| offset.is_wrong());
        let degradation = wrong.map(|offset| Degradation::new(Reason::ClockWrong, offset.describe()));
        ctx.process.degradations.put(Reason::ClockWrong, degradation);
        Ok(Progress::Idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_777_464_000_000);

    fn offset(source: ClockSource, ahead_ms: i64) -> ClockOffset {
        ClockOffset { source, ahead_ms }
    }

    #[test]
    fn a_clock_is_wrong_if_it_differs_by_more_than_networks_and_blocks_explain() {
        let is_wrong = |source, ahead_ms| offset(source, ahead_ms).is_wrong();
        assert!(!is_wrong(ClockSource::Database, 5_000) && !is_wrong(ClockSource::Database, -5_000));
        assert!(is_wrong(ClockSource::Database, 5_001) && is_wrong(ClockSource::Database, -5_001));
        assert!(!is_wrong(ClockSource::Chain, 60_000) && is_wrong(ClockSource::Chain, -60_001));
    }

    #[test]
    fn the_message_names_the_difference_and_the_next_step() {
        let ahead = offset(ClockSource::Database, 1_200_000).describe();
        assert_eq!(
            ahead,
            "This machine's clock is 1200 s ahead of the database's. Synchronize both with NTP."
        );
        let behind = offset(ClockSource::Chain, -61_500).describe();
        assert!(behind.starts_with("This machine's clock is 62 s behind the chain's newest block."));
    }

    #[test]
    fn an_idle_chain_says_nothing_about_a_clock_that_is_ahead_but_a_new_block_does() {
        let mut blocks = BlocksSeen::default();
        let at = |ms: i64| NOW.plus_ms(ms).s();
        assert_eq!(blocks.look(7, at(-3_600_000), NOW), None);
        assert_eq!(blocks.look(7, at(-3_600_000), NOW), None);
        let late = Some(offset(ClockSource::Chain, 1_200_000));
        assert_eq!(blocks.look(8, at(-1_200_000), NOW), late);
        let corrected = Some(offset(ClockSource::Chain, 0));
        assert_eq!(blocks.look(8, at(-1_200_000), NOW.plus_ms(-1_200_000)), corrected, "without a block");
        assert_eq!(blocks.look(9, at(-2_000), NOW), Some(offset(ClockSource::Chain, 2_000)));
        assert_eq!(behind_chain(at(-3_600_000), NOW), None);
        assert_eq!(behind_chain(at(90_000), NOW), Some(offset(ClockSource::Chain, -90_000)));
    }
}
