//! The foretell binary.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use server::cli::Cli;

/// The EVM takes and gives back large pieces of memory on every call; the system's allocator hands each back to the
/// kernel, which costs more than the call.
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
