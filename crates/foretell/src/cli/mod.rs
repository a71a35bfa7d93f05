//! The command line. One binary serves, develops, migrates, deploys and administers.

pub mod admin;
mod config_check;
mod deploy;
mod dev;
mod help;
mod listen;
mod manual;
mod migrate;
mod serve;
mod trader;
mod web_app;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{FromArgMatches, Parser, Subcommand};
use store::publication::PublicationName;
use tokio::runtime::{Builder, Runtime};

use crate::config::{ResolvedConfig, Settings};
use crate::reload::ConfigSource;
use crate::start_error::StartError;

pub use deploy::DeployArgs;
pub use dev::DevArgs;
pub use listen::ListenArgs;

/// The arguments of the program.
#[derive(Debug, Parser)]
#[command(
    name = "foretell",
    version,
    about = "Foretell: a prediction-market service with a REST API, whose trades are executed on an EVM chain",
    max_term_width = 100
)]
pub struct Cli {
    /// A TOML file with settings; flags and the environment take precedence
    #[arg(long, env = "FORETELL_CONFIG", global = true)]
    config: Option<PathBuf>,
    /// Your name in the audit log [default: the user of the operating system]
    #[arg(long, env = "FORETELL_ACTOR", value_name = "NAME", global = true)]
    actor: Option<String>,
    #[command(flatten)]
    options: Settings,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a demo: the service with an embedded chain, users, markets and a week of trades
    Dev(DevArgs),
    /// Run the service
    Serve,
    /// Migrate the database schema to the current version
    Migrate {
        /// Also create or update this PostgreSQL publication of the tables `events` and `movements`
        #[arg(long, value_name = "NAME")]
        publication: Option<PublicationName>,
    },
    /// Deploy the contracts to the chain of --rpc-url
    Deploy(DeployArgs),
    /// Print an OpenAPI document
    #[command(name = "openapi")]
    OpenApi {
        /// Print the public read API instead of the trading API
        #[arg(long)]
        public: bool,
    },
    /// Forward a user's events to a program on this machine, in the form of webhooks
    Listen(ListenArgs),
    /// Check a web application from outside
    #[command(subcommand)]
    App(web_app::AppCommand),
    /// Check the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Administer users, accounts, keys, markets and content
    Admin(Box<admin::AdminArgs>),
    #[command(flatten)]
    Trader(Box<trader::TraderCommand>),
    /// Print the completions of a shell
    Completions(manual::CompletionsArgs),
    /// Write the manual pages
    Man(manual::ManArgs),
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print every setting, and check the secrets, the database, the chain and Redis
    Check,
    /// Write the secrets that --roles need to a file of their own, for a process with these roles
    Secrets {
        /// The file to create
        file: PathBuf,
    },
}

/// Runs the program. Here and not in `main`, so that the code of all commands is compiled once.
pub fn run() -> ExitCode {
    let cli = Cli::from_arguments();
    let runtime = match Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("foretell: {error}");
            return ExitCode::FAILURE;
        }
    };
    run_to_end(runtime, cli.run())
}

/// The time that threads have to end after the command, which has waited for all work that matters.
const LAST_THREADS: Duration = Duration::from_secs(1);

/// Runs a command. Dropping the runtime would wait for every thread, such as a lookup of a name that a
/// name server keeps waiting for a minute, and no successor could start meanwhile.
fn run_to_end<T>(runtime: Runtime, command: impl Future<Output = T>) -> T {
    let result = runtime.block_on(command);
    runtime.shutdown_timeout(LAST_THREADS);
    result
}

impl Cli {
    /// Parses the program's arguments. Prints help or an error and exits if there is no command to
    /// run.
    fn from_arguments() -> Self {
        let mut command = help::command();
        let parsed = Self::from_arg_matches(&command.get_matches_mut());
        parsed.unwrap_or_else(|error| error.format(&mut command).exit())
    }

    async fn run(self) -> ExitCode {
        // Has its own exit codes, and needs only a key and an address.
        if let Command::Trader(command) = self.command {
            return trader::run(*command).await;
        }
        let json = matches!(&self.command, Command::Admin(args) if args.json);
        let Err(error) = self.dispatch().await else { return ExitCode::SUCCESS };
        if json {
            println!("{}", error.to_json());
        } else {
            eprintln!("foretell: {error}");
        }
        ExitCode::from(error.exit_code())
    }

    async fn dispatch(self) -> Result<(), StartError> {
        // Needs no configuration, so that it also works without a data folder.
        if let Command::OpenApi { public } = self.command {
            let document = if public { api::public::openapi::parsed() } else { api::v1::openapi::parsed() };
            println!("{document:#}");
            return Ok(());
        }
        if let Command::Completions(args) = self.command {
            manual::print_completions(&args);
            return Ok(());
        }
        if let Command::Man(args) = self.command {
            return manual::write_pages(args);
        }
        // Needs only a key and an address, not the service's configuration.
        if let Command::Listen(args) = self.command {
            return listen::run(args).await;
        }
        if let Command::App(command) = self.command {
            return web_app::run(command).await;
        }
        let actor = crate::actor::named(self.actor.as_deref());
        let source = ConfigSource { flags: self.options, file: self.config };
        let options = source.flags.clone().or_from_file(source.file.as_deref())?;
        let config: ResolvedConfig = options.clone().decide()?;
        match self.command {
            Command::Dev(args) => dev::run(args, config).await,
            Command::Serve => serve::run(config, source).await,
            Command::Migrate { publication } => migrate::run(&config, actor, publication).await,
            Command::Deploy(args) => deploy::run(args, &config, &actor).await,
            Command::OpenApi { .. }
            | Command::Listen(_)
            | Command::App(_)
            | Command::Trader(_)
            | Command::Completions(_)
            | Command::Man(_) => Ok(()),
            Command::Config(ConfigCommand::Check) => config_check::run(&options, &config).await,
            Command::Config(ConfigCommand::Secrets { file }) => config_check::write_secrets(&config, &file),
            Command::Admin(args) => admin::run(*args, config, actor).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Instant;

    #[test]
    fn a_thread_that_does_not_end_does_not_keep_the_process() {
        let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
        let (held, released) = mpsc::channel::<()>();
        let began = Instant::now();
        let code = run_to_end(runtime, async move {
            // Like a lookup of a name. It does not end before this test.
            tokio::task::spawn_blocking(move || released.recv());
            7
        });
        assert_eq!(code, 7);
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        drop(held);
    }
}
