//! Commands of traders: what a key can do over the API of a service. They need no configuration of
//! a service, only its address and the key.

mod account;
mod events;
mod failure;
mod markets;
mod orders;
mod printer;
mod watch;
mod webhooks;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use foretell_client::{Foretell, Secret};

use crate::config::secret_of;
use failure::TraderError;
use printer::{OutputForm, Printer, printable};
use secrecy::ExposeSecret;

#[derive(Debug, Subcommand)]
pub enum TraderCommand {
    /// List markets, or show one
    Markets(markets::MarketsArgs),
    /// Show what a trade would move
    Quote(markets::QuoteArgs),
    /// Buy tokens of an outcome, and wait for the result
    Buy(orders::BuyArgs),
    /// Sell tokens of an outcome, and wait for the result
    Sell(orders::SellArgs),
    /// List trades, or show one
    Trade(orders::TradeArgs),
    /// List positions
    Positions(account::PositionsArgs),
    /// Claim the payouts of ended markets, and wait for them
    Claim(account::ClaimArgs),
    /// Follow the events of your trades, claims and positions
    Events(events::EventsArgs),
    /// Show prices, positions and events on one screen
    Watch(watch::WatchArgs),
    /// Manage the webhook of the key
    #[command(subcommand)]
    Webhooks(webhooks::WebhooksCommand),
}

/// The service, the key, and the form of the output.
#[derive(Debug, Args)]
pub struct TraderOptions {
    /// The address of the service
    #[arg(long, env = "FORETELL_BASE_URL", value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// A file that contains the API key
    #[arg(long, env = "FORETELL_API_KEY_FILE", value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The form of the output [default: table on a terminal, otherwise json]
    #[arg(short, long, value_enum, value_name = "FORM")]
    output: Option<OutputForm>,
    /// Only these members of the API's records, such as id,status,outcomes.0.price
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    fields: Vec<String>,
}

/// A command that asks before it acts.
#[derive(Debug, Args)]
pub struct Consent {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

impl Consent {
    /// Asks on the terminal, unless it was told not to.
    fn ask(&self, question: &str) -> Result<(), TraderError> {
        if self.yes {
            return Ok(());
        }
        let input = std::io::stdin();
        if !input.is_terminal() {
            return Err(TraderError::Unconfirmed("without a terminal, the command needs --yes".to_owned()));
        }
        eprint!("{question} Continue? [y/N] ");
        let mut answer = String::new();
        let read = std::io::stderr().flush().and_then(|()| input.read_line(&mut answer));
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" if read.is_ok() => Ok(()),
            _ => Err(TraderError::Unconfirmed("nothing was done".to_owned())),
        }
    }
}

/// A client of the service, and the printer of what it returns.
pub struct Session {
    client: Foretell,
    printer: Printer,
}

impl TraderOptions {
    fn open(&self, printer: Printer) -> Result<Session, TraderError> {
        let key = secret_of("key", None, self.key_file.clone())
            .map_err(|error| TraderError::Setup(error.to_string()))?;
        let key =
            key.ok_or_else(|| TraderError::Setup("set FORETELL_API_KEY_FILE or --key-file".to_owned()))?;
        let client = Foretell::new(&self.url, Secret::new(key.expose_secret()));
        let client = client.map_err(|error| TraderError::Setup(error.to_string()))?;
        Ok(Session { client, printer })
    }
}

/// Runs a command. Prints its error, in the form that was asked for.
pub async fn run(command: TraderCommand) -> ExitCode {
    let options = command.options();
    let printer = Printer::new(options.output, options.fields.clone());
    let result = match options.open(printer.clone()) {
        Ok(session) => command.run(&session).await,
        Err(error) => Err(error),
    };
    match result {
        // The reader, e.g. `head`, has read enough.
        Ok(()) | Err(TraderError::OutputClosed) => ExitCode::SUCCESS,
        Err(error) => {
            if printer.is_json() {
                println!("{}", error.to_json());
            } else {
                eprintln!("foretell: {}", printable(&error.to_string()));
            }
            ExitCode::from(error.exit_code())
        }
    }
}

impl TraderCommand {
    const fn options(&self) -> &TraderOptions {
        match self {
            Self::Markets(args) => &args.options,
            Self::Quote(args) => &args.options,
            Self::Buy(args) => &args.order.options,
            Self::Sell(args) => &args.order.options,
            Self::Trade(args) => &args.options,
            Self::Positions(args) => &args.options,
            Self::Claim(args) => &args.options,
            Self::Events(args) => &args.options,
            Self::Watch(args) => &args.options,
            Self::Webhooks(command) => command.options(),
        }
    }

    async fn run(&self, session: &Session) -> Result<(), TraderError> {
        match self {
            Self::Markets(args) => markets::run(args, session).await,
            Self::Quote(args) => markets::quote(args, session).await,
            Self::Buy(args) => orders::buy(args, session).await,
            Self::Sell(args) => orders::sell(args, session).await,
            Self::Trade(args) => orders::show(args, session).await,
            Self::Positions(args) => account::list(args, session).await,
            Self::Claim(args) => account::claim(args, session).await,
            Self::Events(args) => events::follow(args, session).await,
            Self::Watch(args) => watch::watch(args, session).await,
            Self::Webhooks(command) => webhooks::run(command, session).await,
        }
    }
}
