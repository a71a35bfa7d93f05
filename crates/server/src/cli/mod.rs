//! The command line: one binary for serving, developing, migrating, deploying and administering.

pub mod admin;
mod config_check;
mod deploy;
mod dev;
mod listen;
mod migrate;
mod serve;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{Config, Options};
use crate::run::StartError;

pub use deploy::DeployArgs;
pub use dev::DevArgs;
pub use listen::ListenArgs;

/// Foretell: a prediction-market service.
#[derive(Debug, Parser)]
#[command(name = "foretell", version, about, max_term_width = 100)]
pub struct Cli {
    /// A TOML file with settings; flags and the environment win over it
    #[arg(long, env = "FORETELL_CONFIG", global = true)]
    config: Option<PathBuf>,
    /// Your name in the audit log [default: the user of the operating system]
    #[arg(long, env = "FORETELL_ACTOR", value_name = "NAME", global = true)]
    actor: Option<String>,
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run everything embedded, with a demonstration to try things on
    Dev(DevArgs),
    /// Run the service
    Serve,
    /// Bring the database's schema up to date
    Migrate,
    /// Put the contracts onto the chain of --rpc-url
    Deploy(DeployArgs),
    /// Print an API's OpenAPI document
    #[command(name = "openapi")]
    OpenApi {
        /// The public read API's instead of the trading API's
        #[arg(long)]
        public: bool,
    },
    /// Post a user's events to a program on this machine, as its webhook would
    Listen(ListenArgs),
    /// Look at the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Users, accounts, keys, markets and content
    Admin(Box<admin::AdminArgs>),
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print every setting and try what it leads to
    Check,
}

impl Cli {
    /// Runs the command.
    pub async fn run(self) -> ExitCode {
        let json = matches!(&self.command, Command::Admin(args) if args.json);
        match self.dispatch().await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) if json => {
                println!("{}", error.to_json());
                ExitCode::FAILURE
            }
            Err(error) => {
                eprintln!("foretell: {error}");
                ExitCode::FAILURE
            }
        }
    }

    async fn dispatch(self) -> Result<(), StartError> {
        // The document follows from the program alone.
        if let Command::OpenApi { public } = self.command {
            let document = if public { crate::public::openapi::parsed() } else { crate::openapi::parsed() };
            println!("{document:#}");
            return Ok(());
        }
        // What listens needs a key and an address, and nothing of the service's own.
        if let Command::Listen(args) = self.command {
            return listen::run(args).await;
        }
        let actor = crate::actor::named(self.actor.as_deref());
        let config: Config = self.options.or_from_file(self.config.as_deref())?.decide()?;
        match self.command {
            Command::Dev(args) => dev::run(args, config).await,
            Command::Serve => serve::run(config).await,
            Command::Migrate => migrate::run(&config, actor).await,
            Command::Deploy(args) => deploy::run(args, &config, &actor).await,
            Command::OpenApi { .. } | Command::Listen(_) => Ok(()),
            Command::Config(ConfigCommand::Check) => config_check::run(&config).await,
            Command::Admin(args) => admin::run(*args, config, actor).await,
        }
    }
}

/// Logs to standard error: readable on a terminal, JSON otherwise. `RUST_LOG` chooses what.
fn start_logging(default: &str) {
    use std::io::IsTerminal;
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second start within one process, as in tests, keeps the first one's.
    drop(if std::io::stderr().is_terminal() { logs.try_init() } else { logs.json().try_init() });
    crate::panics::log();
}

/// Makes the data folder, readable by its owner alone.
fn make_data_dir(config: &Config) -> Result<(), StartError> {
    use std::os::unix::fs::DirBuilderExt;
    let path = &config.data_dir;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| StartError::File { path: path.display().to_string(), source })
}
