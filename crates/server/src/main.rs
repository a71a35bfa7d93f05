//! The foretell binary.

use std::process::ExitCode;

use clap::Parser;
use server::cli::Cli;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("foretell: {error}");
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(cli.run())
}
