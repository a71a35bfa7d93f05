//! `foretell listen`: posts a user's events to a local program, signed like webhooks, without a
//! public URL.

mod follow;
mod forward;
mod lines;

use std::path::PathBuf;
use std::sync::Arc;

use app::entropy::Entropy;
use clap::Args;
use domain::event::{EventKind, FeedPosition};
use domain::time::SystemClock;
use domain::webhook::WebhookSecret;
use secrecy::{ExposeSecret, SecretString};

use crate::config::secret_of;
use crate::entropy::SystemEntropy;
use crate::start_error::StartError;
use follow::Feed;
use forward::LocalReceiver;

/// The events to forward and their destination.
#[derive(Debug, Args)]
pub struct ListenArgs {
    /// The URL that each event is posted to, such as http://127.0.0.1:3000/hooks
    #[arg(long, value_name = "URL")]
    forward_to: String,
    /// An API key of the user, with the scope trades:read
    #[arg(long, env = "FORETELL_API_KEY", hide_env_values = true)]
    api_key: Option<SecretString>,
    /// A file that contains the API key
    #[arg(long, env = "FORETELL_API_KEY_FILE", value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// The URL of the service
    #[arg(long, env = "FORETELL_BASE_URL", default_value = "http://127.0.0.1:8080")]
    base_url: String,
    /// The secret that signs the requests [default: a new one at each start]
    #[arg(long, env = "FORETELL_WEBHOOK_SECRET", hide_env_values = true)]
    secret: Option<SecretString>,
    /// A file that contains the secret that signs the requests
    #[arg(long, env = "FORETELL_WEBHOOK_SECRET_FILE", value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// A comma-separated list of event types, or * [default: the types that are posted to webhooks]
    #[arg(long)]
    types: Option<String>,
    /// Start after the event with this id, such as 1-41, and post the later events again [default:
    /// only new events]
    #[arg(long, value_name = "ID")]
    since: Option<FeedPosition>,
}

pub async fn run(args: ListenArgs) -> Result<(), StartError> {
    let api_key = secret_of("api-key", args.api_key, args.api_key_file)?
        .ok_or_else(|| StartError::Other("set --api-key-file, --api-key or FORETELL_API_KEY".to_owned()))?;
    let secret = match secret_of("secret", args.secret, args.secret_file)? {
        Some(text) => {
            text.expose_secret().parse().map_err(|error| StartError::Other(format!("--secret: {error}")))?
        }
        None => {
            let mut bytes = [0; 32];
            SystemEntropy::default().fill(&mut bytes);
            WebhookSecret::from_bytes(bytes)
        }
    };
    // A redirect could send the key or an event to another host.
    let client = || reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let failed = |error: reqwest::Error| StartError::Other(error.to_string());
    // A proxy may be needed to reach the service, but never to reach a program on this machine.
    let (of_feed, of_receiver) =
        (client().build().map_err(failed)?, client().no_proxy().build().map_err(failed)?);
    println!("signing with {}", secret.expose());
    println!("posting to {}", args.forward_to);
    let types = args.types.unwrap_or_else(delivered);
    let receiver = LocalReceiver::new(of_receiver, args.forward_to, secret, Arc::new(SystemClock::default()));
    let mut feed = Feed::new(of_feed, &args.base_url, api_key, &types, args.since);
    tokio::select! {
        ended = feed.follow(&receiver) => ended.map_err(StartError::Other),
        () = crate::run::signalled() => Ok(()),
    }
}

/// Returns the event types that are posted to webhooks.
fn delivered() -> String {
    let delivered = EventKind::ALL.iter().filter(|kind| kind.is_delivered());
    delivered.map(|kind| kind.as_str()).collect::<Vec<_>>().join(",")
}
