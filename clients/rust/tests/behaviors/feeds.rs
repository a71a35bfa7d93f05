//! Every feed of the table, and the real feed through a network that cuts it.

use std::sync::{Arc, Mutex};

use foretell_client::{Error, EventFeed, FeedOptions, NewTrade};
use serde_json::{Value, json};

use crate::support::{Suite, assert_error, assert_pauses, printed, text};

pub async fn check(suite: &Suite, entry: Value) {
    let expected = &entry["expect"];
    suite.set_rules(&suite.fill(&entry["rules"], "")).await;
    let (client, clock) = suite.client(&entry);
    suite.log.take();
    let generations = Arc::new(Mutex::new(Vec::new()));
    let reported = generations.clone();
    let options = FeedOptions {
        after: entry["after"].as_str().map(str::to_owned),
        on_generation: Some(Box::new(move |generation| {
            reported.lock().unwrap().push(Value::from(generation))
        })),
        ..FeedOptions::default()
    };
    let feed = client.events.stream(options);
    let count = expected["events"].as_array().unwrap().len();
    let (events, error) = read(feed, count, expected["error"].is_object()).await;
    let requests = suite.requests().await;
    assert_eq!(Value::from(events), expected["events"], "{error:?}");
    for (name, value) in expected.as_object().unwrap() {
        match name.as_str() {
            "events" => {}
            "error" => assert_error(error.as_ref(), value),
            "lastEventIds" => {
                let ids = requests.iter().map(|request| request["headers"]["last-event-id"].clone());
                assert_eq!(&ids.collect::<Value>(), value);
            }
            "requestsExactly" => assert_eq!(requests.len() as u64, value.as_u64().unwrap()),
            "generations" => assert_eq!(&Value::from(generations.lock().unwrap().clone()), value),
            "pauses" => assert_pauses(&clock.pauses_ms(), value),
            other => panic!("no check for {other}"),
        }
    }
    suite.assert_no_secret(&error.iter().flat_map(printed).collect::<Vec<_>>());
}

/// Returns the ids of so many events, or of all until the feed ends.
async fn read(mut feed: EventFeed, count: usize, has_end: bool) -> (Vec<String>, Option<Error>) {
    let mut events = Vec::new();
    while events.len() < count || has_end {
        match feed.try_next().await {
            Ok(Some(item)) => events.push(item.event.id),
            Ok(None) => break,
            Err(error) => return (events, Some(error)),
        }
    }
    (events, None)
}

pub async fn check_real_feed(suite: &Suite) {
    let entry = json!({ "clock": "real", "options": { "firstPauseMs": 10 } });
    suite.set_rules(&json!([])).await;
    let ((writer, _), (reader, _)) = (suite.client(&entry), suite.client(&entry));
    let trade = NewTrade::buy(&suite.market, 1, "0.10");
    let first = writer.trades.create_and_wait(&trade).await.unwrap();
    let cuts = json!([{ "method": "GET", "path": "/v1/events", "action": "cut", "when": "middle", "afterBytes": 700, "times": 1000 }]);
    suite.set_rules(&cuts).await;
    let create = async {
        let mut created = Vec::new();
        for _ in 0..6 {
            created.push(writer.trades.create(&trade).await.unwrap().id.clone());
        }
        created
    };
    let read = async {
        let types = vec!["trade.completed".to_owned()];
        let mut feed = reader.events.stream(FeedOptions { types, ..FeedOptions::default() });
        let (mut ids, mut sequences) = (Vec::new(), Vec::new());
        while ids.len() < 7 {
            let event = feed.try_next().await.unwrap().unwrap().event;
            let id = event.data.trade_id.unwrap();
            if id == first.id || !ids.is_empty() {
                ids.push(id);
                sequences.push(event.sequence);
            }
        }
        (ids, sequences)
    };
    let (created, (ids, sequences)) = tokio::join!(create, read);
    assert_eq!(ids[1..], created);
    assert!(sequences.is_sorted());
    let requests = suite.requests().await;
    assert!(requests.iter().filter(|request| text(&request["path"]) == "/v1/events").count() > 2);
}
