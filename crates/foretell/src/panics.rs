//! Logs panics.

use std::backtrace::Backtrace;

/// Installs a hook that logs every panic of this process with its message, location and backtrace.
pub fn log() {
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = Backtrace::force_capture();
        let place = panic.location().map(ToString::to_string);
        let message = panic.payload_as_str();
        tracing::error!(message = "a thread panicked", panic = message, place, %backtrace);
    }));
}
