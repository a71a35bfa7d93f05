//! The waterfall of a trade's trace.

use domain::trade::TraceStage;
use presentation::amounts;
use store::trades::Traced;

/// The width of the waterfall.
const WIDTH: i64 = 1_000;
/// The smallest width of a bar that people can see.
const LEAST: i64 = 6;

/// A step of a trace, and its bar.
#[derive(Debug, PartialEq, Eq)]
pub struct TraceLine {
    pub kind: String,
    pub x: i64,
    pub width: i64,
    /// The number of the stage's colour.
    pub colour: usize,
    /// The time since the step before.
    pub took: String,
}

/// Returns the steps of a trace. The waterfall ends when the trade does: deliveries of webhooks may
/// follow hours later, and are shown at its right edge.
pub fn lines_of(events: &[Traced]) -> Vec<TraceLine> {
    let (Some(first), Some(last)) = (events.first(), events.last()) else { return Vec::new() };
    let end = events.iter().find(|event| event.status.is_terminal()).unwrap_or(last).at;
    let total = end.since_ms(first.at).max(1);
    let place = |ms: i64| (ms.clamp(0, total) * WIDTH / total).min(WIDTH - LEAST);
    let mut before = first.at;
    let line = |event: &Traced| {
        // The events come from several processes, whose clocks may differ.
        let took = event.at.since_ms(before).max(0);
        let (from, to) = (place(before.since_ms(first.at)), place(event.at.since_ms(first.at)));
        before = before.max(event.at);
        TraceLine {
            kind: event.kind.clone(),
            x: from,
            width: (to - from).max(LEAST),
            colour: colour_of(event.stage),
            took: amounts::duration(took),
        }
    };
    events.iter().map(line).collect()
}

const fn colour_of(stage: TraceStage) -> usize {
    match stage {
        TraceStage::Intent => 0,
        TraceStage::Funding => 1,
        TraceStage::Execution => 2,
        TraceStage::Webhook => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Timestamp;
    use domain::trade::Status;
    use serde_json::Map;

    fn traced(kind: &str, status: Status, ms: i64) -> Traced {
        Traced {
            seq: 1,
            stage: TraceStage::Execution,
            kind: kind.to_owned(),
            status,
            at: Timestamp::from_ms(1_777_464_000_000 + ms),
            attributes: Map::new(),
        }
    }

    #[test]
    fn the_waterfall_covers_the_trade_and_later_deliveries_are_at_its_edge() {
        let lines = lines_of(&[
            traced("trade.created", Status::Pending, 0),
            traced("trade.executing", Status::Executing, 250),
            // An earlier time, of a process whose clock is behind.
            traced("batch.signed", Status::Executing, 200),
            traced("trade.completed", Status::Completed, 1_000),
            traced("webhook.delivered", Status::Completed, 3_601_000),
        ]);
        let bars: Vec<_> = lines.iter().map(|line| (line.x, line.width, line.took.as_str())).collect();
        assert_eq!(
            bars,
            [(0, 6, "0 ms"), (0, 250, "250 ms"), (250, 6, "0 ms"), (250, 744, "750 ms"), (994, 6, "1 h")]
        );
        assert_eq!(lines_of(&[]), []);
    }
}
