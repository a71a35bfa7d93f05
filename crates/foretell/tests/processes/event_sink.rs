//! Events in NATS, while the service and the NATS server are killed: the stream has every event of
//! every feed once, in the order of the feed.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::jetstream::stream::Config;
use domain::event::feed_body;
use domain::ids::KeyId;
use serde_json::Value;
use store::{Store, StoreError};

use crate::clients::{Clients, Trader};
use crate::nats_server::NatsServer;
use crate::oracle::{self, number};
use crate::service::{Service, foretell};

const STREAM: &str = "FORETELL_EVENTS";
/// The minimum number of trades.
const TRADES: usize = 200;

/// Returns the events of each user's feed: id and JSON document.
async fn feeds(store: &Store) -> BTreeMap<String, Vec<(String, String)>> {
    const SQL: &str = "SELECT user_id, id, seq, key_id, body FROM events ORDER BY user_id, seq";
    let rows: Result<Vec<(String, String, String)>, StoreError> = store
        .read((), |tx, ()| {
            Box::pin(tx.list(SQL, &[], |row| {
                let key_id: Option<KeyId> = row.get("key_id")?;
                let body: String = row.get("body")?;
                Ok((row.get("user_id")?, row.get("id")?, feed_body(row.get("seq")?, key_id, &body)))
            }))
        })
        .await;
    let mut feeds: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (user, id, document) in rows.unwrap() {
        feeds.entry(user).or_default().push((id, document));
    }
    feeds
}

/// Waits until everything is published.
async fn published(store: &Store) {
    const BEHIND: &str = "SELECT COUNT(*) FROM feeds f LEFT JOIN sink_positions p ON p.user_id = f.user_id
        WHERE f.last_seq > COALESCE(p.seq, 0)";
    let mut polls = tokio::time::interval(Duration::from_millis(50));
    for _ in 0..1_200 {
        polls.tick().await;
        if number(store, BEHIND).await == 0 {
            return;
        }
    }
    panic!("events are still unpublished after a minute");
}

async fn survives_kills(service: &mut Service) {
    let Some(mut nats) = NatsServer::start().await else { return };
    let demonstration = service.demonstration().await;
    let store = service.store().await;
    let clients = Clients::start(Trader::of_demonstration(&demonstration, 4));
    let url = nats.url();
    let arguments = ["--nats-url", url.as_str()];
    service.start_with(&arguments).await;
    clients.send_to(&[service.base_url()]);
    clients.trade_more(TRADES / 4).await;
    nats.kill().await;
    // The service trades on without NATS, is killed, and starts without it.
    clients.trade_more(TRADES / 4).await;
    service.kill().await;
    service.start_with(&arguments).await;
    clients.send_to(&[service.base_url()]);
    clients.trade_more(TRADES / 8).await;
    nats.start_again().await;
    clients.trade_more(TRADES / 8).await;
    for _ in 0..3 {
        service.live_for(Duration::from_millis(300)).await;
        service.kill().await;
        service.start_with(&arguments).await;
        clients.send_to(&[service.base_url()]);
    }
    nats.kill().await;
    nats.start_again().await;
    let acknowledged = clients.finish_after(TRADES).await;
    oracle::settled(&store).await;
    published(&store).await;

    let mut streamed: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for message in nats.messages(STREAM).await {
        let user = message.subject.strip_prefix("foretell.events.").unwrap().to_owned();
        let header = |name: &str| message.headers.get(name).unwrap().as_str().to_owned();
        let body = String::from_utf8(message.payload.to_vec()).unwrap();
        let document: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(header("Foretell-Position"), format!("1-{}", document["sequence"]));
        assert_eq!(header("Foretell-Event-Type"), document["type"].as_str().unwrap());
        streamed.entry(user).or_default().push((header("Nats-Msg-Id"), body));
    }
    let feeds = feeds(&store).await;
    let events: usize = feeds.values().map(Vec::len).sum();
    eprintln!("{} trades acknowledged, {events} events of {} users", acknowledged.len(), feeds.len());
    assert!(acknowledged.len() >= TRADES);
    assert_eq!(streamed.keys().collect::<Vec<_>>(), feeds.keys().collect::<Vec<_>>());
    for (user, feed) in &feeds {
        assert_eq!(&streamed[user], feed, "of user {user}");
    }
    // Kill the service before its database is dropped.
    service.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nats_gets_every_event_once_and_in_order_despite_kills_on_sqlite() {
    survives_kills(&mut Service::on_sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nats_gets_every_event_once_and_in_order_despite_kills_on_postgres() {
    let Some(mut service) = Service::on_postgres().await else { return };
    survives_kills(&mut service).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn config_check_looks_for_the_stream_and_changes_nothing() {
    let Some(nats) = NatsServer::start().await else { return };
    let folder = store::testing::TestFolder::create();
    let checked = async |arguments: &[&str]| {
        let mut command = foretell(folder.path());
        command.args(["--nats-url", &nats.url()]).args(arguments).args(["config", "check"]);
        let output = command.stdout(std::process::Stdio::piped()).output().await.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter(|line| line.starts_with("nats  ")).collect::<Vec<_>>().join("\n")
    };
    let missing = checked(&[]).await;
    assert!(
        missing.contains("ok: ") && missing.contains("FORETELL_EVENTS for foretell.events.> will be created")
    );
    let jetstream = nats.jetstream().await;
    assert!(jetstream.get_stream(STREAM).await.is_err(), "a check creates nothing");
    let config = Config {
        name: "SHORT".to_owned(),
        subjects: vec!["acme.>".to_owned()],
        duplicate_window: Duration::from_secs(5),
        ..Config::default()
    };
    jetstream.create_stream(config).await.unwrap();
    let short = checked(&["--nats-stream", "SHORT", "--nats-subject", "acme.events"]).await;
    assert!(short.contains("ok: ") && short.contains("WARNING: the duplicate window"), "{short}");
    let other = checked(&["--nats-stream", "SHORT"]).await;
    assert!(
        other.contains("FAILED: the stream SHORT does not take the subjects foretell.events.*"),
        "{other}"
    );
}
