//! Reproducible random numbers.

/// A small random number generator. All choices of a run follow from its seed, which every run
/// prints.
pub struct Dice(u64);

impl Dice {
    /// Creates a generator with a different sequence for every `salt`.
    pub fn new(salt: u64) -> Self {
        let seed = std::env::var("FORETELL_CRASH_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) << 8);
        eprintln!("FORETELL_CRASH_SEED={seed}");
        Self((seed ^ salt) | 1)
    }

    /// Returns a number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % sides
    }
}
