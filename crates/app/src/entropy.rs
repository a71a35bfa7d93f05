//! Where random bytes come from: passed in, so that tests are exact.

use std::sync::atomic::{AtomicU64, Ordering};

use domain::Timestamp;
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

/// A version 7 UUID: ids made later sort later.
pub fn uuid_v7(entropy: &dyn Entropy, now: Timestamp) -> Uuid {
    let mut random = [0; 10];
    entropy.fill(&mut random);
    let ms = u64::try_from(now.ms()).unwrap_or_default();
    uuid::Builder::from_unix_timestamp_millis(ms, &random).into_uuid()
}
