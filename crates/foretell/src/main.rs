//! Entry point of the `foretell` binary.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// The EVM allocates and frees large buffers on every call. The system allocator returns each of
/// them to the kernel, which costs more than the call itself.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    foretell::cli::run()
}
