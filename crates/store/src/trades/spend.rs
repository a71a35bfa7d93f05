//! The spending of one key while a group of buys is checked.

use domain::{Timestamp, Usdc, limits};

use crate::StoreError;
use crate::bind::add_usdc;

/// A key's spending over the windows in which the group's buys were requested. They begin within
/// moments of each other, but rarely at the same millisecond, and a trade may leave between two of
/// them.
#[derive(Debug)]
pub(super) struct KeySpend {
    /// The spending in the window that begins first.
    first: Usdc,
    /// The trades that leave between the first and the last begin, with their times.
    leaving: Vec<(Timestamp, Usdc)>,
    /// The buys of the group that were accepted.
    added: Usdc,
    /// The last begin of a window.
    last_start: Timestamp,
}

impl KeySpend {
    pub(super) const fn new(first: Usdc, last_start: Timestamp) -> Self {
        Self { first, leaving: Vec::new(), added: Usdc::ZERO, last_start }
    }

    /// Adds a trade that was created at `at`, after the begin of the first window.
    pub(super) fn add_leaving(&mut self, at: Timestamp, amount: Usdc) {
        self.leaving.push((at, amount));
    }

    /// Returns the spending in the 24 hours that end at `now`.
    pub(super) fn at(&self, now: Timestamp) -> Result<Usdc, StoreError> {
        self.since(limits::window_start(now))
    }

    fn since(&self, start: Timestamp) -> Result<Usdc, StoreError> {
        let left = self.leaving.iter().filter(|(at, _)| *at <= start);
        let spent = left.fold(self.first, |spent, (_, amount)| spent.saturating_sub(*amount));
        add_usdc(spent, self.added)
    }

    pub(super) fn add(&mut self, amount: Usdc) -> Result<(), StoreError> {
        self.added = add_usdc(self.added, amount)?;
        Ok(())
    }

    /// Returns the spending and the begin of its window, to be stored.
    pub(super) fn stored(&self) -> Result<(Usdc, Timestamp), StoreError> {
        Ok((self.since(self.last_start)?, self.last_start))
    }

    /// Reports whether a buy was accepted.
    pub(super) fn has_grown(&self) -> bool {
        self.added > Usdc::ZERO
    }
}

#[cfg(test)]
mod tests {
    use domain::time::DAY_MS;

    use super::*;

    const fn usdc(atomic: u64) -> Usdc {
        Usdc::from_atomic(atomic)
    }

    #[test]
    fn each_buy_of_a_group_has_its_own_window() {
        let start = Timestamp::from_s(1_790_000_000);
        let now = |ms| start.plus_ms(DAY_MS + ms);
        let mut spend = KeySpend::new(usdc(100), start.plus_ms(10));
        spend.add_leaving(start.plus_ms(3), usdc(30));
        spend.add_leaving(start.plus_ms(10), usdc(5));
        for (ms, expected) in [(0, 100), (2, 100), (3, 70), (9, 70), (10, 65)] {
            assert_eq!(spend.at(now(ms)), Ok(usdc(expected)), "{ms}");
        }
        assert!(!spend.has_grown());
        spend.add(usdc(7)).unwrap();
        assert_eq!((spend.at(now(2)), spend.at(now(10))), (Ok(usdc(107)), Ok(usdc(72))));
        assert_eq!(spend.stored(), Ok((usdc(72), start.plus_ms(10))));
        assert!(spend.has_grown());
    }
}
