//! The measurement of one part of a round.

use std::time::{Duration, Instant};

use crate::process::Process;

/// Operations with their cost.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    pub operations: u64,
    /// Wall-clock time.
    pub wall: Duration,
    /// User and system time of the measured process, in microseconds.
    pub cpu_us: f64,
}

impl Sample {
    /// Returns the operations per second.
    pub fn rate(&self) -> f64 {
        self.operations as f64 / self.wall.as_secs_f64()
    }

    /// Returns the CPU microseconds per operation.
    pub fn cpu_each(&self) -> f64 {
        self.cpu_us / self.operations as f64
    }
}

/// A running measurement.
#[derive(Debug)]
pub struct Begun {
    process: Process,
    instant: Instant,
    cpu_us: f64,
}

impl Begun {
    /// Starts a measurement.
    pub fn now(process: Process) -> Self {
        Self { process, instant: Instant::now(), cpu_us: process.cpu_us() }
    }

    /// Ends the measurement.
    pub fn end(&self, operations: u64) -> Sample {
        let wall = self.instant.elapsed();
        assert!(operations > 0, "nothing was done in {wall:?}");
        Sample { operations, wall, cpu_us: self.process.cpu_us() - self.cpu_us }
    }
}

/// Returns the median; for an even number of values, the mean of the middle two.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match (values.len() / 2, values.len() % 2) {
        (0, 0) => f64::NAN,
        (half, 0) => f64::midpoint(values[half - 1], values[half]),
        (half, _) => values[half],
    }
}
