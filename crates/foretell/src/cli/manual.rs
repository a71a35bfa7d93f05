//! Completions of shells, and manual pages, from the same parser that reads the arguments.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use super::help;
use crate::start_error::StartError;

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

#[derive(Debug, Args)]
pub struct ManArgs {
    /// The folder of the pages, one for each command [default: print the first page]
    folder: Option<PathBuf>,
}

pub fn print_completions(args: &CompletionsArgs) {
    let mut command = help::command();
    clap_complete::generate(args.shell, &mut command, "foretell", &mut std::io::stdout());
}

pub fn write_pages(args: ManArgs) -> Result<(), StartError> {
    let command = help::command();
    let Some(folder) = args.folder else {
        let written = clap_mangen::Man::new(command).render(&mut std::io::stdout());
        return written.map_err(|source| StartError::File { path: "standard output".to_owned(), source });
    };
    let written = std::fs::create_dir_all(&folder).and_then(|()| clap_mangen::generate_to(command, &folder));
    written.map_err(|source| StartError::File { path: folder.display().to_string(), source })
}
