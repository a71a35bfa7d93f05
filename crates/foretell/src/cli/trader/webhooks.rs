//! `foretell webhooks`.

use clap::{Args, Subcommand};
use foretell_client::types::WebhookQuery;

use super::failure::TraderError;
use super::markets::read_up_to;
use super::printer::{Column, Unit};
use super::{Consent, Session, TraderOptions};

const DELIVERIES: &[Column] = &[
    ("id", "id", Unit::Text),
    ("status", "status", Unit::Text),
    ("type", "eventType", Unit::Text),
    ("attempts", "delivery.attempts", Unit::Text),
    ("answer", "delivery.lastStatusCode", Unit::Text),
    ("failure", "delivery.lastFailureCode", Unit::Text),
    ("emitted", "emittedAt", Unit::Text),
];

const ENDPOINT: &[Column] = &[
    ("url", "url", Unit::Text),
    ("breaker", "breaker.state", Unit::Text),
    ("waiting", "queue.waiting", Unit::Text),
    ("secret of", "secret.rotatedAt", Unit::Text),
];

const QUEUED: &[Column] =
    &[("id", "id", Unit::Text), ("type", "eventType", Unit::Text), ("emitted", "emittedAt", Unit::Text)];

const SECRET: &[Column] =
    &[("secret", "secret", Unit::Text), ("the old one signs until", "previousSecretExpiresAt", Unit::Text)];

#[derive(Debug, Subcommand)]
pub enum WebhooksCommand {
    /// List deliveries, newest first
    List(ListArgs),
    /// Show a delivery with its attempts
    Show(EventArgs),
    /// Show the state of the receiver
    Endpoint(NoArgs),
    /// Send a test event
    Test(NoArgs),
    /// Send an event again
    Redeliver(EventArgs),
    /// Replace the secret, and print the new one
    RotateSecret(RotateArgs),
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only this status
    #[arg(long)]
    status: Option<String>,
    /// Maximum number of deliveries to list
    #[arg(long, value_name = "NUMBER", default_value_t = 25)]
    limit: usize,
    #[command(flatten)]
    options: TraderOptions,
}

#[derive(Debug, Args)]
pub struct EventArgs {
    /// The id of the event
    event: String,
    #[command(flatten)]
    options: TraderOptions,
}

#[derive(Debug, Args)]
pub struct NoArgs {
    #[command(flatten)]
    options: TraderOptions,
}

#[derive(Debug, Args)]
pub struct RotateArgs {
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    options: TraderOptions,
}

impl WebhooksCommand {
    pub const fn options(&self) -> &TraderOptions {
        match self {
            Self::List(args) => &args.options,
            Self::Show(args) | Self::Redeliver(args) => &args.options,
            Self::Endpoint(args) | Self::Test(args) => &args.options,
            Self::RotateSecret(args) => &args.options,
        }
    }
}

pub async fn run(command: &WebhooksCommand, session: &Session) -> Result<(), TraderError> {
    let Session { client, printer } = session;
    let webhooks = &client.webhooks;
    match command {
        WebhooksCommand::List(args) => {
            let query =
                |limit| WebhookQuery { status: args.status.clone(), limit, ..WebhookQuery::default() };
            let records = read_up_to(args.limit, |limit| webhooks.list(&query(limit))).await?;
            printer.print_list(&records, DELIVERIES)
        }
        WebhooksCommand::Show(args) => printer.print_one(webhooks.get(&args.event).await?.json(), DELIVERIES),
        WebhooksCommand::Endpoint(_) => printer.print_one(webhooks.endpoint().await?.json(), ENDPOINT),
        WebhooksCommand::Test(_) => printer.print_one(webhooks.send_test().await?.json(), QUEUED),
        WebhooksCommand::Redeliver(args) => {
            printer.print_one(webhooks.redeliver(&args.event).await?.json(), QUEUED)
        }
        WebhooksCommand::RotateSecret(args) => {
            args.consent.ask("Replace the secret of the webhook; the old one signs too for a while.")?;
            printer.print_one(webhooks.rotate_secret().await?.json(), SECRET)
        }
    }
}
