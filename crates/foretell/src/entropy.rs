//! Randomness from the operating system. No other module reads it.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use app::entropy::Entropy;

/// Number of bytes read at once. A system call costs more than the bytes it returns, and every
/// request needs an id.
const AHEAD: usize = 1_024;

/// Buffered random bytes from the operating system. Each byte is returned once and is then erased
/// from the buffer.
#[derive(Default)]
pub struct SystemEntropy(Mutex<Ahead>);

struct Ahead {
    bytes: [u8; AHEAD],
    /// Number of bytes that were already returned.
    given: usize,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { bytes: [0; AHEAD], given: AHEAD }
    }
}

impl fmt::Debug for SystemEntropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemEntropy")
    }
}

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        // Larger requests do not fit into the buffer.
        if bytes.len() > AHEAD {
            return read(bytes);
        }
        // A poisoned lock is harmless: a panic cannot make the bytes less random.
        let mut ahead = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes.len() > AHEAD - ahead.given {
            read(&mut ahead.bytes);
            ahead.given = 0;
        }
        let (from, to) = (ahead.given, ahead.given + bytes.len());
        bytes.copy_from_slice(&ahead.bytes[from..to]);
        // Erase returned bytes: they may have become keys.
        ahead.bytes[from..to].fill(0);
        ahead.given = to;
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's randomness")]
#[expect(
    clippy::expect_used,
    reason = "a system without randomness can issue no key and sign nothing safely"
)]
fn read(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system gives random bytes");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn bytes_never_repeat_for_any_sequence_of_lengths() {
        let entropy = SystemEntropy::default();
        let mut given = BTreeSet::new();
        for length in (8..64).chain([AHEAD - 1, AHEAD, AHEAD + 1]).cycle().take(2_000) {
            let mut bytes = vec![0; length];
            entropy.fill(&mut bytes);
            for part in bytes.chunks_exact(8) {
                assert!(given.insert(part.to_vec()), "{length}");
            }
        }
    }
}
