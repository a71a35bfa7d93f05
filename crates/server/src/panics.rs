//! Panics in the log.

use std::backtrace::Backtrace;

/// Logs every panic of this process from now on: its message, its place and its backtrace.
pub fn log() {
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = Backtrace::force_capture();
        let place = panic.location().map(ToString::to_string);
        let message = panic.payload_as_str();
        tracing::error!(message = "a thread panicked", panic = message, place, %backtrace);
    }));
}
