//! The keys that an address has used successfully. These keys are exempt from the address's
//! lockout.

use domain::Timestamp;
use domain::time::{DAY_MS, MINUTE_MS};

use super::table::Idle;

/// The time for which a key is exempt after its last use.
const FAMILIAR_MS: i64 = DAY_MS;
/// The minimum interval at which uses are shared with other processes.
pub(super) const SHARE_EVERY_MS: i64 = 10 * MINUTE_MS;

/// The first 16 bytes of a key's digest. They identify the key without a database lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyMark(pub u128);

impl KeyMark {
    pub fn of(digest: &[u8; 32]) -> Self {
        let (start, _) = digest.split_at(16);
        Self(start.iter().fold(0, |mark, byte| mark << 8 | u128::from(*byte)))
    }
}

#[derive(Debug, Default)]
pub struct LastUse {
    used_at_ms: i64,
    shared_at_ms: i64,
}

impl LastUse {
    /// Records a use. Returns whether to share it with the other processes.
    pub fn note(&mut self, now: Timestamp) -> bool {
        self.used_at_ms = self.used_at_ms.max(now.ms());
        let share = self.used_at_ms - self.shared_at_ms >= SHARE_EVERY_MS;
        if share {
            self.shared_at_ms = self.used_at_ms;
        }
        share
    }

    /// Returns whether the key is still exempt.
    pub fn is_recent(&self, now: Timestamp) -> bool {
        is_recent(self.used_at_ms, now)
    }
}

/// Returns whether a key that was last used at this time is still exempt.
pub(super) fn is_recent(used_at_ms: i64, now: Timestamp) -> bool {
    now.ms() - used_at_ms < FAMILIAR_MS
}

impl Idle for LastUse {
    fn idle_at(&self) -> Timestamp {
        Timestamp::from_ms(self.used_at_ms + FAMILIAR_MS)
    }
}
