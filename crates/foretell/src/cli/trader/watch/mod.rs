//! `foretell watch`: prices, positions and events on one screen.
//!
//! Three tasks report what happens over one channel: the keyboard, the feed of events, and the reader
//! of markets and positions. The screen is drawn after each report.

mod screen;
mod state;

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use foretell_client::types::MarketQuery;
use foretell_client::{Clock, Error, FeedOptions, FeedStart, Foretell, SystemClock};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::failure::TraderError;
use super::{Session, TraderOptions};
use state::{Account, Report, WatchState};

#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Only these markets [default: the newest open ones]
    markets: Vec<String>,
    /// Number of markets to show
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: u32,
    /// Time between two reads of prices and positions, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    #[command(flatten)]
    pub options: TraderOptions,
}

pub async fn watch(args: &WatchArgs, session: &Session) -> Result<(), TraderError> {
    if !std::io::stdout().is_terminal() {
        return Err(TraderError::Setup(
            "watch needs a terminal: use markets, positions and events".to_owned(),
        ));
    }
    let reader = Reader { client: session.client.clone(), markets: args.markets.clone(), limit: args.limit };
    // Before the screen is taken, so that a wrong key is an error like any other.
    let mut state = WatchState::default();
    state.apply(reader.read().await?);
    let (reports, mut incoming) = mpsc::channel(64);
    let changed = Arc::new(Notify::new());
    let mut tasks = JoinSet::new();
    tasks.spawn(reader.read_repeatedly(Duration::from_secs(args.every), changed.clone(), reports.clone()));
    tasks.spawn(follow_events(session.client.clone(), changed, reports.clone()));
    std::thread::spawn(move || forward_keys(&reports));
    let mut terminal = ratatui::try_init()?;
    let ended = show(&mut terminal, &mut state, &mut incoming).await;
    ratatui::restore();
    ended
}

/// Draws the screen after each report, until a key ends the command.
async fn show(
    terminal: &mut DefaultTerminal,
    state: &mut WatchState,
    incoming: &mut mpsc::Receiver<Report>,
) -> Result<(), TraderError> {
    while !state.has_ended() {
        terminal.draw(|frame| screen::render(frame, state))?;
        let Some(report) = incoming.recv().await else { break };
        state.apply(report);
    }
    Ok(())
}

/// Reads markets, positions and the balance.
struct Reader {
    client: Foretell,
    markets: Vec<String>,
    limit: u32,
}

impl Reader {
    async fn read(&self) -> Result<Report, Error> {
        let mut markets = Vec::new();
        for id in &self.markets {
            markets.push(self.client.markets.get(id).await?.into_inner());
        }
        if self.markets.is_empty() {
            let query = MarketQuery {
                status: Some("OPEN".to_owned()),
                limit: Some(self.limit),
                ..MarketQuery::default()
            };
            let page = self.client.markets.list(&query).next_page().await?;
            markets = page.map(|page| page.items).unwrap_or_default();
        }
        let account = &self.client.account;
        let (positions, portfolio) = tokio::try_join!(account.positions(None), account.portfolio())?;
        let available = portfolio.available_usdc.clone();
        let account =
            Account { available, value: portfolio.total_value.clone(), positions: positions.into_inner() };
        Ok(Report::Read { markets, account: Box::new(account) })
    }

    async fn read_repeatedly(self, every: Duration, changed: Arc<Notify>, reports: mpsc::Sender<Report>) {
        loop {
            tokio::select! {
                () = SystemClock.sleep(every) => {}
                () = changed.notified() => {}
            }
            let report = self.read().await.unwrap_or_else(|error| Report::Failed(error.to_string()));
            if reports.send(report).await.is_err() {
                return;
            }
        }
    }
}

/// Reports each event, and has the positions read again.
async fn follow_events(client: Foretell, changed: Arc<Notify>, reports: mpsc::Sender<Report>) {
    let types = vec!["*".to_owned()];
    let options = FeedOptions { types, from: FeedStart::Latest, ..FeedOptions::default() };
    let mut feed = client.events.stream(options);
    loop {
        let report = match feed.try_next().await {
            Ok(Some(item)) => Report::Event(Box::new(item.event)),
            Ok(None) => return,
            Err(error) => Report::Failed(error.to_string()),
        };
        changed.notify_one();
        if reports.send(report).await.is_err() {
            return;
        }
    }
}

/// The time between two checks whether the command has ended.
const KEY_WAIT: Duration = Duration::from_millis(200);

/// Forwards keys. Runs in a thread, because a terminal cannot be read without blocking.
fn forward_keys(reports: &mpsc::Sender<Report>) {
    while !reports.is_closed() {
        let report = match event::poll(KEY_WAIT) {
            Ok(false) => continue,
            Ok(true) => match event::read() {
                Ok(Event::Key(key)) => Report::Key(key),
                Ok(Event::Resize(..)) => Report::Resized,
                Ok(_) => continue,
                Err(_) => return,
            },
            Err(_) => return,
        };
        if reports.blocking_send(report).is_err() {
            return;
        }
    }
}
