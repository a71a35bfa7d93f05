//! What one round of one part gave.

use std::time::{Duration, Instant};

use crate::process::Process;

/// Operations, and what they took.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// How many.
    pub operations: u64,
    /// By the wall clock.
    pub wall: Duration,
    /// User and system time of the process under test, in microseconds.
    pub cpu_us: f64,
}

impl Sample {
    /// Operations a second.
    pub fn rate(&self) -> f64 {
        self.operations as f64 / self.wall.as_secs_f64()
    }

    /// CPU microseconds of one operation.
    pub fn cpu_each(&self) -> f64 {
        self.cpu_us / self.operations as f64
    }
}

/// A sample that has begun.
#[derive(Debug)]
pub struct Begun {
    process: Process,
    instant: Instant,
    cpu_us: f64,
}

impl Begun {
    /// Reads the process's clocks now.
    pub fn now(process: Process) -> Self {
        Self { process, instant: Instant::now(), cpu_us: process.cpu_us() }
    }

    /// Reads them again.
    pub fn end(&self, operations: u64) -> Sample {
        let wall = self.instant.elapsed();
        assert!(operations > 0, "nothing was done in {wall:?}");
        Sample { operations, wall, cpu_us: self.process.cpu_us() - self.cpu_us }
    }
}

/// The value in the middle; of an even number of them the mean of the two there.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match (values.len() / 2, values.len() % 2) {
        (0, 0) => f64::NAN,
        (half, 0) => f64::midpoint(values[half - 1], values[half]),
        (half, _) => values[half],
    }
}
