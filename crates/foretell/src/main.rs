//! Entry point of the `foretell` binary.

use std::process::ExitCode;

use foretell::cli::Cli;
use mimalloc::MiMalloc;

/// The EVM allocates and frees large buffers on every call. The system allocator returns each of
/// them to the kernel, which costs more than the call itself.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::from_arguments();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("foretell: {error}");
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(cli.run())
}
