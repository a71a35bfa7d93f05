//! Draws the state.

use std::cmp::Ordering;

use foretell_client::types::{FeedEvent, Market, MarketStatus, Position};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, List, ListItem, Paragraph, Row, Table, TableState};

use super::state::{Account, WatchState};

/// The maximum number of outcomes of a market that are shown. Its page shows all.
const MAX_OUTCOMES: usize = 3;

pub fn render(frame: &mut Frame<'_>, state: &WatchState) {
    let lines = |least| Constraint::Min(least);
    let parts = [Constraint::Length(1), lines(5), lines(4), lines(4), Constraint::Length(1)];
    let [head, markets, positions, events, foot] = Layout::vertical(parts).areas(frame.area());
    render_head(frame, head, state);
    render_markets(frame, markets, state);
    render_positions(frame, positions, state.account.as_ref());
    render_events(frame, events, state);
    frame.render_widget(Paragraph::new("up/down: choose a market   q: quit").style(dim()), foot);
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn titled(title: &str) -> Block<'_> {
    Block::bordered().title(title)
}

fn render_head(frame: &mut Frame<'_>, area: Rect, state: &WatchState) {
    let balance = state.account.as_ref().map_or_else(String::new, |account| {
        format!("Foretell   {} USDC available, {} USDC in total   ", account.available, account.value)
    });
    let failure = state.failure.clone().unwrap_or_default();
    let head = Line::from(vec![Span::raw(balance), Span::styled(failure, Style::new().fg(Color::Red))]);
    frame.render_widget(Paragraph::new(head), area);
}

fn render_markets(frame: &mut Frame<'_>, area: Rect, state: &WatchState) {
    let rows = state.markets.iter().map(|market| {
        let question = Line::from(market.question.as_str());
        Row::new([question, prices(market, state), Line::from(market.status.as_str())])
    });
    let widths = [Constraint::Fill(1), Constraint::Fill(1), Constraint::Length(9)];
    let table = Table::new(rows, widths)
        .block(titled(" Markets "))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut selection = TableState::default().with_selected(Some(state.selected));
    frame.render_stateful_widget(table, area, &mut selection);
}

/// Returns the prices of a market's first outcomes, with the direction of their last change.
fn prices<'a>(market: &'a Market, state: &WatchState) -> Line<'a> {
    let spans = market.outcomes.iter().take(MAX_OUTCOMES).flat_map(|outcome| {
        let (arrow, style) = match state.last_move(market, outcome) {
            Ordering::Greater => ("\u{2191}", Style::new().fg(Color::Green)),
            Ordering::Less => ("\u{2193}", Style::new().fg(Color::Red)),
            Ordering::Equal => ("", Style::new()),
        };
        let price = format!("{:.5}{arrow}  ", outcome.price.as_str());
        [Span::styled(format!("{} ", outcome.label), dim()), Span::styled(price, style)]
    });
    Line::from(spans.collect::<Vec<_>>())
}

fn render_positions(frame: &mut Frame<'_>, area: Rect, account: Option<&Account>) {
    let positions = account.into_iter().flat_map(|account| &account.positions);
    let rows = positions.filter(|position| is_open(position)).map(|position: &Position| {
        let profit = position.unrealized_pnl.to_string();
        let color = if profit.starts_with('-') { Color::Red } else { Color::Green };
        Row::new([
            Line::from(position.question.as_str()),
            Line::from(position.outcome_label.as_str()),
            Line::from(shorten(&position.tokens.to_string())).right_aligned(),
            Line::from(shorten(&position.value.to_string())).right_aligned(),
            Line::from(Span::styled(shorten(&profit), Style::new().fg(color))).right_aligned(),
        ])
    });
    let heads = ["Tokens", "Value", "Profit"].map(|head| Line::from(head).right_aligned());
    let header =
        Row::new([Line::from("Question"), Line::from("Outcome")].into_iter().chain(heads)).style(dim());
    let widths = [
        Constraint::Fill(3),
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Fill(1),
    ];
    frame.render_widget(Table::new(rows, widths).header(header).block(titled(" Positions ")), area);
}

/// Reports whether the position can still be sold or paid.
fn is_open(position: &Position) -> bool {
    match position.market_status {
        MarketStatus::Resolved | MarketStatus::Cancelled => !position.value.is_zero(),
        _ => !position.tokens.round_down(6).is_zero(),
    }
}

/// Cuts an amount to two decimals. A narrow column would cut its whole digits too.
fn shorten(amount: &str) -> String {
    match amount.split_once('.') {
        Some((whole, fraction)) => format!("{whole}.{fraction:.2}"),
        None => amount.to_owned(),
    }
}

fn render_events(frame: &mut Frame<'_>, area: Rect, state: &WatchState) {
    let items = state.events.iter().map(|event| ListItem::new(describe(event)));
    frame.render_widget(List::new(items).block(titled(" Events ")), area);
}

fn describe(event: &FeedEvent) -> String {
    let details = [&event.data.status, &event.data.trade_id].into_iter().flatten();
    let details = details.map(String::as_str).collect::<Vec<_>>().join(" ");
    format!("{}  {}  {details}", event.created_at, event.r#type)
}

#[cfg(test)]
mod tests {
    use foretell_client::Usdc;
    use foretell_client::types::FeedEvent;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent};
    use serde_json::{Value, json};

    use super::super::state::{Account, Report, WatchState};
    use super::*;

    fn market(id: &str, question: &str, price: &Value) -> Market {
        let outcome = json!({ "index": 0, "label": "Yes", "probability": price, "price": price, "tokenId": null, "supply": "0" });
        serde_json::from_value(json!({
            "id": id, "question": question, "status": "OPEN", "outcomes": [outcome], "tags": [], "totalVolume": 0,
            "tradeCount": 0, "liquidity": "0", "feeBps": 100, "chainId": 1, "contractAddress": "", "createdAt": "",
            "endTime": "", "asOf": { "block": 1, "at": "" }
        }))
        .unwrap()
    }

    fn position(tokens: &str, profit: &str) -> Position {
        serde_json::from_value(json!({
            "marketId": "m", "question": "Will it snow?", "marketStatus": "OPEN", "outcomeIndex": 0, "outcomeLabel": "Yes",
            "tokens": tokens, "costBasis": "0", "currentPrice": 0.5, "value": "1500000", "unrealizedPnl": profit,
            "realizedPnl": "0", "feesPaid": "0", "claimable": false, "claimableUsdc": "0", "updatedAt": ""
        }))
        .unwrap()
    }

    fn read(prices: &[Value], positions: Vec<Position>) -> Report {
        let markets = prices
            .iter()
            .enumerate()
            .map(|(number, price)| market(&number.to_string(), &format!("Question {number}?"), price));
        let account = Account {
            available: Usdc::from_atomic(9_500_000),
            value: Usdc::from_atomic(11_000_000),
            positions,
        };
        Report::Read { markets: markets.collect(), account: Box::new(account) }
    }

    fn drawn(state: &WatchState) -> String {
        let mut terminal = Terminal::new(TestBackend::new(100, 24)).unwrap();
        terminal.draw(|frame| render(frame, state)).unwrap();
        terminal.backend().to_string()
    }

    fn state(reports: Vec<Report>) -> WatchState {
        let mut state = WatchState::default();
        reports.into_iter().for_each(|report| state.apply(report));
        state
    }

    #[test]
    fn the_screen_shows_prices_positions_the_balance_and_events() {
        let event: FeedEvent = serde_json::from_value(json!({
            "sequence": 1, "apiKeyId": null, "id": "e", "type": "trade.completed", "apiVersion": "", "createdAt": "12:00",
            "data": { "tradeId": "t1", "status": "completed" }
        }))
        .unwrap();
        let positions = vec![position("2000000000000000000", "-250000"), position("0", "0")];
        let screen =
            drawn(&state(vec![read(&[json!(0.578_896)], positions), Report::Event(Box::new(event))]));
        for text in [
            "Question 0?",
            "Yes 0.578",
            "OPEN",
            "9.5 USDC available, 11 USDC in total",
            "12:00  trade.completed  completed t1",
        ] {
            assert!(screen.contains(text), "{text}:\n{screen}");
        }
        assert_eq!(
            screen.matches("Will it snow?").count(),
            1,
            "a position without tokens is not shown:\n{screen}"
        );
        assert!(screen.contains("-0.25") && screen.contains("1.5"), "{screen}");
        assert_eq!(["12.345", "12", "-0.1"].map(shorten), ["12.34", "12", "-0.1"]);
    }

    #[test]
    fn a_price_has_the_direction_of_its_last_change() {
        let reads = [0.5, 0.6, 0.6, 0.4].map(|price| read(&[json!(price)], Vec::new()));
        let mut state = WatchState::default();
        let shown = reads.into_iter().map(|report| {
            state.apply(report);
            let screen = drawn(&state);
            (screen.contains('\u{2191}'), screen.contains('\u{2193}'))
        });
        let expected = [(false, false), (true, false), (true, false), (false, true)];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_failed_read_is_reported_and_what_was_read_stays() {
        let mut state =
            state(vec![read(&[json!(0.5)], Vec::new()), Report::Failed("the service is away".to_owned())]);
        let screen = drawn(&state);
        assert!(screen.contains("the service is away") && screen.contains("Question 0?"), "{screen}");
        state.apply(read(&[json!(0.5)], Vec::new()));
        assert!(!drawn(&state).contains("the service is away"));
    }

    #[test]
    fn keys_choose_a_market_and_end_the_command() {
        let press = |code| Report::Key(KeyEvent::from(code));
        let mut state = state(vec![read(&[json!(0.5), json!(0.5)], Vec::new())]);
        for (key, selected) in [(KeyCode::Down, 1), (KeyCode::Down, 1), (KeyCode::Up, 0), (KeyCode::Up, 0)] {
            state.apply(press(key));
            assert_eq!(state.selected, selected);
        }
        assert!(!state.has_ended());
        state.apply(press(KeyCode::Char('q')));
        assert!(state.has_ended());
    }

    #[test]
    fn questions_cannot_control_the_terminal() {
        let mut state = state(vec![read(&[json!(0.5)], Vec::new())]);
        state.markets[0].question = "a\u{1b}[2Jb".to_owned();
        assert!(!drawn(&state).contains('\u{1b}'));
    }
}
