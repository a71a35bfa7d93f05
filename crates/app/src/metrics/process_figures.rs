//! What the operating system knows about this process, under the names that every Prometheus client
//! library uses. Only Linux has `/proc`: elsewhere the figures stay 0.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use super::FloatGauge;
use super::registering::Registering;

/// Ticks per second of the times in `/proc`. The kernel has promised this value to programs on all
/// architectures that we build for; other client libraries rely on it too.
const TICKS_PER_S: f64 = 100.0;
/// Places of the fields in `/proc/self/stat`, counted after the name of the program.
const USER_TIME: usize = 11;
const SYSTEM_TIME: usize = 12;
const STARTED: usize = 19;

#[derive(Debug)]
pub(super) struct ProcessFigures {
    cpu_seconds: Counter<f64, AtomicU64>,
    resident_memory_bytes: Gauge,
    open_fds: Gauge,
    max_fds: FloatGauge,
    start_time_seconds: FloatGauge,
}

impl ProcessFigures {
    pub fn register(all: &mut Registering) -> Self {
        Self {
            cpu_seconds: all.add_as(
                "process_cpu_seconds",
                "User and system CPU time of this process",
                Counter::default(),
            ),
            resident_memory_bytes: all.add_as(
                "process_resident_memory_bytes",
                "Memory of this process that is in RAM",
                Gauge::default(),
            ),
            open_fds: all.add_as(
                "process_open_fds",
                "Open file descriptors of this process",
                Gauge::default(),
            ),
            max_fds: all.add_as(
                "process_max_fds",
                "Maximum of open file descriptors of this process",
                FloatGauge::default(),
            ),
            start_time_seconds: all.add_as(
                "process_start_time_seconds",
                "Time at which this process started",
                FloatGauge::default(),
            ),
        }
    }

    /// Reads the figures. What cannot be read keeps its last value.
    pub fn read(&self) {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        let stat = text("/proc/self/stat");
        if let Some(cpu_s) = cpu_seconds(&stat) {
            // The counter only offers to add, but the kernel has already added.
            self.cpu_seconds.inner().store(cpu_s.to_bits(), Ordering::Relaxed);
        }
        if let Some(started_s) = started_at(&stat, &text("/proc/stat")) {
            self.start_time_seconds.set(started_s);
        }
        if let Some(bytes) = resident_bytes(&text("/proc/self/status")) {
            self.resident_memory_bytes.set(bytes);
        }
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            // The directory itself is open while it is read.
            self.open_fds.set(i64::try_from(open.count()).unwrap_or(i64::MAX).saturating_sub(1));
        }
        if let Some(max) = max_fds(&text("/proc/self/limits")) {
            self.max_fds.set(max);
        }
    }
}

/// Returns a field of `/proc/self/stat`. The program's name before the fields may contain blanks.
fn field(stat: &str, place: usize) -> Option<f64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(place)?.parse().ok()
}

#[expect(clippy::float_arithmetic, reason = "metrics are floats, and no amounts")]
fn cpu_seconds(stat: &str) -> Option<f64> {
    Some((field(stat, USER_TIME)? + field(stat, SYSTEM_TIME)?) / TICKS_PER_S)
}

/// Returns when the process started: its start is counted from the boot of the machine.
#[expect(clippy::float_arithmetic, reason = "metrics are floats, and no amounts")]
fn started_at(stat: &str, machine: &str) -> Option<f64> {
    let booted: f64 = machine.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(booted + field(stat, STARTED)? / TICKS_PER_S)
}

fn resident_bytes(status: &str) -> Option<i64> {
    let kibibytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    kibibytes.trim().strip_suffix("kB")?.trim().parse::<i64>().ok()?.checked_mul(1_024)
}

fn max_fds(limits: &str) -> Option<f64> {
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match soft.split_whitespace().next()? {
        "unlimited" => Some(f64::INFINITY),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "7 (fore (tell) x) S 1 7 7 0 -1 4194560 900 0 0 0 250 50 0 0 20 0 9 0 12345 1 2 3";

    #[test]
    fn the_figures_of_a_process_are_read_from_the_kernel() {
        assert_eq!(cpu_seconds(STAT), Some(3.0));
        assert_eq!(started_at(STAT, "cpu 1 2\nbtime 1777464000\n"), Some(1_777_464_123.45));
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t   2048 kB\n"), Some(2_097_152));
        let limits = |soft: &str| format!("Limit  Soft  Hard  Units\nMax open files  {soft}  4096  files\n");
        assert_eq!(max_fds(&limits("1024")), Some(1_024.0));
        assert_eq!(max_fds(&limits("unlimited")), Some(f64::INFINITY));
        assert_eq!((cpu_seconds(""), resident_bytes(""), max_fds("")), (None, None, None));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_figures() {
        let figures = ProcessFigures::register(&mut Registering::default());
        figures.read();
        assert!(figures.resident_memory_bytes.get() > 1_000_000);
        assert!(figures.open_fds.get() > 2);
        assert!(figures.max_fds.get() > 2.0);
        assert!(figures.start_time_seconds.get() > 1_777_464_000.0);
        let before = figures.cpu_seconds.get();
        figures.read();
        assert!(figures.cpu_seconds.get() >= before);
    }
}
