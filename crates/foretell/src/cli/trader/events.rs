//! `foretell events`.

use clap::{Args, ValueEnum};
use foretell_client::{FeedItem, FeedOptions, FeedStart};
use serde_json::Value;

use super::failure::TraderError;
use super::printer::{Column, Unit};
use super::{Session, TraderOptions};

const EVENTS: &[Column] = &[
    ("position", "position", Unit::Text),
    ("time", "createdAt", Unit::Text),
    ("type", "type", Unit::Text),
    ("trade", "data.tradeId", Unit::Text),
    ("market", "data.marketId", Unit::Text),
    ("status", "data.status", Unit::Text),
];

/// The start of the events.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Start {
    /// At the oldest event that is stored
    Oldest,
    /// After the newest event
    Latest,
}

#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Only these types, such as trade.completed,trade.failed; * for all
    #[arg(long, value_delimiter = ',')]
    types: Vec<String>,
    /// The first event
    #[arg(long, value_enum, default_value = "latest", conflicts_with = "after")]
    from: Start,
    /// Continue after the event at this position, such as 1-41
    #[arg(long, value_name = "POSITION")]
    after: Option<String>,
    /// End after this number of events [default: never]
    #[arg(long, value_name = "NUMBER")]
    limit: Option<u64>,
    #[command(flatten)]
    pub options: TraderOptions,
}

pub async fn follow(args: &EventsArgs, session: &Session) -> Result<(), TraderError> {
    let mut feed = session.client.events.stream(FeedOptions {
        types: args.types.clone(),
        after: args.after.clone(),
        from: match args.from {
            Start::Oldest => FeedStart::Oldest,
            Start::Latest => FeedStart::Latest,
        },
        on_generation: Some(Box::new(|_| {
            eprintln!("foretell: the service's data was restored: the events are read again from the start");
        })),
    });
    let read = async {
        let mut count = 0;
        while args.limit.is_none_or(|limit| count < limit)
            && let Some(item) = feed.try_next().await?
        {
            session.printer.print_next(&record_of(&item), EVENTS)?;
            count += 1;
        }
        Ok(())
    };
    tokio::select! {
        ended = read => ended,
        () = crate::run::signalled() => Ok(()),
    }
}

/// Returns the event with its position.
fn record_of(item: &FeedItem) -> Value {
    let mut record = serde_json::to_value(&item.event).unwrap_or_default();
    record["position"] = item.position.as_str().into();
    record
}
