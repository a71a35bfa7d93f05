//! `foretell listen`: posts a user's events to a program on this machine, signed as a webhook is, without a public URL.

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

use crate::config::one_url;
use crate::entropy::SystemEntropy;
use crate::run::StartError;
use follow::Feed;
use forward::Receiver;

/// What is listened to, and where it goes.
#[derive(Debug, Args)]
pub struct ListenArgs {
    /// Where each event is posted to, such as http://127.0.0.1:3000/hooks
    #[arg(long, value_name = "URL")]
    forward_to: String,
    /// A key of the user whose events are wanted; it needs the scope trades:read
    #[arg(long, env = "FORETELL_API_KEY", hide_env_values = true)]
    api_key: Option<String>,
    /// A file that holds the key
    #[arg(long, env = "FORETELL_API_KEY_FILE", value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// The service
    #[arg(long, env = "FORETELL_BASE_URL", default_value = "http://127.0.0.1:8080")]
    base_url: String,
    /// What signs the posts; made up at each start where it is left out
    #[arg(long, env = "FORETELL_WEBHOOK_SECRET", hide_env_values = true)]
    secret: Option<String>,
    /// A file that holds what signs the posts
    #[arg(long, env = "FORETELL_WEBHOOK_SECRET_FILE", value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// A comma-separated list of event types, or * [default: those that are posted to webhooks]
    #[arg(long)]
    types: Option<String>,
    /// Begin behind the event with this id, such as 1-41, and post again what followed it; left out, what happens from now on
    #[arg(long, value_name = "ID")]
    since: Option<FeedPosition>,
}

pub async fn run(args: ListenArgs) -> Result<(), StartError> {
    let api_key = one_url("api-key", args.api_key, args.api_key_file)?
        .ok_or_else(|| StartError::Other("set --api-key-file, --api-key or FORETELL_API_KEY".to_owned()))?;
    let secret = match one_url("secret", args.secret, args.secret_file)? {
        Some(text) => text.parse().map_err(|error| StartError::Other(format!("--secret: {error}")))?,
        None => {
            let mut bytes = [0; 32];
            SystemEntropy::default().fill(&mut bytes);
            WebhookSecret::from_bytes(bytes)
        }
    };
    let client = || reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let failed = |error: reqwest::Error| StartError::Other(error.to_string());
    // The way to the service may lead through a proxy, the one to a program on this machine does not.
    let (of_feed, of_receiver) =
        (client().build().map_err(failed)?, client().no_proxy().build().map_err(failed)?);
    println!("signing with {}", secret.expose());
    println!("posting to {}", args.forward_to);
    let types = args.types.unwrap_or_else(delivered);
    let receiver = Receiver::new(of_receiver, args.forward_to, secret, Arc::new(SystemClock::default()));
    let mut feed = Feed::new(of_feed, &args.base_url, api_key, &types, args.since);
    tokio::select! {
        ended = feed.follow(&receiver) => ended.map_err(StartError::Other),
        () = crate::run::signalled() => Ok(()),
    }
}

/// The types that are posted to webhooks.
fn delivered() -> String {
    let delivered = EventKind::ALL.iter().filter(|kind| kind.is_delivered());
    delivered.map(|kind| kind.as_str()).collect::<Vec<_>>().join(",")
}
