//! The machine's randomness: the one place that reads it.

use app::entropy::Entropy;

/// Random bytes from the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the machine's randomness"
    )]
    #[expect(
        clippy::expect_used,
        reason = "a system without randomness can issue no key and sign nothing safely"
    )]
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system gives random bytes");
    }
}
