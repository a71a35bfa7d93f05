//! A sliding window of any length over amounts, in constant memory.

use std::collections::VecDeque;

use crate::Timestamp;

/// The number of slots of a period. A use is forgotten up to one slot later than its period ends.
pub const SLOTS: i64 = 12;

/// What was used within the last period, by slots of a twelfth of it. No period, wherever it
/// starts, contains more than the limit: a day's limit of 20 never allows 40 around midnight.
///
/// [`SlidingWindow`](super::SlidingWindow) is exact to the millisecond, but remembers every request.
/// This window remembers 13 sums, so it suits shares of thousands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotWindow {
    /// Numbers of slots and the sums used in them, oldest first.
    slots: VecDeque<(i64, u64)>,
    slot_ms: i64,
    /// The latest time seen. A clock that goes back counts as standing still.
    latest_ms: i64,
}

/// A limit has no room for an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom {
    /// The time until there is enough room if nothing else is used.
    pub retry_after_ms: i64,
}

impl SlotWindow {
    /// Uses `amount`, or rejects it if the period would then contain more than `limit`.
    ///
    /// # Errors
    /// [`NoRoom`]; nothing is used then.
    pub fn take(&mut self, amount: u64, limit: u64, period_ms: i64, now: Timestamp) -> Result<(), NoRoom> {
        self.move_to(period_ms, now);
        let used = self.sum();
        if used.saturating_add(amount) > limit {
            return Err(NoRoom { retry_after_ms: self.retry_after_ms(used, amount, limit, period_ms) });
        }
        let current = self.latest_ms.div_euclid(self.slot_ms);
        match self.slots.back_mut() {
            Some((slot, sum)) if *slot == current => *sum += amount,
            _ => self.slots.push_back((current, amount)),
        }
        Ok(())
    }

    /// Gives back an amount that was taken but not used, from the newest slots.
    pub fn give_back(&mut self, amount: u64) {
        let mut rest = amount;
        while rest > 0
            && let Some((_, sum)) = self.slots.back_mut()
        {
            let part = rest.min(*sum);
            *sum -= part;
            rest -= part;
            if *sum == 0 {
                self.slots.pop_back();
            }
        }
    }

    /// Returns what was used within the last period.
    pub fn used(&mut self, now: Timestamp) -> u64 {
        if self.slot_ms > 0 {
            self.move_to(self.slot_ms * SLOTS, now);
        }
        self.sum()
    }

    /// Returns the time from which nothing is remembered.
    pub fn idle_at(&self) -> Timestamp {
        Timestamp::from_ms(self.slots.back().map_or(0, |(slot, _)| self.forgotten_at_ms(*slot)))
    }

    fn sum(&self) -> u64 {
        self.slots.iter().fold(0, |sum, (_, used)| sum.saturating_add(*used))
    }

    const fn forgotten_at_ms(&self, slot: i64) -> i64 {
        (slot + SLOTS + 1) * self.slot_ms
    }

    fn move_to(&mut self, period_ms: i64, now: Timestamp) {
        self.slot_ms = (period_ms / SLOTS).max(1);
        self.latest_ms = self.latest_ms.max(now.ms());
        while let Some((slot, _)) = self.slots.front()
            && self.forgotten_at_ms(*slot) <= self.latest_ms
        {
            self.slots.pop_front();
        }
    }

    fn retry_after_ms(&self, used: u64, amount: u64, limit: u64, period_ms: i64) -> i64 {
        let mut left = used;
        for (slot, sum) in &self.slots {
            left -= sum;
            if left.saturating_add(amount) <= limit {
                return self.forgotten_at_ms(*slot) - self.latest_ms;
            }
        }
        // More than the whole limit never has room; report one period.
        period_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{DAY_MS, HOUR_MS, MINUTE_MS};

    fn at(ms: i64) -> Timestamp {
        // A multiple of a day, so that slots begin at round times.
        Timestamp::from_ms(20_000 * DAY_MS + ms)
    }

    #[test]
    fn no_period_contains_more_than_the_limit() {
        let mut window = SlotWindow::default();
        assert!(window.take(20, 20, DAY_MS, at(DAY_MS - 1)).is_ok());
        // Midnight is no new day.
        let refused = window.take(1, 20, DAY_MS, at(DAY_MS));
        // The slot of two hours is forgotten as a whole, a day after its end.
        assert_eq!(refused, Err(NoRoom { retry_after_ms: DAY_MS }));
        assert!(window.take(1, 20, DAY_MS, at(2 * DAY_MS - 1)).is_err());
        assert!(window.take(1, 20, DAY_MS, at(2 * DAY_MS)).is_ok());
    }

    #[test]
    fn a_use_waits_until_enough_old_ones_are_forgotten() {
        let mut window = SlotWindow::default();
        for (amount, ms) in [(5, 0), (3, 4 * HOUR_MS), (2, 8 * HOUR_MS)] {
            assert!(window.take(amount, 10, DAY_MS, at(ms)).is_ok());
        }
        let refused = |window: &mut SlotWindow, amount| window.take(amount, 10, DAY_MS, at(9 * HOUR_MS));
        let hours = |hours: i64| Err(NoRoom { retry_after_ms: hours * HOUR_MS });
        assert_eq!(refused(&mut window, 5), hours(17));
        assert_eq!(refused(&mut window, 6), hours(21));
        assert_eq!(refused(&mut window, 11), hours(24));
        assert_eq!(window.used(at(9 * HOUR_MS)), 10);
    }

    #[test]
    fn what_is_given_back_can_be_used_again() {
        let mut window = SlotWindow::default();
        window.take(3, 5, MINUTE_MS, at(0)).unwrap();
        window.take(2, 5, MINUTE_MS, at(10_000)).unwrap();
        window.give_back(4);
        assert_eq!(window.used(at(10_000)), 1);
        assert!(window.take(5, 5, MINUTE_MS, at(10_000)).is_err());
        assert!(window.take(4, 5, MINUTE_MS, at(10_000)).is_ok());
        window.give_back(9);
        assert_eq!(window.used(at(10_000)), 0);
    }

    #[test]
    fn the_memory_is_constant_and_a_clock_set_back_counts_as_stopped() {
        let mut window = SlotWindow::default();
        for ms in 0..600_000 {
            let _ = window.take(1, u64::MAX, MINUTE_MS, at(ms));
        }
        assert!(window.slots.len() <= 13, "{}", window.slots.len());
        let used = window.used(at(0));
        assert!((60_000..=65_000).contains(&used), "{used}");
        assert_eq!(window.idle_at(), at(660_000));
        assert_eq!(window.used(at(660_000)), 0);
    }
}
