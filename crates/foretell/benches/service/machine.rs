//! A description of the machine for the report.

use std::fs;

/// Returns one line: processor, cores, kernel.
pub fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let model = model.unwrap_or("processor unknown");
    format!("{cores} cores ({model}), Linux {}, release profile.", kernel.trim())
}
