//! A process as `/proc` shows it: its CPU time and its memory.

use std::fs;

/// A tick of `/proc/<pid>/stat`: 100 of them are a second wherever Linux runs.
const TICK_US: f64 = 10_000.0;

/// A process by its id.
#[derive(Debug, Clone, Copy)]
pub struct Process(u32);

impl Process {
    /// The process with this id.
    pub const fn of(id: u32) -> Self {
        Self(id)
    }

    /// This process.
    pub fn own() -> Self {
        Self(std::process::id())
    }

    /// User and system time of all its threads, in microseconds.
    pub fn cpu_us(self) -> f64 {
        let stat = self.file("stat");
        // Behind the command's name, which may hold anything: fields 14 and 15 of proc(5).
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |field: usize| fields[field].parse::<f64>().expect("a number of ticks");
        (ticks(11) + ticks(12)) * TICK_US
    }

    /// Memory that it holds now, in MB.
    pub fn memory_mb(self) -> f64 {
        self.status_mb("VmRSS:")
    }

    /// The most that it has held since it began, in MB.
    pub fn peak_memory_mb(self) -> f64 {
        self.status_mb("VmHWM:")
    }

    fn status_mb(self, name: &str) -> f64 {
        let status = self.file("status");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line of proc(5)");
        let kib = line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok());
        kib.expect("a number of KiB") * 1_024.0 / 1e6
    }

    fn file(self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.0)).expect("the process lives, on Linux")
    }
}
