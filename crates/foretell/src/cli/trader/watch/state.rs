//! What the screen shows, and how reports change it.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};

use foretell_client::types::{FeedEvent, Market, Outcome, Position};
use foretell_client::{Usdc, Wad};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Something that happened.
pub enum Report {
    Key(KeyEvent),
    /// The terminal has another size.
    Resized,
    Read {
        markets: Vec<Market>,
        account: Box<Account>,
    },
    Event(Box<FeedEvent>),
    /// A read failed. What was read before stays.
    Failed(String),
}

/// The account of the key's user.
pub struct Account {
    pub available: Usdc,
    pub value: Usdc,
    pub positions: Vec<Position>,
}

/// The maximum number of events that are shown.
const MAX_EVENTS: usize = 100;

#[derive(Default)]
pub struct WatchState {
    pub markets: Vec<Market>,
    pub account: Option<Account>,
    /// Newest first.
    pub events: VecDeque<FeedEvent>,
    pub selected: usize,
    pub failure: Option<String>,
    /// The last change of each price.
    moves: HashMap<(String, u32), Ordering>,
    has_ended: bool,
}

impl WatchState {
    pub const fn has_ended(&self) -> bool {
        self.has_ended
    }

    pub fn apply(&mut self, report: Report) {
        match report {
            Report::Key(key) => self.press(key),
            Report::Resized => {}
            Report::Read { markets, account } => {
                self.record_moves(&markets);
                self.markets = markets;
                self.selected = self.selected.min(self.markets.len().saturating_sub(1));
                self.account = Some(*account);
                self.failure = None;
            }
            Report::Event(event) => {
                self.events.push_front(*event);
                self.events.truncate(MAX_EVENTS);
            }
            Report::Failed(message) => self.failure = Some(message),
        }
    }

    /// Returns how the price of an outcome last changed.
    pub fn last_move(&self, market: &Market, outcome: &Outcome) -> Ordering {
        self.moves.get(&(market.id.clone(), outcome.index)).copied().unwrap_or(Ordering::Equal)
    }

    fn press(&mut self, key: KeyEvent) {
        // Some terminals also report when a key is released.
        if key.kind == KeyEventKind::Release {
            return;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => self.has_ended = true,
            KeyCode::Char('c') if is_control => self.has_ended = true,
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => {
                self.selected = (self.selected + 1).min(self.markets.len().saturating_sub(1));
            }
            _ => {}
        }
    }

    fn record_moves(&mut self, markets: &[Market]) {
        for market in markets {
            let Some(before) = self.markets.iter().find(|before| before.id == market.id) else { continue };
            for (old, new) in before.outcomes.iter().zip(&market.outcomes) {
                let price = |outcome: &Outcome| Wad::parse(outcome.price.as_str()).ok();
                let change = price(new).cmp(&price(old));
                if change != Ordering::Equal {
                    self.moves.insert((market.id.clone(), new.index), change);
                }
            }
        }
    }
}
