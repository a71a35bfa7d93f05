//! Which keys an address has used: they pass its lockout.

use domain::Timestamp;
use domain::time::{DAY_MS, MINUTE_MS};

use super::table::Idle;

/// For how long after its last use a key passes.
const FAMILIAR_MS: i64 = DAY_MS;
/// How often a use is told to the other processes.
pub(super) const SHARE_EVERY_MS: i64 = 10 * MINUTE_MS;

/// The first 16 bytes of a key's digest, which identify the key without a look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyMark(pub u128);

impl KeyMark {
    /// The mark of the key with this digest.
    pub fn of(digest: &[u8; 32]) -> Self {
        let (start, _) = digest.split_at(16);
        Self(start.iter().fold(0, |mark, byte| mark << 8 | u128::from(*byte)))
    }
}

/// A key's last successful use from one network.
#[derive(Debug, Default)]
pub struct LastUse {
    used_at_ms: i64,
    shared_at_ms: i64,
}

impl LastUse {
    /// Notes a use; whether the other processes should hear of it.
    pub fn note(&mut self, now: Timestamp) -> bool {
        self.used_at_ms = self.used_at_ms.max(now.ms());
        let share = self.used_at_ms - self.shared_at_ms >= SHARE_EVERY_MS;
        if share {
            self.shared_at_ms = self.used_at_ms;
        }
        share
    }

    /// Whether the key still passes.
    pub fn is_recent(&self, now: Timestamp) -> bool {
        is_recent(self.used_at_ms, now)
    }
}

/// Whether a key that was used at this time still passes.
pub(super) fn is_recent(used_at_ms: i64, now: Timestamp) -> bool {
    now.ms() - used_at_ms < FAMILIAR_MS
}

impl Idle for LastUse {
    fn idle_at(&self) -> Timestamp {
        Timestamp::from_ms(self.used_at_ms + FAMILIAR_MS)
    }
}
