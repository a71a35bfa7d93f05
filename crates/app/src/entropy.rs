//! Where random bytes come from: passed in, so that tests are exact.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::Timestamp;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// A source of random bytes.
pub trait Entropy: Send + Sync {
    /// Fills `bytes`.
    fn fill(&self, bytes: &mut [u8]);
}

/// Bytes that follow from a seed: for tests and reproducible demonstrations, never for keys of value.
#[derive(Debug)]
pub struct SeededEntropy {
    seed: u64,
    drawn: AtomicU64,
}

impl SeededEntropy {
    /// The source that follows from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { seed, drawn: AtomicU64::new(0) }
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(32) {
            let drawn = self.drawn.fetch_add(1, Ordering::SeqCst);
            let block = Sha256::new()
                .chain_update(self.seed.to_be_bytes())
                .chain_update(drawn.to_be_bytes())
                .finalize();
            chunk.copy_from_slice(&block[..chunk.len()]);
        }
    }
}

/// Makes version 7 UUIDs. Those of one process sort in the order in which they were made, also within a millisecond.
#[derive(Debug, Default)]
pub struct Ids {
    /// The last id's time, and its number within that millisecond.
    last: Mutex<(i64, u16)>,
}

/// The numbers that the twelve bits behind the time can hold.
const PER_MS: u16 = 1 << 12;

impl Ids {
    /// The next id. Where a millisecond's numbers are used up, or the clock steps back, the id's time runs ahead.
    pub fn next(&self, entropy: &dyn Entropy, now: Timestamp) -> Uuid {
        let (ms, number) = {
            let mut last = self.last.lock();
            *last = match *last {
                (ms, _) if now.ms() > ms => (now.ms(), 0),
                (ms, number) if number + 1 < PER_MS => (ms, number + 1),
                (ms, _) => (ms + 1, 0),
            };
            *last
        };
        let mut bytes = [0; 10];
        entropy.fill(&mut bytes);
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        uuid::Builder::from_unix_timestamp_millis(u64::try_from(ms).unwrap_or_default(), &bytes).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_as_they_were_made_within_a_millisecond_and_when_the_clock_steps_back() {
        let (ids, entropy) = (Ids::default(), SeededEntropy::new(1));
        let times = std::iter::repeat_n(1_000, 5_000).chain([999, 1_001, 2_000]);
        let made: Vec<Uuid> = times.map(|ms| ids.next(&entropy, Timestamp::from_ms(ms))).collect();
        assert!(made.is_sorted());
        assert!(made.iter().all(|id| id.get_version_num() == 7));
    }
}
