//! Sources of random bytes and ids. They are injected, so that tests are deterministic.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use domain::Timestamp;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use uuid::Uuid;

pub trait Entropy: Send + Sync {
    fn fill(&self, bytes: &mut [u8]);
}

/// Bytes derived from a seed, for tests and reproducible demos. Not secure.
#[derive(Debug)]
pub struct SeededEntropy {
    seed: u64,
    drawn: AtomicU64,
}

impl SeededEntropy {
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

/// A generator of random bytes and version 7 UUIDs. Ids of one process sort in creation order, even
/// within a millisecond.
pub struct Ids {
    entropy: Arc<dyn Entropy>,
    /// The last id's time and its counter within that millisecond.
    last: Mutex<(i64, u16)>,
}

/// The values of the 12-bit counter after the timestamp.
const PER_MS: u16 = 1 << 12;

impl Ids {
    pub fn new(entropy: Arc<dyn Entropy>) -> Self {
        Self { entropy, last: Mutex::default() }
    }

    /// Returns the source of random bytes, for another generator.
    pub fn entropy(&self) -> Arc<dyn Entropy> {
        Arc::clone(&self.entropy)
    }

    /// Returns random bytes.
    pub fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.entropy.fill(&mut bytes);
        bytes
    }

    /// Returns the next id. If a millisecond's counter is exhausted or the clock goes back, the
    /// id's time runs ahead of the clock.
    pub fn next(&self, now: Timestamp) -> Uuid {
        let (ms, number) = {
            let mut last = self.last.lock();
            *last = match *last {
                (ms, _) if now.ms() > ms => (now.ms(), 0),
                (ms, number) if number + 1 < PER_MS => (ms, number + 1),
                (ms, _) => (ms + 1, 0),
            };
            *last
        };
        let mut bytes: [u8; 10] = self.random();
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        uuid::Builder::from_unix_timestamp_millis(u64::try_from(ms).unwrap_or_default(), &bytes).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_creation_even_when_the_clock_steps_back() {
        let ids = Ids::new(Arc::new(SeededEntropy::new(1)));
        let times = std::iter::repeat_n(1_000, 5_000).chain([999, 1_001, 2_000]);
        let made: Vec<Uuid> = times.map(|ms| ids.next(Timestamp::from_ms(ms))).collect();
        assert!(made.is_sorted());
        assert!(made.iter().all(|id| id.get_version_num() == 7));
    }
}
