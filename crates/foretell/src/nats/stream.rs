//! The stream: what it must be able to do, and how it is created.

use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use domain::time::DAY_MS;

use super::NatsSettings;

/// The time in which the stream must recognize a repeated event. A process that takes over repeats what
/// the one before had published last.
const LEAST_DUPLICATE_WINDOW: Duration = Duration::from_secs(2 * 60);
/// The same of a stream that the service creates: also enough for a restart by hand.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(10 * 60);
/// The retention of a stream that the service creates: that of the feed.
const MAX_AGE_MS: i64 = 31 * DAY_MS;
/// The place of a user's id in [`takes`].
const ANY_USER: &str = "user";

/// A stream to which events cannot be published.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    #[error("the stream {stream} does not take the subjects {subject}.*")]
    Subjects { stream: String, subject: String },
    #[error("the stream {0} does not acknowledge messages (no_ack)")]
    NoAcknowledgements(String),
}

/// Returns the settings of a new stream.
pub(super) fn new_config(settings: &NatsSettings) -> Config {
    Config {
        name: settings.stream.clone(),
        description: Some("Events of Foretell".to_owned()),
        subjects: vec![format!("{}.>", settings.subject)],
        retention: RetentionPolicy::Limits,
        discard: DiscardPolicy::Old,
        storage: StorageType::File,
        max_age: Duration::from_millis(MAX_AGE_MS.unsigned_abs()),
        duplicate_window: DUPLICATE_WINDOW,
        num_replicas: 1,
        ..Config::default()
    }
}

/// Checks an existing stream. Returns a warning if it recognizes repeated events for too short a time.
pub(super) fn check(config: &Config, settings: &NatsSettings) -> Result<Option<String>, StreamError> {
    let NatsSettings { stream, subject, .. } = settings;
    if !config.subjects.iter().any(|pattern| takes(pattern, subject)) {
        return Err(StreamError::Subjects { stream: stream.clone(), subject: subject.clone() });
    }
    if config.no_ack {
        return Err(StreamError::NoAcknowledgements(stream.clone()));
    }
    let window = config.duplicate_window;
    Ok((window < LEAST_DUPLICATE_WINDOW).then(|| {
        format!(
            "the duplicate window of the stream {stream} is {} s: after a fault it may have events twice. Set at least {} s",
            window.as_secs(),
            LEAST_DUPLICATE_WINDOW.as_secs()
        )
    }))
}

/// Returns whether the pattern matches the subjects of all users.
fn takes(pattern: &str, subject: &str) -> bool {
    let mut words = subject.split('.').chain([ANY_USER]);
    for token in pattern.split('.') {
        let word = words.next();
        match (token, word) {
            (">", Some(_)) => return true,
            ("*", Some(_)) => {}
            // A pattern that names a user does not match the others.
            (token, Some(word)) if token == word && words.clone().next().is_some() => {}
            _ => return false,
        }
    }
    words.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> NatsSettings {
        NatsSettings {
            servers: vec!["nats://one".to_owned()],
            user: None,
            stream: "EVENTS".to_owned(),
            subject: "foretell.events".to_owned(),
            credentials: None,
            ca: None,
        }
    }

    #[test]
    fn a_stream_must_take_the_subjects_of_all_users() {
        for pattern in ["foretell.events.>", "foretell.events.*", "foretell.>", ">", "*.events.*", "*.*.>"] {
            assert!(takes(pattern, "foretell.events"), "{pattern}");
        }
        for pattern in
            ["foretell.events", "foretell.*", "foretell.events.*.*", "other.>", "foretell.events.user", ""]
        {
            assert!(!takes(pattern, "foretell.events"), "{pattern}");
        }
    }

    #[test]
    fn a_new_stream_passes_its_own_check() {
        let config = new_config(&settings());
        assert_eq!(check(&config, &settings()), Ok(None));
        assert!(config.duplicate_window >= LEAST_DUPLICATE_WINDOW);
    }

    #[test]
    fn an_unsuitable_stream_is_reported() {
        let new = new_config(&settings());
        let short = Config { duplicate_window: Duration::from_secs(5), ..new.clone() };
        assert!(check(&short, &settings()).unwrap().unwrap().contains("is 5 s"));
        let other = Config { subjects: vec!["other.>".to_owned()], ..new.clone() };
        assert!(matches!(check(&other, &settings()), Err(StreamError::Subjects { .. })));
        let silent = Config { no_ack: true, ..new };
        assert!(matches!(check(&silent, &settings()), Err(StreamError::NoAcknowledgements(_))));
    }
}
