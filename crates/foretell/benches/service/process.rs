//! CPU time and memory of a process, from `/proc`.

use std::fs;

/// Microseconds per tick of `/proc/<pid>/stat`. Linux reports 100 ticks per second on all
/// platforms.
const TICK_US: f64 = 10_000.0;

#[derive(Debug, Clone, Copy)]
pub struct Process(u32);

impl Process {
    pub const fn of(id: u32) -> Self {
        Self(id)
    }

    pub fn own() -> Self {
        Self(std::process::id())
    }

    /// Returns the user and system time of all threads, in microseconds.
    pub fn cpu_us(self) -> f64 {
        let stat = self.file("stat");
        // Fields 14 and 15 of proc(5). Parse after the command's name, which may contain spaces and
        // parentheses.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |field: usize| fields[field].parse::<f64>().expect("a number of ticks");
        (ticks(11) + ticks(12)) * TICK_US
    }

    /// Returns the resident memory in MB.
    pub fn memory_mb(self) -> f64 {
        self.status_mb("VmRSS:")
    }

    /// Returns the peak resident memory in MB.
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
