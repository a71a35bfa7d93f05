//! Throttles repeated lines by their cause: the first one is printed, and then one every ten
//! seconds with the number of those left out. An outage would otherwise write a line for each
//! request and each step of a worker.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

/// The time between two lines of the same cause.
const WINDOW: Duration = Duration::from_secs(10);
/// The number of causes that are remembered. Lines of further ones are all printed.
const MOST_CAUSES: usize = 512;
/// The length of a field that makes up a cause.
const CAUSE_CHARS: usize = 200;
/// The fields that make up a cause. Others, such as ids, differ from line to line.
const CAUSE_FIELDS: [&str; 7] = ["worker", "lane", "lease", "error", "cause", "error.code", "error.causes"];

/// The causes of the last seconds.
#[derive(Debug, Default)]
pub struct Causes(Mutex<HashMap<String, Seen>>);

#[derive(Debug)]
struct Seen {
    until: Instant,
    left_out: u64,
    /// The last line that was left out.
    last: String,
}

impl Causes {
    /// Returns true if a line with this cause is printed now.
    fn admit(&self, cause: &str, now: Instant) -> bool {
        let mut causes = self.0.lock();
        if causes.contains_key(cause) {
            return false;
        }
        if causes.len() < MOST_CAUSES {
            let seen = Seen { until: now + WINDOW, left_out: 0, last: String::new() };
            causes.insert(cause.to_owned(), seen);
        }
        true
    }

    fn leave_out(&self, cause: &str, line: String) {
        if let Some(seen) = self.0.lock().get_mut(cause) {
            seen.left_out += 1;
            seen.last = line;
        }
    }

    /// Returns the last line of each cause whose window has ended, with the number of lines left
    /// out. Causes without further lines are forgotten.
    pub fn take_due(&self, now: Instant) -> Vec<String> {
        let mut causes = self.0.lock();
        causes.retain(|_, seen| seen.until > now || seen.left_out > 0);
        let due = causes.values_mut().filter(|seen| seen.until <= now);
        due.map(|seen| {
            seen.until = now + WINDOW;
            with_count(&std::mem::take(&mut seen.last), std::mem::take(&mut seen.left_out))
        })
        .collect()
    }
}

/// Adds the number of lines that this one stands for.
fn with_count(line: &str, count: u64) -> String {
    let line = line.trim_end();
    match line.strip_suffix('}') {
        Some(json) if line.starts_with('{') => format!("{json},\"repeated\":{count}}}\n"),
        _ => format!("{line} repeated={count}\n"),
    }
}

/// A format whose lines are throttled.
pub struct Throttled<F> {
    format: F,
    causes: Arc<Causes>,
}

impl<F> Throttled<F> {
    pub const fn new(format: F, causes: Arc<Causes>) -> Self {
        Self { format, causes }
    }
}

impl<S, N, F> FormatEvent<S, N> for Throttled<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let cause = Cause::of(event);
        if cause.as_ref().is_none_or(|cause| self.causes.admit(cause, Instant::now())) {
            if event.metadata().target() != LOG_TARGET {
                return self.format.format_event(ctx, writer, event);
            }
            let mut line = String::new();
            self.format.format_event(ctx, Writer::new(&mut line), event)?;
            return writer.write_str(&without_build_paths(line));
        }
        let mut line = String::new();
        self.format.format_event(ctx, Writer::new(&mut line), event)?;
        self.causes.leave_out(&cause.unwrap_or_default(), without_build_paths(line));
        Ok(())
    }
}

/// The target of lines of dependencies that use the `log` crate.
const LOG_TARGET: &str = "log";

/// Removes the fields of a dependency's line that name files of the machine that built it.
fn without_build_paths(line: String) -> String {
    let Ok(Value::Object(mut parsed)) = serde_json::from_str(&line) else { return line };
    let Some(Value::Object(fields)) = parsed.get_mut("fields") else { return line };
    let before = fields.len();
    fields.retain(|name, _| !name.starts_with("log."));
    if fields.len() == before { line } else { format!("{}\n", Value::Object(parsed)) }
}

/// Collects the cause of a line.
#[derive(Default)]
struct Cause(String);

impl Cause {
    /// Returns the cause of a warning or an error, or `None` if it names none.
    fn of(event: &Event<'_>) -> Option<String> {
        let metadata = event.metadata();
        if *metadata.level() > Level::WARN {
            return None;
        }
        let mut cause = Self::default();
        event.record(&mut cause);
        if cause.0.is_empty() {
            return None;
        }
        // The name has the file and the line of the code.
        Some(format!("{} {}", metadata.name(), cause.0))
    }
}

impl Visit for Cause {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if CAUSE_FIELDS.contains(&field.name()) {
            let text = format!("{value:?}");
            // Numbers in errors, such as ports and times, differ from line to line.
            let is_error = field.name().starts_with(['e', 'c']);
            let words = text.chars().take(CAUSE_CHARS).filter(|c| !(is_error && c.is_ascii_digit()));
            self.0.extend(words);
            self.0.push(';');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::fmt::format::JsonFields;
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Returns what `log` prints, one JSON line per event, and the causes.
    fn printed(log: impl FnOnce()) -> (Vec<Value>, Arc<Causes>) {
        let (lines, causes) = (Lines::default(), Arc::<Causes>::default());
        let writer = lines.clone();
        let format = Throttled::new(tracing_subscriber::fmt::format().json(), Arc::clone(&causes));
        let layer = tracing_subscriber::fmt::layer().event_format(format).fmt_fields(JsonFields::new());
        let layer = layer.with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        let text = String::from_utf8(lines.0.lock().clone()).unwrap();
        (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), causes)
    }

    fn repeats(causes: &Causes, after: Duration) -> Vec<u64> {
        let due = causes.take_due(Instant::now() + after);
        let counts = due.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
        counts.map(|line| line["repeated"].as_u64().unwrap()).collect()
    }

    #[test]
    fn the_first_line_of_a_cause_is_printed_and_then_one_every_ten_seconds_with_a_count() {
        let (lines, causes) = printed(|| {
            for number in 0..5 {
                tracing::warn!(
                    worker = "sync",
                    error = format!("connection {number} refused"),
                    number,
                    "tick failed"
                );
            }
        });
        assert_eq!(lines.len(), 1);
        assert_eq!(repeats(&causes, WINDOW / 2), [0; 0]);
        assert_eq!(repeats(&causes, WINDOW), [4]);
        // The outage is over: nothing more to report, and the cause is forgotten.
        assert_eq!(repeats(&causes, 3 * WINDOW), [0; 0]);
        assert!(causes.0.lock().is_empty());
    }

    #[test]
    fn other_causes_and_lines_without_a_cause_are_all_printed() {
        let (lines, _) = printed(|| {
            for worker in ["sync", "dispatcher"] {
                tracing::warn!(worker, error = "refused", "tick failed");
            }
            tracing::warn!(worker = "sync", error = "refused", "could not release a lease");
            for id in 0..3 {
                tracing::error!(id, "a market differs from the chain");
                tracing::info!(worker = "sync", error = "refused", "another process continues the work");
            }
        });
        assert_eq!(lines.len(), 3 + 6);
    }

    #[test]
    fn a_repeated_line_keeps_its_fields() {
        let (_, causes) = printed(|| {
            for id in 0..2 {
                tracing::error!(error.code = "INTERNAL_ERROR", request.id = id, "failed");
            }
        });
        let due = causes.take_due(Instant::now() + WINDOW);
        let line: Value = serde_json::from_str(&due[0]).unwrap();
        assert_eq!((&line["fields"]["request.id"], &line["repeated"]), (&1.into(), &1.into()));
        assert_eq!(with_count("WARN tick failed\n", 3), "WARN tick failed repeated=3\n");
    }

    #[test]
    fn more_causes_than_are_remembered_are_printed() {
        let causes = Causes::default();
        let now = Instant::now();
        assert!((0..=MOST_CAUSES).all(|number| causes.admit(&number.to_string(), now)));
        assert!(!causes.admit("1", now) && causes.admit("another", now));
    }

    #[test]
    fn lines_of_dependencies_name_no_files_of_the_build() {
        let line = r#"{"level":"INFO","fields":{"message":"x","log.target":"y","log.file":"/build/x.rs"}}"#;
        assert_eq!(
            without_build_paths(line.to_owned()),
            "{\"fields\":{\"message\":\"x\"},\"level\":\"INFO\"}\n"
        );
        let own = "{\"fields\":{\"message\":\"x\"}}\n";
        assert_eq!(without_build_paths(own.to_owned()), own);
    }
}
